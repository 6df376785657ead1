"""Plans for a scripted server that speaks chat/completions and responses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from outbound.ai.models import Model, Models, Timeouts
from outbound.ai.openai import OpenAIUpstream
from store.credits.prices import Price
from tests.support.http.upstream import KEY, VENDOR_MODEL, Data, Plan
from tests.support.store.ai_spender import MODEL, PATIENT, PRICE

SAID = "It is a truth universally acknowledged."
CHAT_USAGE: Data = {
    "prompt_tokens": 25,
    "completion_tokens": 31,
    "total_tokens": 56,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 7},
}
RESPONSE_USAGE: Data = {
    "input_tokens": 25,
    "output_tokens": 31,
    "total_tokens": 56,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens_details": {"reasoning_tokens": 7},
}


def openai_models(
    url: str, limits: Timeouts = PATIENT, price: Price = PRICE, *, max_output: int = 4096, **about: Any
) -> Models:
    """One model on a scripted server of OpenAI's dialects."""
    upstream = OpenAIUpstream("scripted", url, KEY, limits, 100)
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    model = Model(MODEL, "Scripted", upstream, VENDOR_MODEL, 200_000, max_output, ((begins, price),), **about)
    return Models((model,))


def call_of(name: str, arguments: Data, call_id: str = "call_1") -> Data:
    """A call of a tool."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def completion(said: str | None = SAID, *calls: Data, usage: object = CHAT_USAGE, **changes: Any) -> Data:
    """A reply of chat/completions."""
    message = {"role": "assistant", "content": said, "refusal": None, **({"tool_calls": list(calls)} if calls else {})}
    reason = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": VENDOR_MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": usage,
        "system_fingerprint": "fp_1",
        **changes,
    }


def chunks_of(reply: Data) -> list[Data]:
    """The chunks of a streamed reply: text word by word, calls of tools in two pieces, and last the usage."""
    head = {name: value for name, value in reply.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    chunks: list[Data] = []

    def add(place: int, delta: Data, reason: str | None = None) -> None:
        chunks.append({**head, "choices": [{"index": place, "delta": delta, "finish_reason": reason}], "usage": None})

    for choice in reply["choices"]:
        place, message = choice["index"], choice["message"]
        add(place, {"role": "assistant", "content": ""})
        for word in (message["content"] or "").replace(" ", "\0 ").split("\0"):
            if word:
                add(place, {"content": word})
        for number, call in enumerate(message.get("tool_calls", ())):
            named = {**call, "index": number, "function": {"name": call["function"]["name"], "arguments": ""}}
            add(place, {"tool_calls": [named]})
            arguments = call["function"]["arguments"]
            for piece in (arguments[:5], arguments[5:]):
                add(place, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
        add(place, {}, choice["finish_reason"])
    if reply["usage"] is not None:
        chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return chunks


@dataclass(frozen=True)
class ChatPlan(Plan):
    """The script for one request of chat/completions. `events` are chunks; `done`: whether the end is marked."""

    reply: Data = field(default_factory=completion)
    done: bool = True

    def stream(self) -> list[bytes]:
        """The chunks as bytes."""
        chunks: Sequence[Data] = chunks_of(self.reply) if self.events is None else self.events
        end = [b"data: [DONE]\n\n"] if self.done else []
        return [b"data: %b\n\n" % json.dumps(one).encode() for one in chunks] + end


def item_of(said: str) -> Data:
    """A message of a response."""
    part = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def response(*output: Data, usage: object = RESPONSE_USAGE, **changes: Any) -> Data:
    """A reply of responses."""
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": VENDOR_MODEL,
        "output": list(output or (item_of(SAID),)),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "store": False,
        "usage": usage,
        **changes,
    }


def response_events(reply: Data) -> list[Data]:
    """The events of a streamed response; text comes word by word."""
    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    events: list[Data] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(reply["output"]):
        events.append({"type": "response.output_item.added", "output_index": place, "item": {**item, "content": []}})
        if item["type"] == "message":
            at = {"item_id": item["id"], "output_index": place, "content_index": 0}
            part = item["content"][0]
            events.append({"type": "response.content_part.added", **at, "part": {**part, "text": ""}})
            for word in part["text"].replace(" ", "\0 ").split("\0"):
                events.append({"type": "response.output_text.delta", **at, "delta": word, "logprobs": []})
            events.append({"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []})
            events.append({"type": "response.content_part.done", **at, "part": part})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": f"response.{reply['status']}", "response": reply})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


@dataclass(frozen=True)
class ResponsesPlan(Plan):
    """The script for one request of responses."""

    reply: Data = field(default_factory=response)

    def stream(self) -> list[bytes]:
        """The events as bytes."""
        events = response_events(self.reply) if self.events is None else self.events
        return [b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events]
