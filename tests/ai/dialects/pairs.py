"""Pairs of dialects, and their golden files: a request and an answer, whole and streamed, before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbound.ai.dialects import (
    chat_answer,
    chat_request,
    messages_answer,
    messages_request,
    responses_answer,
    responses_request,
    usage,
)
from store.credits.prices import TokenCounts

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))
MODEL, CREATED, MOST_OUTPUT, CREDITS = "latchkey-model", 1_790_000_000, 4_096, 1234
Json = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """How one dialect is translated to another, and its answers back."""

    request: Callable[[Json], Json]
    answer: Callable[[Json, Json], Json]
    stream: Callable[[Json, list[Json]], list[Json]]


def _tokens(reports: list[object], read: Callable[[object], TokenCounts]) -> TokenCounts:
    return read(next((report for report in reversed(reports) if report), None))


def _chat_stream(request: Json, events: list[Json]) -> list[Json]:
    stream = chat_answer.ChatStream(MODEL, CREATED, with_usage=chat_request.wants_usage(request))
    chunks = [chunk for event in events for chunk in stream.feed(event)]
    return chunks + stream.end(usage.of_messages(events[-2]["usage"]), CREDITS)


def _responses_stream(request: Json, events: list[Json]) -> list[Json]:
    stream = responses_answer.ResponsesStream(request, MODEL, CREATED)
    made = [made for event in events for made in stream.feed(event)]
    return made + stream.end(usage.of_messages(events[-2]["usage"]), CREDITS)


def _messages_stream(request: Json, chunks: list[Json]) -> list[Json]:
    stream = messages_answer.MessagesStream(MODEL)
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return events + stream.end(_tokens([chunk["usage"] for chunk in chunks], usage.of_chat), {"charged": CREDITS})


PAIRS: Mapping[str, Pair] = {
    "chat-messages": Pair(
        lambda body: chat_request.to_messages(body, MOST_OUTPUT),
        lambda body, answer: chat_answer.whole(answer, MODEL, CREATED, usage.of_messages(answer["usage"]), CREDITS),
        _chat_stream,
    ),
    "responses-messages": Pair(
        lambda body: responses_request.to_messages(body, MOST_OUTPUT),
        lambda body, answer: responses_answer.whole(
            answer, body, MODEL, CREATED, usage.of_messages(answer["usage"]), CREDITS
        ),
        _responses_stream,
    ),
    "messages-chat": Pair(
        lambda body: messages_request.to_chat(body, MOST_OUTPUT),
        lambda body, answer: messages_answer.whole(answer, MODEL, usage.of_chat(answer["usage"])),
        _messages_stream,
    ),
}


def given(path: Path) -> Json:
    """A golden file."""
    found: Json = json.loads(path.read_text("utf-8"))
    return found


def translated(case: Json) -> Json:
    """The golden file with what its pair makes of it."""
    pair = PAIRS[case["pair"]]
    request = case["request_in"]
    return {
        "pair": case["pair"],
        "request_in": request,
        "request_out": pair.request(request),
        "answer_in": case["answer_in"],
        "answer_out": pair.answer(request, case["answer_in"]),
        "stream_in": case["stream_in"],
        "stream_out": pair.stream(request, case["stream_in"]),
    }
