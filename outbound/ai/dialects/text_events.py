"""Events of a stream that only have text: recognized without parsing their JSON, and passed on as they came.

Nearly all events of a stream are of this kind. A pattern describes the whole event. So the event can have no report of
tokens, no error, and no member that the pattern does not name; text in it that looks like one is inside of quotes. Any
other event is parsed.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from outbound.ai.events import StreamEvent, read_json

# The text of a JSON string, without its quotes. Only repetitions of one character are possessive: repeated groups are
# not, because they match too much, or too little, in early releases of Python 3.11 (cpython issues 101955 and 106052).
_TEXT = rb'[^"\\\x00-\x1f]*+(?:\\["\\/bfnrtu][^"\\\x00-\x1f]*+)*'
# A text that needs no decoding.
_PLAIN = rb"[ !#-\[\]-~]*+"
MOST_BYTES = 2**14
"""Longer events are parsed, so that no pattern has to remember where it could go back to in megabytes."""
_NUMBER = rb"(?:0|[1-9][0-9]{0,15})"


def _pattern(text: bytes) -> re.Pattern[bytes]:
    """A pattern for the lines of an event, in which `<TEXT>` stands for such a part, and `<>` for optional spaces."""
    for name, part in ((b"", b" *+"), (b"TEXT", _TEXT), (b"PLAIN", _PLAIN), (b"NUMBER", _NUMBER)):
        text = text.replace(b"<%b>" % name, part)
    return re.compile(text)


_MESSAGES = _pattern(
    rb'event:<>content_block_delta\ndata:<>(\{<>"type":<>"content_block_delta",<>"index":<><NUMBER>,<>"delta":<>'
    rb'\{<>"type":<>"<PLAIN>",<>"(text|partial_json|thinking)":<>"(<TEXT>)"<>\}<>\})'
)
_RESPONSES = _pattern(
    rb"event:<>(response\.(?:output_text|refusal|function_call_arguments|reasoning_text|reasoning_summary_text)\.delta)"
    rb'\ndata:<>(\{<>"type":<>"(?:\1)"'
    rb'(?:,<>(?:"delta":<>"(<TEXT>)"|"sequence_number":<>(<NUMBER>)|"(?:output|content|summary)_index":<><NUMBER>'
    rb'|"(?:item_id|obfuscation)":<>"<PLAIN>"|"logprobs":<>\[\]))*<>\})'
)
_CHAT = _pattern(
    rb'data:<>(\{<>(?:(?:"(?:id|object|system_fingerprint|service_tier)":<>(?:"<PLAIN>"|null)|"created":<><NUMBER>'
    rb'|"model":<>("<PLAIN>")),<>)*'
    rb'("choices":<>\[<>\{<>"index":<><NUMBER>,<>"delta":<>\{<>(?:"role":<>"assistant",<>)?"content":<>"(<TEXT>)"'
    rb'(?:,<>"(?:refusal|reasoning_content|reasoning|function_call|tool_calls)":<>null)*<>\}'
    rb'(?:,<>"(?:logprobs|finish_reason|stop_reason|token_ids)":<>null)*<>\}<>\])'
    rb'(?:,<>"usage":<>null)?((?:,<>"obfuscation":<>"<PLAIN>")?)<>\})'
)


class TextEvent(StreamEvent):
    """An event that only has a text: `text` in a member `field`. Its JSON is parsed if somebody asks for `data`."""

    __slots__ = ("field", "json", "match", "text")

    def __init__(self, name: str, raw: bytes, json: bytes, field: str, text: str, match: re.Match[bytes]) -> None:
        self.name, self.raw, self.json, self.field, self.text, self.match = name, raw, json, field, text, match
        self.more = False

    @property
    def data(self) -> dict[str, Any]:  # type: ignore[override]  # an attribute of other events, which nobody sets
        """The JSON object, parsed again each time."""
        value: dict[str, Any] = read_json(self.json)
        return value


def message_text(block: bytes) -> TextEvent | None:
    """The event of the Messages API in a block of lines, if it only has a text."""
    match = _MESSAGES.fullmatch(block) if len(block) <= MOST_BYTES else None
    if match is None or (text := _decoded(match[3])) is None:
        return None
    raw = b"event: content_block_delta\ndata: %b\n\n" % match[1]
    return TextEvent("content_block_delta", raw, match[1], match[2].decode(), text, match)


def response_text(block: bytes) -> TextEvent | None:
    """The event of responses in a block of lines, if it only has a text."""
    match = _RESPONSES.fullmatch(block) if len(block) <= MOST_BYTES else None
    if match is None or match[3] is None or (text := _decoded(match[3])) is None:
        return None
    raw = b"event: %b\ndata: %b\n\n" % (match[1], match[2])
    return TextEvent(match[1].decode(), raw, match[2], "delta", text, match)


def chunk_text(block: bytes) -> TextEvent | None:
    """The chunk of chat/completions in a block of lines, if it only has a text and one name of a model."""
    match = _CHAT.fullmatch(block) if len(block) <= MOST_BYTES else None
    if match is None or match[2] is None or (text := _decoded(match[4])) is None:
        return None
    if block.count(b'"model"', 0, match.start(3)) != 1:
        return None
    return TextEvent("chunk", b"data: %b\n\n" % match[1], match[1], "content", text, match)


def chunk_for(event: TextEvent, model: bytes, *, with_usage: bool) -> bytes:
    """The chunk with another name of the model, which is JSON, and without the server's word on usage."""
    match = event.match
    start, end = match.span(2)
    before, after = match.string[match.start(1) : start], match.string[end : match.end(3)]
    usage = b',"usage":null' if with_usage else b""
    return b"data: %b%b%b%b%b}\n\n" % (before, model, after, match[5], usage)


def _decoded(text: bytes) -> str | None:
    """A text; None if it is not whole Unicode, which the parser has to judge."""
    try:
        if b"\\" in text:
            value: str = orjson.loads(b'"%b"' % text)
            return value
        return text.decode()
    except ValueError:
        return None
