"""The three APIs in which a model's server can be asked: path, events of a stream, and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from outbound.ai.dialects.complaints import complaint
from outbound.ai.dialects.errors import read_failure
from outbound.ai.dialects.text_events import chunk_text, message_text, response_text
from outbound.ai.events import (
    MAX_EVENT_BYTES,
    BrokenStream,
    EventReader,
    StreamEvent,
    data_of,
    message_event,
    read_json,
)
from outbound.ai.failure import Code

Dialect = Literal["messages", "chat", "responses"]
"""An API: Anthropic's Messages API, or chat/completions or responses of OpenAI's."""
MAX_RESPONSE_BYTES = 8 * 2**20
"""An event of responses repeats the request."""
DONE = "[DONE]"
_NAME = re.compile(r"[a-z_.]{1,64}")
_KIND = re.compile(r"[a-z_]{1,40}")
_OVERLOADED = ("overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_overloaded")
# Also a 400, but about the operator's account with the server. People would take it for their account here.
_BILLING = re.compile(r"credit balance|billing|organi[sz]ation|quota", re.IGNORECASE)
THE_REQUEST = (400, 413, 422)
"""Statuses of a complaint about the request itself."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """`path` is where a call is posted. `read` makes an event of a block of a stream, and None of a comment. `last` has
    the names of the events after which a stream is over. `refused` has the code of a server's error status with its
    body, what an app may read of it, and the field that it names."""

    path: str
    read: Callable[[bytes], StreamEvent | None]
    last: frozenset[str]
    refused: Callable[[int, object], tuple[Code, str, str | None]]
    most_bytes: int = MAX_EVENT_BYTES

    def reader(self) -> EventReader:
        """A reader of one stream."""
        return EventReader(self.read, self.most_bytes)


def overloaded(data: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether an error that a server reports says that it has too much to do, and the kind of the error."""
    error = data.get("error")
    error = error if isinstance(error, dict) else data
    kinds = [error.get("type"), error.get("code")]
    known = next((kind for kind in kinds if isinstance(kind, str) and _KIND.fullmatch(kind)), "an error")
    return any(kind in _OVERLOADED for kind in kinds), known


def _refused_messages(status: int, body: object) -> tuple[Code, str, str | None]:
    error = body.get("error") if isinstance(body, dict) else None
    if status in THE_REQUEST and isinstance(error, dict):
        message = str(error.get("message"))
        if error.get("type") in ("invalid_request_error", "request_too_large") and not _BILLING.search(message):
            return "invalid_request", complaint(message), None
    return "upstream_error", "", None


def chunk_event(block: bytes) -> StreamEvent | None:
    """The chunk of chat/completions in a block of lines; None for a comment. Raises BrokenStream."""
    data = data_of(block)
    if not data:
        return None
    if data.strip() == DONE.encode():
        return StreamEvent(DONE, {})
    value = _object(data)
    name = "error" if value.get("error") else "chunk"
    return StreamEvent(name, value, b"data: %b\n\n" % data.replace(b"\n", b" "))


def response_event(block: bytes) -> StreamEvent | None:
    """The event of responses in a block of lines; None for a comment, and for the end. Raises BrokenStream."""
    data = data_of(block)
    if not data or data.strip() == DONE.encode():
        return None
    value = _object(data)
    name = value.get("type")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BrokenStream("an event has no type")
    return StreamEvent(name, value, b"event: %b\ndata: %b\n\n" % (name.encode(), data.replace(b"\n", b" ")))


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = read_json(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BrokenStream("an event is not a JSON object")
    return value


PROTOCOLS: Mapping[Dialect, Protocol] = MappingProxyType(
    {
        "messages": Protocol(
            "/v1/messages",
            lambda block: message_text(block) or message_event(block),
            frozenset(("message_stop",)),
            _refused_messages,
        ),
        "chat": Protocol(
            "/chat/completions", lambda block: chunk_text(block) or chunk_event(block), frozenset((DONE,)), read_failure
        ),
        "responses": Protocol(
            "/responses",
            lambda block: response_text(block) or response_event(block),
            frozenset(("response.completed", "response.incomplete", "response.failed")),
            read_failure,
            MAX_RESPONSE_BYTES,
        ),
    }
)
