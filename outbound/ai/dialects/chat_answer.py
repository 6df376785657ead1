"""Answers of the Messages API as those of chat/completions, whole and streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects import usage
from outbound.ai.dialects.blocks import Block, BlockReader
from outbound.ai.dialects.content import suffix_of
from store.credits.prices import TokenCounts

FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "stop",
    "refusal": "content_filter",
}


def whole(
    message: Mapping[str, Any], model: str, created: int, tokens: TokenCounts, credits_charged: int | None = None
) -> dict[str, Any]:
    """The completion. `created` is in seconds; `model` is the app's name of the model."""
    blocks = BlockReader.of_message(message)
    said = "".join(block.text for block in blocks if block.kind == "text")
    calls = [_call(block) for block in blocks if block.kind == "tool_use"]
    answer: dict[str, Any] = {"role": "assistant", "content": said if said or not calls else None, "refusal": None}
    if calls:
        answer["tool_calls"] = calls
    reason = _reason(message.get("stop_reason"))
    return {
        "id": "chatcmpl-" + suffix_of(message.get("id")),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": reason}],
        "usage": usage.in_chat(tokens, credits_charged),
    }


class ChatStream:
    """Turns events of the Messages API into chunks. `feed` keeps back the reason of the end, so that `end` can come
    after the settlement. Raises BrokenStream for events that make no sense."""

    def __init__(self, model: str, created: int, *, with_usage: bool) -> None:
        self._head: dict[str, Any] = {
            "id": "chatcmpl-0",
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._with_usage = with_usage
        self._blocks = BlockReader()
        self._calls: dict[int, int] = {}
        self._reason: object = None

    def feed(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chunks for an event. Unknown events have none."""
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message")
            self._head["id"] = "chatcmpl-" + suffix_of(message.get("id") if isinstance(message, dict) else None)
            return [self._chunk({"role": "assistant", "content": "", "refusal": None})]
        if kind == "message_delta":
            delta = event.get("delta")
            self._reason = delta.get("stop_reason") if isinstance(delta, dict) else None
            return []
        step = self._blocks.feed(event)
        if step is None:
            return []
        chunks = []
        if step.began and step.block.kind == "tool_use":
            self._calls[step.block.index] = len(self._calls)
            function = {"name": step.block.name, "arguments": ""}
            chunks.append(self._call(step.block, {"id": step.block.id, "type": "function", "function": function}))
        if step.piece and step.block.kind == "text":
            chunks.append(self._chunk({"content": step.piece}))
        elif step.piece and step.block.kind == "tool_use":
            chunks.append(self._call(step.block, {"function": {"arguments": step.piece}}))
        return chunks

    def end(self, tokens: TokenCounts, credits_charged: int | None = None) -> list[dict[str, Any]]:
        """The last chunks: why the answer ended and, where the app asked for it, the tokens."""
        last = self._chunk({}, _reason(self._reason))
        if not self._with_usage:
            return [last]
        report = {"choices": [], "usage": usage.in_chat(tokens, credits_charged)}
        return [last, {**self._head, **report}]

    def _call(self, block: Block, call: dict[str, Any]) -> dict[str, Any]:
        return self._chunk({"tool_calls": [{"index": self._calls[block.index], **call}]})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**self._head, "choices": [choice], **({"usage": None} if self._with_usage else {})}


def _call(block: Block) -> dict[str, Any]:
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.text}}


def _reason(reason: object) -> str:
    return FINISHED.get(reason, "stop") if isinstance(reason, str) else "stop"
