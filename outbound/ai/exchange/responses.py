"""Calls of apps that speak responses. Nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects import same, usage
from outbound.ai.dialects.responses_answer import ResponsesStream, whole
from outbound.ai.dialects.responses_request import to_messages
from outbound.ai.dialects.text_events import TextEvent
from outbound.ai.dialects.wire import event as written
from outbound.ai.events import StreamEvent, encoded
from outbound.ai.exchange.base import ForResponses, Halves, required, split, without_cost
from outbound.ai.exchange.messages import least_output
from outbound.ai.models import Model
from outbound.ai.protocols import Dialect
from store.clock import wall
from store.credits.prices import TokenCounts

_ENDS = ("response.completed", "response.incomplete")


class ResponsesOverMessages(ForResponses):
    """The server speaks the Messages API."""

    def __init__(self, body: dict[str, Any], model: Model) -> None:
        """Raises Untranslatable."""
        request = to_messages(body, model.max_output, model.thinking)
        super().__init__(model, request, ("max_tokens",), request["max_tokens"])
        self.least_output = least_output(request)
        self._body = {name: value for name, value in body.items() if name != "input"}  # what an answer may repeat
        self._created = int(wall.time())
        self._stream = ResponsesStream(self._body, model.model_id, self._created)
        self._stops = False

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The message as a response."""
        made = whole(reply, self._body, self.model_id, self._created, tokens)
        return split(encoded(made), 2, b"credits_charged")

    def feed(self, event: StreamEvent) -> bytes:
        """The events for an event."""
        self._stops = self._stops or event.name == "message_delta"
        if event.name == "message_stop":
            required(self._stops)
            self.done = True
        return b"".join(map(written, self._stream.feed(event.data)))

    def end(self, tokens: TokenCounts) -> Halves:
        """The whole response."""
        return split_event(self._stream.end(tokens)[-1])

    def fail(self, envelope: Mapping[str, Any]) -> bytes:
        """An event `error`."""
        error = envelope["error"]
        return written(self._stream.fail(error["code"], error["message"]))


class SameResponses(ForResponses):
    """The server speaks it, too: everything goes on and comes back as it came, but for the model's name and the report
    of tokens."""

    asks: Dialect = "responses"

    def __init__(self, body: dict[str, Any], model: Model, betas: list[str]) -> None:
        """Raises Untranslatable."""
        strict = model.refuses_unknown
        prepared = same.responses(body, model.upstream_id, model.max_output, strict=strict)
        super().__init__(model, prepared.body, prepared.limits, prepared.most_output)
        self.headers = same.forwarded_headers(betas, strict=strict)
        self.late = model.thinking != "none" or not same.is_counted(body.get("input"))
        self._last: dict[str, Any] = {}
        self._number = 0

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """The reply, with the app's name of the model."""
        required(reply.get("status") != "failed" and not reply.get("error"), "the server failed")
        return split(encoded(self._ended(reply, tokens)), 2, b"credits_charged")

    def feed(self, event: StreamEvent) -> bytes:
        """The event. The last one, with the whole response, waits for the cost."""
        if isinstance(event, TextEvent):
            number = event.match[4]
            self._number = self._number + 1 if number is None else int(number) + 1
            return event.raw
        data, response = event.data, event.data.get("response")
        number = data.get("sequence_number")
        self._number = number + 1 if isinstance(number, int) else self._number + 1
        required(event.name != "response.failed" and not data.get("error"), "the server failed")
        required(not isinstance(response, dict) or not response.get("error"), "the server failed")
        if event.name in _ENDS:
            required(isinstance(response, dict), "a response is none")
            self._last, self.done = data, True
            return b""
        if isinstance(response, dict) and response.get("model") != self.model_id:
            return written({**data, "response": {**response, "model": self.model_id}})
        return event.encoded()

    def end(self, tokens: TokenCounts) -> Halves:
        """The whole response."""
        known = {name: value for name, value in self._last.items() if name != "response"}
        return split_event({**known, "response": self._ended(self._last["response"], tokens)})

    def fail(self, envelope: Mapping[str, Any]) -> bytes:
        """An event `error`."""
        error = envelope["error"]
        told = {name: error[name] for name in ("code", "message", "param")}
        return written({"type": "error", "sequence_number": self._number, **told, "error": error})

    def _ended(self, response: Mapping[str, Any], tokens: TokenCounts) -> dict[str, Any]:
        report = without_cost(response.get("usage")) or usage.in_responses(tokens)
        known = {name: value for name, value in response.items() if name != "usage"}
        return {**known, "model": self.model_id, "usage": report}


def split_event(data: Mapping[str, Any]) -> Halves:
    """The last event of a stream, whose response ends with its report."""
    head, tail = split(written(data).removesuffix(b"\n\n"), 3, b"credits_charged")
    return head, tail + b"\n\n"
