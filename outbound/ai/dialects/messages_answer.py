"""Answers of chat/completions as those of the Messages API, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from outbound.ai.dialects import usage
from outbound.ai.dialects.blocks import MOST_BLOCKS, MOST_TEXT
from outbound.ai.dialects.content import Joiner, arguments_of, suffix_of
from outbound.ai.events import BrokenStream
from store.credits.prices import TokenCounts

STOPPED = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def whole(completion: Mapping[str, Any], model: str, tokens: TokenCounts) -> dict[str, Any]:
    """The message. `model` is the app's name of the model."""
    choice = _choice(completion)
    answer = choice.get("message")
    answer = answer if isinstance(answer, dict) else {}
    said = _text(answer, "content") + _text(answer, "refusal")
    content: list[dict[str, Any]] = [{"type": "text", "text": said}] if said else []
    for call in _calls(answer):
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments = _text(function, "name"), arguments_of(function.get("arguments"))
        content.append({"type": "tool_use", "id": _text(call, "id"), "name": name, "input": arguments})
    reason = _reason(choice.get("finish_reason"), refused=bool(_text(answer, "refusal")))
    return {
        **_message(completion, model),
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage.in_messages(tokens),
    }


@dataclass(slots=True)
class _Open:
    """A block that has begun at the server. Its events wait until it is the one being written."""

    begin: dict[str, Any]
    delta: str
    member: str
    waiting: list[str] = field(default_factory=list)
    joiner: Joiner = field(default_factory=Joiner)


class MessagesStream:
    """Conversation chunks into events of the Messages API. `feed` keeps back the end, so that `end` can come after the
    settlement. Raises BrokenStream for chunks that make no sense.

    Blocks of the Messages API follow each other, but chunks may belong to several calls in turns, and only the end of
    the stream ends a call. So the first call is written as it comes, and the others wait for the end.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._begun = self._refused = False
        self._reason: object = None
        self._queue: list[_Open] = []
        self._calls: dict[int, _Open] = {}
        self._written = 0
        self._blocks = 0
        self._size = 0

    def feed(self, chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events for a chunk."""
        events: list[dict[str, Any]] = []
        if not self._begun:
            self._begun = True
            message = {**_message(chunk, self._model), "content": [], "stop_reason": None, "stop_sequence": None}
            message["usage"] = usage.in_messages(TokenCounts())
            events.append({"type": "message_start", "message": message})
        choice = _choice(chunk)
        if choice.get("finish_reason") is not None:
            self._reason = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return events
        refusal = _text(delta, "refusal")
        self._refused = self._refused or bool(refusal)
        if said := _text(delta, "content") + refusal:
            events += self._say(said)
        for call in _calls(delta):
            events += self._call(call)
        return events

    def end(self, tokens: TokenCounts, credits: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The last events: open blocks end, then the tokens and, as the last field, the credits."""
        events = []
        while self._queue:
            events += self._close()
        delta = {"stop_reason": _reason(self._reason, refused=self._refused), "stop_sequence": None}
        last: dict[str, Any] = {"type": "message_delta", "delta": delta, "usage": usage.in_messages(tokens)}
        return [*events, {**last, "credits": credits} if credits is not None else last, {"type": "message_stop"}]

    def _say(self, said: str) -> list[dict[str, Any]]:
        events = []
        if not self._queue or self._queue[-1].member != "text":
            events += self._open(_Open({"type": "text", "text": ""}, "text_delta", "text"))
        return events + self._add(self._queue[-1], said)

    def _call(self, call: Mapping[str, Any]) -> list[dict[str, Any]]:
        place, function = call.get("index", 0), call.get("function")
        function = function if isinstance(function, dict) else {}
        if not isinstance(place, int):
            raise BrokenStream("a call has no place")
        events = []
        if place not in self._calls:
            block = {"type": "tool_use", "id": _text(call, "id"), "name": _text(function, "name"), "input": {}}
            if not block["id"] or not block["name"]:
                raise BrokenStream("a call began without its id or its name")
            self._calls[place] = _Open(block, "input_json_delta", "partial_json")
            events += self._open(self._calls[place])
        return events + self._add(self._calls[place], _text(function, "arguments"))

    def _open(self, block: _Open) -> list[dict[str, Any]]:
        self._blocks += 1
        if self._blocks > MOST_BLOCKS:
            raise BrokenStream("an answer has too many blocks")
        self._queue.append(block)
        if len(self._queue) == 1:
            return [self._start(block)]
        # Text ends as soon as something else begins; a call may still grow.
        return self._close() if self._queue[0].member == "text" else []

    def _add(self, block: _Open, piece: str) -> list[dict[str, Any]]:
        self._size += len(piece)
        if self._size > MOST_TEXT:
            raise BrokenStream("an answer is too large")
        piece = block.joiner.feed(piece)
        if not piece:
            return []
        if block is self._queue[0]:
            return [self._delta(block, piece)]
        block.waiting.append(piece)
        return []

    def _close(self) -> list[dict[str, Any]]:
        """Ends the block being written, and begins the next with what waited."""
        block = self._queue.pop(0)
        events = [self._delta(block, rest)] if (rest := block.joiner.end()) else []
        events.append({"type": "content_block_stop", "index": self._written})
        self._written += 1
        if self._queue:
            following = self._queue[0]
            events.append(self._start(following))
            if following.waiting:
                events.append(self._delta(following, "".join(following.waiting)))
                following.waiting.clear()
        return events

    def _start(self, block: _Open) -> dict[str, Any]:
        return {"type": "content_block_start", "index": self._written, "content_block": block.begin}

    def _delta(self, block: _Open, piece: str) -> dict[str, Any]:
        delta = {"type": block.delta, block.member: piece}
        return {"type": "content_block_delta", "index": self._written, "delta": delta}


def _message(answer: Mapping[str, Any], model: str) -> dict[str, Any]:
    message_id = "msg_" + suffix_of(_text(answer, "id").removeprefix("chatcmpl-"))
    return {"id": message_id, "type": "message", "role": "assistant", "model": model}


def _choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice: a request of the Messages API never asks for more."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _calls(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = answer.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield call


def _reason(reason: object, *, refused: bool) -> str:
    if refused:
        return "refusal"
    return STOPPED.get(reason, "end_turn") if isinstance(reason, str) else "end_turn"


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""
