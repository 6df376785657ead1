"""Under which id a request stands in the log, and the trace that it belongs to (W3C Trace Context).

Nothing of a request is read before somebody asks: a request whose trace nobody wants costs one look-up.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # commands write to the log too, and need no Tornado
    from tornado.httputil import HTTPServerRequest

CURRENT: ContextVar[HTTPServerRequest | None] = ContextVar("latchkey_request", default=None)
"""The request that the running task is about."""

# What a proxy may call a request: nginx sends 32 hex digits, others a UUID.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# W3C Trace Context 3.2.2: in lower case; a later version may add more behind another dash.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LENGTH_00 = 55
# Flags that have a meaning: sampled and, since level 2, random. Of the others nobody knows what passing on would say.
_KNOWN_FLAGS = 0x03
# 3.3.1.3: a member of tracestate, its key as level 2 has it.
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_MOST_MEMBERS = 32
_LONG_MEMBER = 128
_LONGEST_STATE = 512


class Trace(NamedTuple):
    """The trace of a request: its id, the span that the request is here, flags, and what other tracers pass along."""

    trace_id: str
    span_id: str
    flags: str
    state: str

    @property
    def parent(self) -> str:
        """`traceparent` of a call that this request makes."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def read_trace(parents: Sequence[str], states: Sequence[str] = ()) -> Trace | None:
    """The trace that the values of `traceparent` and `tracestate` name, with a span of our own; None where there is
    none, or not exactly one that is valid: then `tracestate` counts for nothing either (3.2, 4.3)."""
    match = _TRACEPARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    if match is None:
        return None
    version, trace_id, parent_id, flags = match[1], match[2], match[3], int(match[4], 16)
    if version == "ff" or (version == "00" and len(parents[0]) != _LENGTH_00):
        return None
    if not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return Trace(trace_id, _new_span(), f"{flags & _KNOWN_FLAGS:02x}", _read_state(states))


def _new_span() -> str:
    return f"{random.getrandbits(64) or 1:016x}"


def _read_state(values: Sequence[str]) -> str:
    """The members, as they are to be passed on; "" where they are malformed (3.3.1, 4.3)."""
    members = [member for value in values for part in value.split(",") if (member := part.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > _MOST_MEMBERS or len(keys) < len(members) or not all(map(_MEMBER.fullmatch, members)):
        return ""
    # 3.3.1.5: what does not fit goes in whole members, long ones first, then from the end.
    if _length(members) > _LONGEST_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while _length(members) > _LONGEST_STATE:
        members.pop()
    return ",".join(members)


def _length(members: Sequence[str]) -> int:
    return sum(map(len, members)) + len(members) - 1


def request_id(request: HTTPServerRequest, *, trusted: bool = False) -> str:
    """The id under which a request stands in the log and in its response: one of its own, or where what the peer says
    is `trusted`, the `X-Request-Id` that it sent. The first call decides."""
    found: str | None = getattr(request, "latchkey_id", None)
    if found is None:
        found = (trusted and sent_id(request.headers.get_list("X-Request-Id"))) or new_id()
        request.latchkey_id = found  # type: ignore[attr-defined]  # Tornado makes handlers anew, the request stays
    return found


def sent_id(values: Sequence[str]) -> str:
    """The id that a proxy gave the request; "" where it gave none that can be taken."""
    return values[0] if len(values) == 1 and _REQUEST_ID.fullmatch(values[0]) else ""


def new_id() -> str:
    """An id, to tell requests apart: nobody gains by guessing one."""
    return f"{random.getrandbits(64):016x}"


def trace_of(request: HTTPServerRequest) -> Trace | None:
    """The trace of a request, if it came with one."""
    try:
        found: Trace | None = request.latchkey_trace  # type: ignore[attr-defined]  # as latchkey_id
    except AttributeError:
        headers = request.headers
        parents = headers.get_list("Traceparent")
        found = read_trace(parents, headers.get_list("Tracestate")) if parents else None
        request.latchkey_trace = found  # type: ignore[attr-defined]  # a place of our own
    return found


def over(request: HTTPServerRequest) -> None:
    """The request was answered: what a task that it left behind does is not about it any more."""
    request.latchkey_over = True  # type: ignore[attr-defined]  # as latchkey_id


def put_known(line: dict[str, Any], request: HTTPServerRequest) -> None:
    """Puts into a line of the log which request it is about."""
    line["request_id"] = request_id(request)
    trace = trace_of(request)
    if trace is not None:
        line["trace_id"], line["span_id"] = trace.trace_id, trace.span_id


def current() -> HTTPServerRequest | None:
    """The request that is being answered here."""
    request = CURRENT.get()
    return request if request is not None and not hasattr(request, "latchkey_over") else None


def passed_on(*, traced: bool = True) -> dict[str, str]:
    """Headers for a call that the running request makes: its id, and with `traced` its trace if it has one."""
    request = CURRENT.get()
    if request is None:
        return {}
    headers = {"X-Request-Id": request_id(request)}
    trace = trace_of(request) if traced else None
    if trace is not None:
        headers["traceparent"] = trace.parent
        if trace.state:
            headers["tracestate"] = trace.state
    return headers
