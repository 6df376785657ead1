"""Models, their prices and their servers, as the operator configures them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Protocol

from outbound.ai.dialects.conversation import Thinking
from outbound.ai.events import StreamEvent
from outbound.ai.health import Health
from outbound.ai.protocols import Dialect
from store.clock import wall
from store.credits.prices import Price


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds: to connect, to the first byte of the answer, between two events, and in all."""

    connect: float = 10.0
    first_byte: float = 120.0
    between_events: float = 60.0
    total: float = 600.0


class Asker:
    """The caller of a model. This one waits for the reply and does no accounting."""

    headers: Mapping[str, str] = MappingProxyType({})
    """Headers of the caller's request that go on."""

    dialect: Dialect = "messages"
    """The API of the request and of the reply."""

    begins_by: float | None = None
    """When the answer must have begun, in the loop's time, if that is earlier than the server's own limit."""

    @property
    def wanted(self) -> bool:
        """Whether the caller still wants another attempt."""
        return True

    def ask(self, server: str) -> None:
        """Called before each attempt, with the name of the server that is asked."""

    def accept(self) -> None:
        """Called when the server accepts the call with a 200: from then on the call costs money."""

    def refuse(self) -> None:
        """Called when an accepted call is refused after all, because only an error arrived. Each accepted attempt can
        be refused once."""

    def receive(self, body: bytearray) -> None:
        """Receives the buffer of a whole reply's body, or the unreadable rest of a stream. The bytes in it count."""


NOBODY = Asker()


class Upstream(Protocol):
    """A server of models, which is asked in the dialect of the asker. Each call raises UpstreamFailed."""

    name: str
    dialect: str
    """The APIs that the server speaks, as in the file of `--ai-config`: anthropic or openai."""
    limits: Timeouts
    refuses_unknown: bool
    """Whether fields, blocks and betas that nobody knows here are refused."""
    health: Health
    url: str
    """Its address; empty for the built-in model."""

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> dict[str, Any]:
        """The whole reply to a request."""

    def stream(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> AsyncGenerator[StreamEvent]:
        """The reply in events, as they arrive."""

    async def count_tokens(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> int:
        """The number of tokens in a request."""

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """An upper bound of the input tokens in a request of `size` bytes."""

    async def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model under the name that apps use, at one server. `upstream_id` is the server's name for it. `prices` are
    sorted by the time from which they apply. `others` are the same model at other servers: they have the same prices
    and limits. `weight` is this server's share of the calls. `thinking`: how a model of the Messages API takes a wish
    to think; at an OpenAI server, `none` says that it never thinks unseen. `output_limit`: the name of the output limit
    in chat/completions."""

    model_id: str
    display_name: str
    upstream: Upstream
    upstream_id: str
    max_input: int
    max_output: int
    prices: tuple[tuple[datetime, Price], ...]
    created_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    weight: float = 1.0
    thinking: Thinking = "adaptive"
    output_limit: str = "max_completion_tokens"
    others: tuple[Model, ...] = ()

    @property
    def candidates(self) -> tuple[Model, ...]:
        """The model at each server that offers it."""
        return (self, *self.others)

    @property
    def total(self) -> float:
        """Seconds that a call may take in all, whichever servers are asked."""
        if not self.others:  # as most models; a call asks all three
            return self.upstream.limits.total
        return max(one.upstream.limits.total for one in self.candidates)

    @property
    def refuses_unknown(self) -> bool:
        """Whether one of the servers refuses what nobody knows here. A call must suit all of them."""
        return self.upstream.refuses_unknown or any(one.upstream.refuses_unknown for one in self.others)

    def most_input(self, request: Mapping[str, Any], size: int) -> int:
        """An upper bound of the input tokens in a request of `size` bytes, at any of the servers."""
        if not self.others:
            return self.upstream.most_input(self, request, size)
        return max(one.upstream.most_input(one, request, size) for one in self.candidates)

    def price(self, now: datetime | None = None) -> Price | None:
        """The price at `now` (default: the present); None before the first price applies."""
        moment = now or wall.utc()
        for begins, price in reversed(self.prices):
            if begins <= moment:
                return price
        return None


class Models:
    """The configured models, by name."""

    def __init__(self, models: tuple[Model, ...]) -> None:
        self._models = {model.model_id: model for model in models}

    def find(self, model_id: str) -> Model | None:
        """The model with this name, if it is configured and has a price."""
        model = self._models.get(model_id)
        return model if model and model.price() else None

    def all(self) -> list[Model]:
        """All models that have a price, in the order of the configuration."""
        return [model for model in self._models.values() if model.price()]

    def every(self) -> list[Model]:
        """All models, also those whose first price is yet to come."""
        return list(self._models.values())

    def upstreams(self) -> list[Upstream]:
        """Every server, once."""
        candidates = [one for model in self._models.values() for one in model.candidates]
        return list({id(one.upstream): one.upstream for one in candidates}.values())

    def keep_health(self, before: Models) -> None:
        """Takes over what `before` knows of the servers that are in both: name and address are the same."""
        known = {(upstream.name, upstream.url): upstream.health for upstream in before.upstreams()}
        for upstream in self.upstreams():
            if old := known.get((upstream.name, upstream.url)):
                old.rule = upstream.health.rule
                upstream.health = old

    async def close(self) -> None:
        """Closes the connections of every upstream."""
        for upstream in self.upstreams():
            await upstream.close()


class OldModels:
    """Models that others have replaced. Each closes once no call uses it."""

    def __init__(self) -> None:
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, models: Models, margin: float) -> None:
        """Closes the models `margin` seconds after the longest call that may use them."""
        longest = max((model.total for model in models.all()), default=0.0)

        async def close() -> None:
            try:
                await asyncio.sleep(longest + margin)
            finally:
                await models.close()

        task = asyncio.ensure_future(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Closes all of them at once."""
        closing = tuple(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
