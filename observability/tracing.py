"""The id of a request in the log, and the trace that it belongs to (W3C Trace Context).

Headers are parsed at first use: a request whose trace is never used costs one look-up.
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
"""The request that the running task works on."""

CONTINUED: ContextVar[HTTPServerRequest | None] = ContextVar("latchkey_continued", default=None)
"""The request whose work goes on after its answer: the security log names its operator."""

# Request ids that a proxy may send: nginx sends 32 hex digits, others a UUID.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# W3C Trace Context 3.2.2: in lower case. A later version may add more after another dash.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LENGTH_00 = 55
# Flags with a known meaning: sampled and, since level 2, random. Others are dropped: passing on an unknown flag could
# say anything.
_KNOWN_FLAGS = 0x03
# 3.3.1.3: a member of tracestate, with a key of level 2.
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_MOST_MEMBERS = 32
_LONG_MEMBER = 128
_LONGEST_STATE = 512


class Trace(NamedTuple):
    """The trace of a request: its id, the span of this request, flags, and the state of other tracers."""

    trace_id: str
    span_id: str
    flags: str
    state: str

    @property
    def parent(self) -> str:
        """The `traceparent` of calls that this request makes."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def read_trace(parents: Sequence[str], states: Sequence[str] = ()) -> Trace | None:
    """The trace in the values of `traceparent` and `tracestate`, with a new span. None without exactly one valid
    `traceparent`; then `tracestate` is ignored too (3.2, 4.3)."""
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
    """The members to pass on; "" if they are malformed (3.3.1, 4.3)."""
    members = [member for value in values for part in value.split(",") if (member := part.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > _MOST_MEMBERS or len(keys) < len(members) or not all(map(_MEMBER.fullmatch, members)):
        return ""
    # 3.3.1.5: to shorten the list, drop whole members, long ones first, then from the end.
    if _length(members) > _LONGEST_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while _length(members) > _LONGEST_STATE:
        members.pop()
    return ",".join(members)


def _length(members: Sequence[str]) -> int:
    return sum(map(len, members)) + len(members) - 1


def request_id(request: HTTPServerRequest, *, trusted: bool = False) -> str:
    """The id of a request in the log and in its response. A `trusted` peer can set it with `X-Request-Id`; otherwise
    the id is new. The first call decides."""
    found: str | None = getattr(request, "latchkey_id", None)
    if found is None:
        found = (trusted and sent_id(request.headers.get_list("X-Request-Id"))) or new_id()
        request.latchkey_id = found  # type: ignore[attr-defined]  # a request can have several handlers
    return found


def sent_id(values: Sequence[str]) -> str:
    """The request id that a proxy sent; "" if it sent none or an invalid one."""
    return values[0] if len(values) == 1 and _REQUEST_ID.fullmatch(values[0]) else ""


def new_id() -> str:
    """A new id, which need not be hard to guess."""
    return f"{random.getrandbits(64):016x}"


def trace_of(request: HTTPServerRequest) -> Trace | None:
    """The trace of a request, if it came with one."""
    try:
        found: Trace | None = request.latchkey_trace  # type: ignore[attr-defined]  # set like latchkey_id
    except AttributeError:
        headers = request.headers
        parents = headers.get_list("Traceparent")
        found = read_trace(parents, headers.get_list("Tracestate")) if parents else None
        request.latchkey_trace = found  # type: ignore[attr-defined]  # our own attribute
    return found


def over(request: HTTPServerRequest) -> None:
    """Ends the request: tasks that it left behind no longer log its id."""
    request.latchkey_over = True  # type: ignore[attr-defined]  # set like latchkey_id


def put_known(line: dict[str, Any], request: HTTPServerRequest) -> None:
    """Adds the ids of the request to a line of the log."""
    line["request_id"] = request_id(request)
    trace = trace_of(request)
    if trace is not None:
        line["trace_id"], line["span_id"] = trace.trace_id, trace.span_id


def current() -> HTTPServerRequest | None:
    """The request that the running task answers, or None."""
    request = CURRENT.get()
    return request if request is not None and not hasattr(request, "latchkey_over") else None


def passed_on(*, traced: bool = True) -> dict[str, str]:
    """Headers for a call that the running request makes: its id, and with `traced` its trace, if it has one."""
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
