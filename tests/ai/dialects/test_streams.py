"""Streams keep every character wherever they are split, and streams that make no sense are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outbound.ai.dialects.blocks import BlockReader
from outbound.ai.dialects.chat_answer import ChatStream
from outbound.ai.dialects.content import Joiner
from outbound.ai.dialects.messages_answer import MessagesStream
from outbound.ai.dialects.responses_answer import ResponsesStream
from outbound.ai.events import BrokenStream, EventReader, encoded
from store.credits.prices import TokenCounts
from tests.support.http.upstream import message

Json = dict[str, Any]
ARGUMENTS = (
    '{"path": "C:\\\\temp\\n", "sign": "\\u00e5\\ud83c\\udf27", "raw": "å 🌧 \U0001f469\u200d\U0001f680", "n": 1e3}'
)
"""Escapes and characters of two to four bytes, some of several code points."""


def halves(text: str) -> list[str]:
    """The code units of a text as JSON writes them: a character beyond U+FFFF is two."""
    units = text.encode("utf-16-le")
    return [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]


def cuts() -> list[list[str]]:
    """The arguments in two pieces, for each place; and in single code units."""
    units = halves(ARGUMENTS)
    pairs = [["".join(units[:at]), "".join(units[at:])] for at in range(1, len(units))]
    return [*pairs, units]


def tool_events(pieces: list[str]) -> list[Json]:
    """A stream of the Messages API with a call in these pieces."""
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": message(content=[])},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
    ]


def chunks_of(pieces: list[str]) -> list[Json]:
    """A stream of chat/completions with a call in these pieces."""
    first = {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}
    calls = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    return [{"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]


def sendable(made: list[Json]) -> list[Json]:
    """Each of these can be written in UTF-8: no half of a character is left."""
    assert all("\\ud8" not in encoded(item).decode().replace("\\\\ud8", "") for item in made)
    return made


@pytest.mark.trap(68)
def test_arguments_pass_to_chat_wherever_they_are_split() -> None:
    for pieces in cuts():
        stream = ChatStream("m", 1, with_usage=False)
        made = sendable([chunk for event in tool_events(pieces) for chunk in stream.feed(event)])
        calls = [call for chunk in made for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
        assert "".join(call["function"]["arguments"] for call in calls) == ARGUMENTS


@pytest.mark.trap(68)
def test_arguments_pass_to_responses_wherever_they_are_split() -> None:
    for pieces in cuts():
        stream = ResponsesStream({}, "m", 1)
        made = sendable([found for event in tool_events(pieces) for found in stream.feed(event)])
        assert "".join(event["delta"] for event in made if event["type"].endswith("arguments.delta")) == ARGUMENTS
        assert [event["arguments"] for event in made if event["type"].endswith("arguments.done")] == [ARGUMENTS]
        assert stream.end(TokenCounts())[-1]["response"]["output"][0]["arguments"] == ARGUMENTS


@pytest.mark.trap(68)
def test_arguments_pass_to_messages_wherever_they_are_split() -> None:
    for pieces in cuts():
        stream = MessagesStream("m")
        made = [event for chunk in chunks_of(pieces) for event in stream.feed(chunk)] + stream.end(TokenCounts())
        deltas = [event["delta"] for event in sendable(made) if event["type"] == "content_block_delta"]
        assert "".join(delta["partial_json"] for delta in deltas) == ARGUMENTS


@pytest.mark.trap(68)
def test_arguments_pass_wherever_the_bytes_of_a_stream_are_split() -> None:
    raw = b"".join(b"event: x\ndata: %b\n\n" % encoded(event) for event in tool_events([ARGUMENTS]))
    for at in range(1, len(raw)):
        reader, stream = EventReader(), ChatStream("m", 1, with_usage=False)
        events = [*reader.feed(raw[:at]), *reader.feed(raw[at:])]
        made = [chunk for event in events for chunk in stream.feed(event.data)]
        calls = [call for chunk in made for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
        assert json.loads("".join(call["function"]["arguments"] for call in calls)) == json.loads(ARGUMENTS)


@pytest.mark.trap(68)
def test_half_a_character_that_never_becomes_whole_is_not_lost() -> None:
    joiner = Joiner()
    assert [joiner.feed("a\ud83c"), joiner.feed("b"), joiner.feed("\ud83c"), joiner.end()] == [
        "a",
        "\ud83cb",
        "",
        "\ud83c",
    ]


@pytest.mark.trap(68)
def test_calls_whose_pieces_alternate_stay_apart() -> None:
    stream = MessagesStream("m")
    names = "first", "second", "third"
    begun = [{"index": at, "id": f"t{at}", "function": {"name": name}} for at, name in enumerate(names)]
    pieces = [{"index": at, "function": {"arguments": sign}} for sign in ('{"a"', ":", "1}") for at in (2, 0, 1)]
    chunks: list[Json] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in (*begun, *pieces)]
    chunks.insert(2, {"choices": [{"delta": {"content": "Meanwhile"}}]})
    events = [event for chunk in chunks for event in stream.feed(chunk)] + stream.end(TokenCounts())
    open_at, found = None, {}
    for event in events:
        if event["type"] == "content_block_start":
            assert open_at is None
            open_at = event["index"]
            found[open_at] = [event["content_block"].get("name", "text"), ""]
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_at
            found[open_at][1] += event["delta"].get("partial_json") or event["delta"]["text"]
        elif event["type"] == "content_block_stop":
            open_at = None
    said = ["text", "Meanwhile"]
    assert [*found.values()] == [["first", '{"a":1}'], ["second", '{"a":1}'], said, ["third", '{"a":1}']]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([{"type": "content_block_delta", "index": 0, "delta": {}}], id="a delta before its block"),
        pytest.param([{"type": "content_block_stop", "index": 0}], id="an end before its block"),
        pytest.param(tool_events([])[1:2] * 2, id="a block that begins twice"),
        pytest.param([{"type": "content_block_start", "index": [], "content_block": {}}], id="an index that is none"),
        pytest.param([{"type": "content_block_start", "index": 0, "content_block": None}], id="a block that is none"),
        pytest.param([*tool_events([])[1:2], {"type": "content_block_delta", "index": 0}], id="no delta"),
        pytest.param(
            [{"type": "content_block_start", "index": at, "content_block": {"type": "text"}} for at in range(10_001)],
            id="too many blocks",
        ),
    ],
)
def test_a_stream_that_makes_no_sense_is_broken(events: list[Json]) -> None:
    reader = BlockReader()
    for event in events[:-1]:
        reader.feed(event)
    with pytest.raises(BrokenStream):
        reader.feed(events[-1])


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": None},
        {"choices": [[]]},
        {"choices": [{"delta": 1}]},
        {"choices": [{"delta": {"tool_calls": 1}}]},
    ],
)
def test_chunks_without_content_change_nothing(chunk: Json) -> None:
    assert [event["type"] for event in MessagesStream("m").feed(chunk)] == ["message_start"]


def test_a_call_without_a_name_is_broken() -> None:
    with pytest.raises(BrokenStream):
        MessagesStream("m").feed({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "t"}]}}]})


def test_unknown_events_and_blocks_change_nothing() -> None:
    stream = ChatStream("m", 1, with_usage=False)
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "brand_new", "text": "x"}}
    assert stream.feed({"type": "brand_new"}) == stream.feed(block) == []
