"""Calls of apps that speak the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects.messages_answer import MessagesStream, whole
from outbound.ai.dialects.messages_request import to_chat
from outbound.ai.dialects.same import is_counted
from outbound.ai.dialects.text_events import TextEvent
from outbound.ai.dialects.wire import event as written
from outbound.ai.events import StreamEvent, encoded
from outbound.ai.exchange.base import ForMessages, Halves, required, split
from outbound.ai.models import Model
from outbound.ai.protocols import DONE, Dialect
from store.credits.prices import MAX_TOKENS, TokenCounts

_END = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


class SameMessages(ForMessages):
    """The server speaks it, too: everything goes on and comes back as it came, but for the model's name."""

    def __init__(self, body: dict[str, Any], model: Model) -> None:
        request = {name: value for name, value in body.items() if name != "max_tokens"}
        super().__init__(model, request, ("max_tokens",), min(body["max_tokens"], model.max_output))
        self.least_output = least_output(request)
        self._last: StreamEvent | None = None

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The reply, with the app's name of the model."""
        reply = {**reply, "model": self.model_id}
        for name in ("credits", "error"):
            reply.pop(name, None)
        return split(encoded(reply), 1, b"credits")

    def feed(self, event: StreamEvent) -> bytes:
        """The event. The last `message_delta` waits for the cost."""
        if isinstance(event, TextEvent) and self._last is None:
            return event.raw
        name, last = event.name, self._last
        required(not event.data.get("error"), "the server failed")
        if name == "message_stop":
            required(last)
            self.done = True
            return b""
        before = b""
        if last is not None and name != "ping":
            before, self._last = last.encoded(), None
        if name == "message_delta":
            self._last = event
            return before
        if name == "message_start":
            message = event.data.get("message")
            if isinstance(message, dict):
                event = StreamEvent(name, {**event.data, "message": {**message, "model": self.model_id}})
        return before + event.encoded()

    def end(self, tokens: TokenCounts) -> Halves:
        """The last `message_delta`, and `message_stop`."""
        assert self._last is not None
        data = {name: value for name, value in self._last.data.items() if name != "credits"}
        head, tail = split(encoded(data), 1, b"credits")
        return b"event: message_delta\ndata: " + head, tail + b"\n\n" + _END


class MessagesOverChat(ForMessages):
    """The server speaks chat/completions."""

    asks: Dialect = "chat"

    def __init__(self, body: dict[str, Any], model: Model, *, stream: bool) -> None:
        """Raises Untranslatable."""
        limit = min(body["max_tokens"], model.max_output)
        super().__init__(model, to_chat(body, limit, model.output_limit), (model.output_limit,), limit)
        self._stream = MessagesStream(model.model_id)
        self.late = model.thinking != "none" or not is_counted(self.request["messages"])
        if stream:
            self.request["stream_options"] = {"include_usage": True}

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The completion as a message."""
        return split(encoded(whole(reply, self.model_id, tokens)), 1, b"credits")

    def feed(self, event: StreamEvent) -> bytes:
        """The events for a chunk."""
        if event.name == DONE:
            self.done = True
            return b""
        return b"".join(map(written, self._stream.feed(event.data)))

    def end(self, tokens: TokenCounts) -> Halves:
        """The ends of open blocks, the last `message_delta`, and `message_stop`."""
        *before, last, _ = self._stream.end(tokens)
        head, tail = split(encoded(last), 1, b"credits")
        return b"".join(map(written, before)) + b"event: message_delta\ndata: " + head, tail + b"\n\n" + _END


def least_output(request: Mapping[str, Any]) -> int:
    """More than the limit for thinking, or a server of the Messages API refuses the call."""
    thinking = request.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return budget + 1 if isinstance(budget, int) and 0 < budget < MAX_TOKENS else 1
