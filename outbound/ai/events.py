"""Server-sent events of AI models: parsed from pieces, written whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import orjson

from store.json_text import check_nesting

MAX_EVENT_BYTES = 2**20
_NAME = re.compile(r"[a-z_]{1,64}")
# orjson makes a float of a whole number beyond 64 bits, so numbers of that length are searched for. A pattern takes ten
# times as long for a long text.
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_HUGE = b"0" * 19


class BrokenStream(Exception):
    """The input is no stream of events. `rest` is the unread part of the input."""

    def __init__(self, reason: str, rest: bytes = b"") -> None:
        super().__init__(reason)
        self.rest = rest


@dataclass(slots=True)
class StreamEvent:
    """One event: its name, its JSON object and, if it was received, its wire format. `more`: another event arrived with
    it, and follows at once."""

    name: str
    data: dict[str, Any]
    raw: bytes = b""
    more: bool = field(default=False, compare=False)

    def encoded(self) -> bytes:
        """The event in its wire format; an event that was received is unchanged."""
        return self.raw or b"event: %b\ndata: %b\n\n" % (self.name.encode(), encoded(self.data))


def compact(value: Any) -> str:
    """JSON without white space. Text keeps its characters, beyond ASCII too."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encoded(value: Any) -> bytes:
    """The same in UTF-8. A lone surrogate, which UTF-8 can't represent, stays escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass  # a number beyond 64 bits, or a lone surrogate
    try:
        return compact(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def strictly_encoded(value: Any) -> bytes:
    """A value from an app. Raises ValueError for an infinite number and half a character, RecursionError."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return compact(value).encode()
    # orjson writes null for an infinite number.
    return compact(value).encode() if b"null" in text else text


class WrittenRequest(dict[str, Any]):
    """A request, and the same as JSON in `text`: a long one is written once, not for each attempt."""

    __slots__ = ("text",)

    def __init__(self, request: Mapping[str, Any], text: bytes) -> None:
        super().__init__(request)
        self.text = text

    def having(self, members: Mapping[str, Any]) -> WrittenRequest:
        """The request with more members, which replace those of the same names."""
        request = {**self, **members}
        if len(request) < len(self) + len(members):
            return WrittenRequest(request, encoded(request))
        comma = b"," if self and members else b""
        return WrittenRequest(request, self.text[:-1] + comma + encoded(members)[1:])


def having(request: Mapping[str, Any], members: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request with more members, which replace those of the same names."""
    return request.having(members) if isinstance(request, WrittenRequest) else {**request, **members}


def read_json(raw: bytes) -> Any:
    """Parses JSON from a server. Raises ValueError for input that can't be written again: invalid JSON, NaN, numbers
    beyond a float, nesting beyond 200."""
    check_nesting(raw)
    if _HUGE not in raw.translate(_AS_ZEROS):
        try:
            return orjson.loads(raw)  # in a sixth of the time
        except orjson.JSONDecodeError:
            pass  # may be half a character, which is no error here
    return _DECODER.decode(raw.decode())


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is none")
    return number


_DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)


class EventReader:
    """Joins events from pieces of any size (WHATWG HTML 9.2.6, the parts that the APIs use). `read` makes an event of a
    block of lines, by default one of the Messages API, which has at most `most_bytes`."""

    def __init__(
        self, read: Callable[[bytes], StreamEvent | None] | None = None, most_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        self._read = read or message_event
        self._most = most_bytes
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """The events that this piece completes. Raises BrokenStream if an event is too large or no JSON object with a
        type."""
        # An event may come byte by byte, so a piece is added without a copy of those before.
        buffer = self._buffer
        buffer += piece.replace(b"\r", b"") if b"\r" in piece else piece
        start, search = 0, self._searched
        while (end := buffer.find(b"\n\n", search)) >= 0:
            try:
                if end - start > self._most:
                    raise BrokenStream("an event is too large")
                event = self._read(bytes(buffer[start:end]))
            except BrokenStream as broken:
                raise BrokenStream(str(broken), bytes(buffer[start:])) from None
            start = search = end + 2
            if event:
                yield event
        del buffer[:start]
        # The buffer may end within the separator.
        self._searched = max(0, len(buffer) - 1)
        if len(buffer) > self._most:
            raise BrokenStream("an event is too large", bytes(buffer))


def together(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """The events, each marked if there is `more`. An event before an error, or before the stream breaks, is not."""
    held: StreamEvent | None = None
    try:
        for event in events:
            if held is not None:
                held.more = event.name != "error"
                yield held
            held = event
    except BrokenStream:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def data_of(block: bytes) -> bytes:
    """The data in the lines of an event; empty for a comment."""
    fields = (line.partition(b":") for line in block.split(b"\n"))
    return b"\n".join(value.removeprefix(b" ") for name, _, value in fields if name == b"data")


def message_event(block: bytes) -> StreamEvent | None:
    """The event of the Messages API in a block of lines; None for a comment. Raises BrokenStream."""
    data = data_of(block)
    if not data:
        return None
    try:
        value = read_json(data)
    except ValueError:
        raise BrokenStream("an event is not JSON") from None
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BrokenStream("an event has no type")
    # Write the event from its parsed content, so that no comment, id or retry of the server reaches the app.
    return StreamEvent(name, value, b"event: %b\ndata: %b\n\n" % (name.encode(), data.replace(b"\n", b" ")))
