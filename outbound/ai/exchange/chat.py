"""Calls of apps that speak chat/completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects import same, usage
from outbound.ai.dialects.chat_answer import ChatStream, whole
from outbound.ai.dialects.chat_request import to_messages, wants_usage
from outbound.ai.dialects.text_events import TextEvent, chunk_for
from outbound.ai.dialects.wire import DONE, chunk
from outbound.ai.events import StreamEvent, encoded
from outbound.ai.exchange.base import ForChat, Halves, required, split, without_cost
from outbound.ai.exchange.messages import least_output
from outbound.ai.models import Model
from outbound.ai.protocols import DONE as DONE_EVENT
from outbound.ai.protocols import Dialect
from store.clock import wall
from store.credits.prices import TokenCounts

_HEAD = ("id", "object", "created", "model")


class ChatOverMessages(ForChat):
    """The server speaks the Messages API."""

    def __init__(self, body: dict[str, Any], model: Model) -> None:
        """Raises Untranslatable."""
        request = to_messages(body, model.max_output, model.thinking)
        super().__init__(model, request, ("max_tokens",), request["max_tokens"])
        self.least_output = least_output(request)
        self.with_usage = body.get("stream") is not True or wants_usage(body)
        self._created = int(wall.time())
        self._stream = ChatStream(model.model_id, self._created, with_usage=self.with_usage)
        self._stops = False

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The message as a completion."""
        return split(encoded(whole(reply, self.model_id, self._created, tokens)), 2, b"credits_charged")

    def feed(self, event: StreamEvent) -> bytes:
        """The chunks for an event."""
        self._stops = self._stops or event.name == "message_delta"
        if event.name == "message_stop":
            required(self._stops)
            self.done = True
        return b"".join(map(chunk, self._stream.feed(event.data)))

    def end(self, tokens: TokenCounts) -> Halves:
        """Why the answer ended and, if the app wants them, its tokens."""
        last, *report = self._stream.end(tokens)
        return _end(chunk(last), report[0] if report else None)


class SameChat(ForChat):
    """The server speaks it, too: everything goes on and comes back as it came, but for the model's name and the reports
    of tokens."""

    asks: Dialect = "chat"

    def __init__(self, body: dict[str, Any], model: Model, betas: list[str]) -> None:
        """Raises Untranslatable."""
        strict = model.refuses_unknown
        prepared = same.chat(body, model.upstream_id, model.max_output, model.output_limit, strict=strict)
        super().__init__(model, prepared.body, prepared.limits, prepared.most_output)
        self.choices = self.least_output = prepared.choices
        self.with_usage = body.get("stream") is not True or prepared.usage
        self.headers = same.forwarded_headers(betas, strict=strict)
        self.late = model.thinking != "none" or not same.is_counted(body.get("messages"))
        self._report: dict[str, Any] | None = None
        self._head: dict[str, Any] = {"object": "chat.completion.chunk"}
        self._kept = b""
        self._last: TextEvent | None = None
        self._name = encoded(self.model_id)

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The reply, with the app's name of the model."""
        report = without_cost(reply.get("usage")) or usage.in_chat(tokens)
        known = {name: value for name, value in reply.items() if name not in ("usage", "error")}
        if isinstance(choices := reply.get("choices"), list):
            known["choices"] = _without_errors(choices)
        return split(encoded({**known, "model": self.model_id, "usage": report}), 2, b"credits_charged")

    def feed(self, event: StreamEvent) -> bytes:
        """The chunk. Reports wait for the end, and so does why an answer ended, unless others go on."""
        if isinstance(event, TextEvent):
            self._last = event
            before, self._kept = self._kept, b""
            return before + chunk_for(event, self._name, with_usage=self.with_usage)
        if event.name == DONE_EVENT:
            self.done = True
            return b""
        self._last = None
        data = {**event.data, "model": self.model_id}
        self._head = {name: data[name] for name in _HEAD if name in data}
        self._report = without_cost(data.pop("usage", None)) or self._report
        choices = data.get("choices")
        if isinstance(choices, list):
            data["choices"] = choices = _without_errors(choices)
        if not choices and self._report is not None:
            return b""
        piece = chunk({**data, "usage": None} if self.with_usage else data)
        if isinstance(choices, list) and any(isinstance(one, dict) and one.get("finish_reason") for one in choices):
            before, self._kept = self._kept, piece
            return before
        before, self._kept = self._kept, b""
        return before + piece

    def end(self, tokens: TokenCounts) -> Halves:
        """Why the answer ended and, if the app wants them, its tokens."""
        if self._last is not None:
            data = {**self._last.data, "model": self.model_id}
            self._head = {name: data[name] for name in _HEAD if name in data}
        report = {**self._head, "choices": [], "usage": self._report or usage.in_chat(tokens)}
        return _end(self._kept, report if self.with_usage else None)


def _without_errors(choices: list[Any]) -> list[Any]:
    """Choices without what the server says of an error in them."""
    if not any(isinstance(choice, dict) and "error" in choice for choice in choices):
        return choices
    known = (choice for choice in choices if isinstance(choice, dict))
    return [{name: value for name, value in choice.items() if name != "error"} for choice in known]


def _end(before: bytes, report: Mapping[str, Any] | None) -> Halves:
    if report is None:
        return before, DONE
    head, tail = split(encoded(report), 2, b"credits_charged")
    return before + b"data: " + head, tail + b"\n\n" + DONE
