"""Answers of the Messages API as those of responses, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from outbound.ai.dialects import usage
from outbound.ai.dialects.blocks import Block, BlockReader, BlockStep
from outbound.ai.dialects.content import seal, suffix_of
from outbound.ai.dialects.responses_request import wants_summary
from store.credits.prices import TokenCounts

INCOMPLETE = {
    "max_tokens": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "refusal": "content_filter",
}
_PREFIXES = {"text": "msg", "tool_use": "fc", "thinking": "rs", "redacted_thinking": "rs"}
_ECHOED: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "top_p": None,
    "text": {"format": {"type": "text"}},
    "reasoning": None,
    "user": None,
}
"""Fields of a request that its answer repeats, and their values where the request has none."""


def whole(
    message: Mapping[str, Any],
    request: Mapping[str, Any],
    model: str,
    created: int,
    tokens: TokenCounts,
    credits_charged: int | None = None,
) -> dict[str, Any]:
    """The response. `created` is in seconds; `model` is the app's name of the model; `request` is the app's."""
    suffix = suffix_of(message.get("id"))
    blocks = [block for block in BlockReader.of_message(message) if block.kind in _PREFIXES]
    told = wants_summary(request)
    output = [_item(block, _id(block, suffix, place), told) for place, block in enumerate(blocks)]
    frame = _frame(request, model, created, suffix)
    return _ended(frame, output, message.get("stop_reason"), tokens, credits_charged)


class ResponsesStream:
    """Turns events of the Messages API into those of responses. `feed` keeps back the end, so that `end` can come after
    the settlement. Raises BrokenStream for events that make no sense."""

    def __init__(self, request: Mapping[str, Any], model: str, created: int) -> None:
        self._request, self._model, self._created = request, model, created
        self._told = wants_summary(request)
        self._frame = _frame(request, model, created, "0")
        self._suffix = "0"
        self._blocks = BlockReader()
        self._places: dict[int, int] = {}
        self._output: dict[int, dict[str, Any]] = {}
        self._reason: object = None
        self._number = 0

    def feed(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events for an event. Unknown events have none."""
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message")
            self._suffix = suffix_of(message.get("id") if isinstance(message, dict) else None)
            self._frame = _frame(self._request, self._model, self._created, self._suffix)
            response = {**self._frame, "status": "in_progress", "output": [], "usage": None}
            return [self._event(f"response.{name}", response=response) for name in ("created", "in_progress")]
        if kind == "message_delta":
            delta = event.get("delta")
            self._reason = delta.get("stop_reason") if isinstance(delta, dict) else None
            return []
        step = self._blocks.feed(event)
        if step is None or step.block.kind not in _PREFIXES:
            return []
        return self._begin(step) + self._grow(step) + self._finish(step)

    def end(self, tokens: TokenCounts, credits_charged: int | None = None) -> list[dict[str, Any]]:
        """The last event: the whole response."""
        output = [self._output[place] for place in sorted(self._output)]
        response = _ended(self._frame, output, self._reason, tokens, credits_charged)
        return [self._event(f"response.{response['status']}", response=response)]

    def fail(self, code: str, message: str) -> dict[str, Any]:
        """The event for a failure in the middle. Its `error` is where the SDKs look for one."""
        told = {"code": code, "message": message, "param": None}
        return self._event("error", **told, error={"type": code, **told})

    def _begin(self, step: BlockStep) -> list[dict[str, Any]]:
        if not step.began:
            return []
        block = step.block
        place = self._places[block.index] = len(self._places)
        empty = Block(block.index, block.kind, block.id, block.name)
        item = {**_item(empty, self._item_id(block), self._told), "status": "in_progress"}
        if block.kind == "text":
            item["content"] = []
        item.pop("encrypted_content", None)
        events = [self._event("response.output_item.added", output_index=place, item=item)]
        if block.kind == "text":
            events.append(self._of(block, "content_part.added", content_index=0, part=_said("")))
        elif block.kind == "thinking" and self._told:
            events.append(self._of(block, "reasoning_summary_part.added", summary_index=0, part=_summary("")))
        return events

    def _grow(self, step: BlockStep) -> list[dict[str, Any]]:
        block = step.block
        if not step.piece:
            return []
        if block.kind == "text":
            return [self._of(block, "output_text.delta", content_index=0, delta=step.piece, logprobs=[])]
        if block.kind == "tool_use":
            return [self._of(block, "function_call_arguments.delta", delta=step.piece)]
        if self._told:
            return [self._of(block, "reasoning_summary_text.delta", summary_index=0, delta=step.piece)]
        return []

    def _finish(self, step: BlockStep) -> list[dict[str, Any]]:
        if not step.ended:
            return []
        block, events = step.block, []
        place, text = self._places[block.index], block.text
        item = self._output[place] = _item(block, self._item_id(block), self._told)
        if block.kind == "text":
            events.append(self._of(block, "output_text.done", content_index=0, text=text, logprobs=[]))
            events.append(self._of(block, "content_part.done", content_index=0, part=_said(text)))
        elif block.kind == "tool_use":
            events.append(self._of(block, "function_call_arguments.done", name=block.name, arguments=text))
        elif block.kind == "thinking" and self._told:
            events.append(self._of(block, "reasoning_summary_text.done", summary_index=0, text=text))
            events.append(self._of(block, "reasoning_summary_part.done", summary_index=0, part=_summary(text)))
        return [*events, self._event("response.output_item.done", output_index=place, item=item)]

    def _item_id(self, block: Block) -> str:
        return _id(block, self._suffix, self._places[block.index])

    def _of(self, block: Block, event: str, **fields: Any) -> dict[str, Any]:
        place = self._places[block.index]
        return self._event(f"response.{event}", item_id=self._item_id(block), output_index=place, **fields)

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event


def _frame(request: Mapping[str, Any], model: str, created: int, suffix: str) -> dict[str, Any]:
    """A response without what the model did."""
    echoed = {name: default if request.get(name) is None else request[name] for name, default in _ECHOED.items()}
    tools = [{"parameters": None, "strict": False, **tool} for tool in request.get("tools") or []]
    shape = {"format": {"type": "text"}, **echoed["text"]}
    fixed = {"background": False, "previous_response_id": None, "store": False, "truncation": "disabled"}
    frame = {"id": f"resp_{suffix}", "object": "response", "created_at": created, "model": model}
    return {**frame, **echoed, "text": shape, "tools": tools, **fixed, "error": None, "incomplete_details": None}


def _ended(
    frame: dict[str, Any],
    output: list[dict[str, Any]],
    reason: object,
    tokens: TokenCounts,
    credits_charged: int | None,
) -> dict[str, Any]:
    why = INCOMPLETE.get(reason) if isinstance(reason, str) else None
    return {
        **frame,
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "output": output,
        "usage": usage.in_responses(tokens, credits_charged),
    }


def _id(block: Block, suffix: str, place: int) -> str:
    return f"{_PREFIXES[block.kind]}_{suffix}_{place}"


def _item(block: Block, item_id: str, told: bool) -> dict[str, Any]:
    return _ITEMS[block.kind](block, item_id, told)


def _message(block: Block, item_id: str, told: bool) -> dict[str, Any]:
    content = [_said(block.text)]
    return {"id": item_id, "type": "message", "status": "completed", "role": "assistant", "content": content}


def _call(block: Block, item_id: str, told: bool) -> dict[str, Any]:
    call = {"id": item_id, "type": "function_call", "status": "completed"}
    return {**call, "arguments": block.text, "call_id": block.id, "name": block.name}


def _reasoning(block: Block, item_id: str, told: bool) -> dict[str, Any]:
    summary = [_summary(block.text)] if told and block.text else []
    item = {"id": item_id, "type": "reasoning", "status": "completed", "summary": summary}
    return {**item, "encrypted_content": seal(block.thinking)}


_ITEMS: Mapping[str, Callable[[Block, str, bool], dict[str, Any]]] = {
    "text": _message,
    "tool_use": _call,
    "thinking": _reasoning,
    "redacted_thinking": _reasoning,
}


def _said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}
