"""Events that only have text are passed on unread; the result is the same as if each had been parsed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound.ai.dialects.text_events import TextEvent
from outbound.ai.events import BrokenStream, EventReader, StreamEvent, message_event, read_json, together
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.chat import SameChat
from outbound.ai.exchange.messages import SameMessages
from outbound.ai.exchange.responses import SameResponses
from outbound.ai.messages import MessagesUpstream
from outbound.ai.models import Model, Timeouts
from outbound.ai.openai_meter import METERS
from outbound.ai.protocols import PROTOCOLS, Dialect, chunk_event, response_event
from store.credits.prices import Price

PARSED = {"messages": message_event, "chat": chunk_event, "responses": response_event}
_UPSTREAM = MessagesUpstream("a", "https://models.example.com", "", Timeouts(), 1)
MODEL = Model("ours", "M", _UPSTREAM, "theirs", 9, 9, ((datetime(2026, 1, 1, tzinfo=UTC), Price("1", 1, 1)),))
ASKED = [{"role": "user", "content": "Why?"}]


@dataclass(frozen=True)
class Way:
    """A dialect, the exchange of a request in it, and a text event of its."""

    dialect: Dialect
    exchange: Callable[[], ModelExchange]
    block: bytes


MESSAGES = Way(
    "messages",
    lambda: SameMessages({"messages": ASKED, "max_tokens": 9}, MODEL),
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"a b"}}',
)
CHUNK = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":17,"model":"theirs-2026","service_tier":"default",'
    b'"system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"a b"},"logprobs":null,"finish_reason":null}],'
    b'"usage":null,"obfuscation":"xyz"}'
)
CHAT = Way("chat", lambda: SameChat({"messages": ASKED}, MODEL, []), CHUNK)
REPORTED = Way(
    "chat",
    lambda: SameChat({"messages": ASKED, "stream": True, "stream_options": {"include_usage": True}}, MODEL, []),
    CHUNK,
)
RESPONSES = Way(
    "responses",
    lambda: SameResponses({"input": "Why?"}, MODEL, []),
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","content_index":0,"delta":"a b",'
    b'"item_id":"m1","logprobs":[],"obfuscation":"x","output_index":0,"sequence_number":4}',
)
WAYS = [MESSAGES, CHAT, REPORTED, RESPONSES]
each_way = pytest.mark.parametrize("way", WAYS, ids=["messages", "chat", "chat with usage", "responses"])


def seen(way: Way, pieces: list[bytes], read: Callable[[bytes], StreamEvent | None]) -> tuple[Any, ...]:
    """What becomes of a stream: the bytes for the app, parsed; what the meter says; and how the stream broke."""
    exchange, reader, out, broken = way.exchange(), EventReader(read), b"", ""
    meter = METERS[way.dialect](exchange.request)
    try:
        for piece in pieces:
            for event in together(reader.feed(piece)):
                if event.name == "error":
                    raise BrokenStream("an error")
                meter.see(event)
                out += exchange.feed(event)
    except BrokenStream as error:
        broken = str(error)
    lines = [line for line in out.split(b"\n") if line]
    for line in lines:
        assert line.startswith((b"event: ", b"data: "))
    data = [read_json(line[6:]) if line.startswith(b"data: ") else line for line in lines]
    used = None if broken else (meter.used_so_far(), meter.begun, meter.shrank)
    end = exchange.end(meter.used_so_far()) if exchange.done else None
    return data, used, end, broken


def fast_and_slow(way: Way, pieces: list[bytes]) -> None:
    assert seen(way, pieces, PROTOCOLS[way.dialect].read) == seen(way, pieces, PARSED[way.dialect])


@each_way
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b'\\"',
        b"\\u00e9 \\ud83d\\ude00",
        "ä 😀\u2028".encode(),
        b"\\\\\\n\\/",
        b'\\",\\"usage\\":{\\"',
        b"~" * 999,
    ],
)
def test_a_text_goes_on_unread_and_unchanged(way: Way, text: bytes) -> None:
    block = way.block.replace(b"a b", text)
    event = PROTOCOLS[way.dialect].read(block)
    assert isinstance(event, TextEvent)
    parsed = PARSED[way.dialect](block)
    assert parsed is not None
    assert event.text == json.loads(b'"%b"' % text)
    assert (event.name, event.raw, event.data) == (parsed.name, parsed.raw, parsed.data)
    fast_and_slow(way, [block + b"\n\n"])


INTO = {
    "usage": b'"usage":{"prompt_tokens":9,"output_tokens":9,"completion_tokens":9},',
    "an error": b'"error":{"message":"no"},',
    "a second model": b'"model":"theirs",',
    "a second type": b'"type":"error",',
    "an escaped name": b'"us\\u0061ge":{"output_tokens":9},',
    "a response": b'"response":{"model":"theirs","usage":{"output_tokens":9}},',
    "an unknown member": b'"of_next_year":1,',
}


@each_way
@pytest.mark.parametrize("member", INTO.values(), ids=INTO)
def test_an_event_with_any_other_member_is_parsed(way: Way, member: bytes) -> None:
    whole = way.block.index(b"{") + 1
    for at in (place + 1 for place in range(whole - 1, len(way.block)) if way.block[place : place + 1] in b"{,"):
        block = way.block[:at] + member + way.block[at:]
        event = PROTOCOLS[way.dialect].read(block)
        assert not isinstance(event, TextEvent), block
        fast_and_slow(way, [block + b"\n\n"])


@each_way
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"a b", b"\xff", id="no UTF-8"),
        pytest.param(b"a b", b"\\ud800", id="half a character"),
        pytest.param(b"a b", b"\\x", id="no escape"),
        pytest.param(b"a b", b"\\u00g0", id="no hexadecimal digits"),
        pytest.param(b"a b", b"\t", id="a control character"),
        pytest.param(b'"a b"', b"null", id="no text"),
        pytest.param(b'"a b"', b'["a b"]', id="a list"),
        pytest.param(b'index":0', b'index":00', id="no number"),
        pytest.param(b'index":0', b'index":NaN', id="NaN"),
        pytest.param(b"}", b"},{}", id="more"),
        pytest.param(b"event: ", b"id: 7\nevent: ", id="a line of its own"),
        pytest.param(b"data: ", b"data: {}\ndata: ", id="two lines"),
        pytest.param(b"null}]", b'"stop"}]', id="an end"),
        pytest.param(b"null}]", b"}]", id="a member without a value"),
        pytest.param(b"theirs-2026", b'theirs","model":"two', id="two models"),
        pytest.param(b'"id":"c1",', b'"id":"model",', id="a member called model"),
    ],
)
def test_an_unusual_event_is_treated_as_ever(way: Way, old: bytes, new: bytes) -> None:
    block = way.block.replace(old, new)
    fast_and_slow(way, [block + b"\n\n", way.block + b"\n\n"])


_OTHERS = {
    "messages": [
        b'event: message_start\ndata: {"type":"message_start","message":{"model":"theirs","usage":{"input_tokens":3}}}',
        b'data: {"type":"content_block_delta",\ndata: "index":0,"delta":{"type":"text_delta","text":"c"}}',
        b'event: of_next_year\ndata: {"type":"of_next_year","usage":{"output_tokens":7}}',
        b'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":5}}',
    ],
    "chat": [
        b'data: {"id":"c1","model":"theirs","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
        b'data: {"id":"c2","model":"theirs","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        b'data: {"id":"c1","model":"theirs","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
        b'data: {"id":"c1",\ndata: "choices":[{"index":1,"delta":{"content":"c"}}],"model":"theirs","new":1}',
    ],
    "responses": [
        b'event: response.created\ndata: {"type":"response.created","response":{"model":"theirs","usage":null}}',
        b'event: response.of_next_year\ndata: {"type":"response.of_next_year","delta":"c","sequence_number":9}',
        b'data: {"type":"response.reasoning_text.delta",\ndata: "delta":"c"}',
    ],
}
LAST = {
    "messages": [
        b'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":5}}',
        b'event: message_stop\ndata: {"type":"message_stop"}',
    ],
    "chat": [b"data: [DONE]"],
    "responses": [
        b'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"output_tokens":5}}}'
    ],
}


@st.composite
def streams(draw: st.DrawFn) -> tuple[Way, list[bytes]]:
    """A stream of text events and others, cut at any bytes."""
    way: Way = draw(st.sampled_from(WAYS))
    some = st.sampled_from(
        [way.block, way.block.replace(b"a b", b"longer words"), b": a comment", *_OTHERS[way.dialect]]
    )
    blocks = [*draw(st.lists(some, max_size=8)), *(LAST[way.dialect] if draw(st.booleans()) else [])]
    ends = draw(st.sampled_from([b"\n", b"\r\n"]))
    whole = b"".join(block + b"\n\n" for block in blocks).replace(b"\n", ends)
    cuts = sorted(draw(st.sets(st.integers(0, max(1, len(whole))), max_size=6)))
    return way, [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@given(streams())
def test_any_stream_gives_the_same_parsed_and_unread(stream: tuple[Way, list[bytes]]) -> None:
    fast_and_slow(*stream)


_PARTS = [
    *INTO.values(),
    b'"',
    b"\\",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b" ",
    b"\n",
    b"\xff",
    b"0",
    b"null",
    b"-",
    b"e9",
    b"1.5",
]


@given(
    st.sampled_from(WAYS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9), st.sampled_from(_PARTS)), min_size=1, max_size=3),
)
def test_a_damaged_event_is_treated_as_ever(way: Way, changes: list[tuple[int, int, bytes]]) -> None:
    block = way.block
    for at, dropped, added in changes:
        block = block[: at % len(block)] + added + block[at % len(block) + dropped :]
    fast_and_slow(way, [block + b"\n\n"])


def test_only_events_that_arrive_together_are_marked() -> None:
    def arriving() -> Iterator[StreamEvent]:
        yield StreamEvent("a", {})
        yield StreamEvent("b", {})
        yield StreamEvent("error", {})
        yield StreamEvent("c", {})
        raise BrokenStream("no event")

    found, events = [], together(arriving())
    for event in islice(events, 4):
        found.append((event.name, event.more))
    with pytest.raises(BrokenStream):
        next(events)
    assert found == [("a", True), ("b", False), ("error", True), ("c", False)]
