"""What the server needs of a payment provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from store.credits.payments import Movement


class PaymentFailed(Exception):
    """The provider could not be reached, or refused. The message is for the log and contains no secret."""


class BadSignature(Exception):
    """An event does not come from the provider, or is too old."""


class Unplaced(Exception):
    """An event is about a payment for credits that cannot be booked. The message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Order:
    """A purchase that a person starts. `amount` in micro-dollars, whole cents; `done` and `cancelled`: addresses to
    which the provider sends the person back."""

    user: str
    amount: int
    title: str
    done: str
    cancelled: str


class PaymentProvider(Protocol):
    """A provider with a payment page of its own. `page` is the origin of that page."""

    @property
    def page(self) -> str:
        """The origin of the payment page."""

    async def checkout(self, order: Order) -> str:
        """Prepares the payment page of an order, and returns its address. Raises PaymentFailed, and
        Refused("temporarily_unavailable") if too many calls are in progress."""

    async def read(self, body: bytes, signature: str) -> Movement | None:
        """The movement that an event reports; None if the event is not about credits. Raises BadSignature, Unplaced,
        PaymentFailed, and Refused("invalid_request" or "temporarily_unavailable")."""
