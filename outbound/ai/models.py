"""Models, their prices and the servers that run them, as the operator configures them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from outbound.ai.events import StreamEvent
from store.credits.calls import Price


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Times in seconds: to connect, until the first byte of the answer, between two events of a stream, and in all."""

    connect: float = 10.0
    first_byte: float = 120.0
    between_events: float = 60.0
    total: float = 600.0


class Asker:
    """Whoever makes a call; this one waits for the reply and keeps no books."""

    @property
    def wanted(self) -> bool:
        """Whether a failed attempt is worth another one."""
        return True

    def accept(self) -> None:
        """Learns that the server accepted the call: it answered 200, so it works on the call and wants money for it."""

    def refuse(self) -> None:
        """Learns that a call that was accepted is refused after all: all that came was an error. Each attempt that was
        accepted can be refused once."""

    def receive(self, body: bytearray) -> None:
        """Learns where the body of a whole reply arrives, piece by piece, or what of a stream could not be read: what
        is there counts."""


NOBODY = Asker()


class Upstream(Protocol):
    """A server that speaks the Anthropic Messages API. Each call raises UpstreamFailed."""

    name: str
    limits: Timeouts

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> dict[str, Any]:
        """The reply to a request, whole."""

    def stream(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> AsyncGenerator[StreamEvent]:
        """The reply in events, as they come."""

    async def count_tokens(self, model: Model, request: Mapping[str, Any]) -> int:
        """How many tokens a request has."""

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """A bound for the input tokens of a request of `size` bytes."""

    async def close(self) -> None:
        """Drops its connections."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model under the name that apps use; `upstream_id` is its name there. `prices` are in the order of the time from
    which each holds."""

    model_id: str
    display_name: str
    upstream: Upstream
    upstream_id: str
    max_input: int
    max_output: int
    prices: tuple[tuple[datetime, Price], ...]
    created_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def price(self, now: datetime | None = None) -> Price | None:
        """The price that holds at `now` (default: the present); None before the first one does."""
        moment = now or datetime.now(UTC)
        return next((price for begins, price in reversed(self.prices) if begins <= moment), None)


class Models:
    """The models that are offered, by name."""

    def __init__(self, models: tuple[Model, ...]) -> None:
        self._models = {model.model_id: model for model in models}

    def find(self, model_id: str) -> Model | None:
        """The model of this name, if it is offered and has a price."""
        model = self._models.get(model_id)
        return model if model and model.price() else None

    def all(self) -> list[Model]:
        """Those that have a price, in the order of the configuration."""
        return [model for model in self._models.values() if model.price()]

    async def close(self) -> None:
        """Drops the connections of every upstream."""
        for upstream in {id(model.upstream): model.upstream for model in self._models.values()}.values():
            await upstream.close()
