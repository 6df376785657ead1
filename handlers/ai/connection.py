"""The connection to an app that makes an AI call."""

from __future__ import annotations

from typing import Protocol

from outbound.ai.exchange.base import ModelExchange
from store.credits.calls import Charge

STREAM = "text/event-stream; charset=utf-8"
WHOLE = "application/json"


class ClientGone(Exception):
    """The app hung up before its answer was complete."""


class AppConnection(Protocol):
    """The connection to the app."""

    async def send(self, media_type: str, piece: bytes) -> None:
        """Sends a part of the answer, and waits until it is on its way. Raises StreamClosedError."""


def cost_of(exchange: ModelExchange, charge: Charge, *, reads: bool) -> bytes:
    """The cost in a reply, with the remaining credits if the token `reads` them and the dialect has a place."""
    return exchange.cost(charge.charged, charge.remaining if reads else None)
