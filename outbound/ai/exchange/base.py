"""One call between two dialects: an app speaks one, and a model's server may speak another."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from outbound.ai.dialects.wire import chunk, event
from outbound.ai.events import BrokenStream, StreamEvent, WrittenRequest, encoded, having, strictly_encoded
from outbound.ai.long_request import LONG
from outbound.ai.models import Model
from outbound.ai.protocols import Dialect
from store.credits.prices import TokenCounts

Halves = tuple[bytes, bytes]
"""A text in two parts: the cost is written between them."""


class ModelExchange:
    """The request for the server, and the way back of its reply. A stream is fed event by event; its end waits, so that
    it can have the cost. Every method that reads a reply raises BrokenStream if that makes no sense."""

    asks: Dialect = "messages"
    """The API in which the server is asked."""
    choices = 1
    """Answers that the server writes, each of at most `most_output` tokens."""
    least_output = 1
    """With fewer tokens, the call makes no sense."""
    searches = 0
    """Searches of the web that the server may make. It reads the whole conversation once more after each."""
    late = False
    """Whether only the end of a stream tells what the server read, or thought unseen. Then it runs to its end without
    its app, too."""
    headers: Mapping[str, str] = MappingProxyType({})
    """The headers of the app's request that go on."""

    def __init__(self, model: Model, request: dict[str, Any], limits: tuple[str, ...], most_output: int) -> None:
        self.model_id = model.model_id
        self.request = request
        self.most_output = most_output
        self.stream = False
        """Whether the app wants a stream."""
        self.done = False
        """Whether a stream has all of its events."""
        self._limits = limits
        self._text: bytes | None = None

    @property
    def text(self) -> bytes:
        """The request as JSON. Raises ValueError for half a character or an infinite number, RecursionError."""
        if self._text is None:
            self._text = strictly_encoded(self.request)
        return self._text

    @property
    def added(self) -> tuple[str, ...]:
        """The members of a request that are set when it is made: by `ask`, and for the server that is asked."""
        return "model", "stream", *self._limits

    @property
    def size(self) -> int:
        """The length of the request in bytes. Raises as `text`."""
        return len(self.text)

    def ask(self, output_tokens: int) -> Mapping[str, Any]:
        """The request with its output limit: `output_tokens` for all choices together."""
        limits = dict.fromkeys(self._limits, output_tokens // self.choices)
        known = self.request if LONG in self.request else WrittenRequest(self.request, self.text)
        return having(known, limits)

    def let_go(self, asked: WrittenRequest) -> bytes:
        """Frees the request, also as it was `asked`, and returns its text."""
        asked.clear()
        asked.text = b""
        text, self.request, self._text = self.text, {}, None
        return text

    def whole(self, reply: Mapping[str, Any], tokens: TokenCounts) -> Halves:
        """A whole reply. `tokens` were used."""
        raise NotImplementedError

    def feed(self, event: StreamEvent) -> bytes:
        """What the app gets for an event; may be empty."""
        raise NotImplementedError

    def end(self, tokens: TokenCounts) -> Halves:
        """The end of a stream that is done."""
        raise NotImplementedError

    def cost(self, charged: int, remaining: int | None) -> bytes:
        """The cost, as it is written between the halves. Both are in micro-dollars; `remaining` is None if the app may
        not know what is left."""
        return b"%d" % charged

    def fail(self, envelope: Mapping[str, Any]) -> bytes:
        """The end of a stream that failed after its begin. `envelope`: the error as the app's dialect has it."""
        raise NotImplementedError


class ForMessages(ModelExchange):
    """The app speaks the Messages API."""

    def cost(self, charged: int, remaining: int | None) -> bytes:
        """An object with the cost and, unless unknown, what is left."""
        left = {} if remaining is None else {"remaining": remaining}
        return encoded({"charged": charged, **left})

    def fail(self, envelope: Mapping[str, Any]) -> bytes:
        """An event `error`."""
        return event(envelope)


class ForChat(ModelExchange):
    """The app speaks chat/completions. `with_usage`: a stream has a report of its tokens, and of its cost."""

    with_usage = True

    def cost(self, charged: int, remaining: int | None) -> bytes:
        """The cost; nothing if there is no report to have it."""
        return b"%d" % charged if self.with_usage else b""

    def fail(self, envelope: Mapping[str, Any]) -> bytes:
        """A chunk with the error."""
        return chunk(envelope)


class ForResponses(ModelExchange):
    """The app speaks responses."""


def required(condition: object, why: str = "the stream ended before its end") -> None:
    """Raises BrokenStream unless the condition holds."""
    if not condition:
        raise BrokenStream(why)


def without_cost(usage: object) -> dict[str, Any] | None:
    """A server's report without a cost of its own; None if there is none."""
    if not isinstance(usage, dict):
        return None
    return {name: value for name, value in usage.items() if name != "credits_charged"}


def split(encoded_text: bytes, braces: int, name: bytes) -> Halves:
    """Makes room for a last member `name` in the innermost of the objects that end the text."""
    at = len(encoded_text) - braces
    return encoded_text[:at] + b',"%b":' % name, encoded_text[at:]
