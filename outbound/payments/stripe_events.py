"""Events of Stripe, and the movements that they report.

An event counts only if its signature is right, so everything in it was written by Stripe or by whoever holds the secret
key. The person is named by the metadata that `StripeCheckout` gave the payment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from outbound.payments.provider import Unplaced
from store.credits.credits import CURRENCY
from store.credits.payments import Movement, What

USER, SITE = "latchkey_user", "latchkey_site"
"""The names in a payment's metadata: the person, and the base URL of the server that sold the credits."""
CENT = 10_000
"""Micro-dollars."""
_DISPUTED: dict[str, What] = {
    "charge.dispute.funds_withdrawn": "withdrawn",
    "charge.dispute.funds_reinstated": "returned",
}
_PAID = ("checkout.session.completed", "checkout.session.async_payment_succeeded")
EVENTS = (*_PAID, "charge.refunded", "refund.failed", "refund.updated", *_DISPUTED)
"""The events that move credits."""


@dataclass(frozen=True, slots=True)
class StripeEvent:
    """An event that may move credits: its type, its object, when it happened, in seconds, and whether it is about real
    money."""

    kind: str
    about: Mapping[str, Any]
    at: int
    live: bool

    @property
    def payment(self) -> str:
        """The id of the PaymentIntent; "" if there is none."""
        return text(self.about, "payment_intent")

    @property
    def failed_refund(self) -> bool:
        """Whether a refund did not reach the person after all."""
        return self.kind.startswith("refund.") and self.about.get("status") in ("failed", "canceled")


class Buyer(NamedTuple):
    """The person who bought credits, and whether it was from this site."""

    user: str
    here: bool


def event_of(told: Mapping[str, Any]) -> StripeEvent | None:
    """The event, if it may move credits: of this account, and of a type that counts."""
    data, at = told.get("data"), told.get("created")
    about = data.get("object") if isinstance(data, Mapping) else None
    if told.get("object") != "event" or not isinstance(about, Mapping) or type(at) is not int:
        return None
    # `account` names a connected account, whose payments are not the operator's.
    if told.get("account") or text(told, "type") not in EVENTS:
        return None
    return StripeEvent(text(told, "type"), about, at, told.get("livemode") is True)


def text(row: Mapping[str, Any], name: str) -> str:
    """A field, if it is text, or the id of the object in its place."""
    value = row.get(name)
    value = value.get("id") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else ""


def buyer_of(about: Mapping[str, Any], site: str) -> Buyer | None:
    """The buyer that an object's metadata names; None if it names none."""
    metadata = about.get("metadata")
    user = text(metadata, USER) if isinstance(metadata, Mapping) else ""
    return Buyer(user, metadata.get(SITE) == site) if isinstance(metadata, Mapping) and user else None


def movement(event: StripeEvent, buyer: Buyer, amount: Any = None) -> Movement | None:
    """The movement of an event; None for a payment that has not arrived yet, and for a purchase at another site. A
    reversal counts wherever the person bought: the base URL may have changed since. `amount`: cents that replace those
    of the event. Raises Unplaced."""
    about, what, dispute = event.about, "refunded", ""
    if event.kind in _PAID:
        if about.get("mode") != "payment" or about.get("payment_status") != "paid" or not buyer.here:
            return None
        what, amount = "paid", about.get("amount_total")
        if text(about, "client_reference_id") != buyer.user:
            raise Unplaced(f"{event.payment} {what}: two people are named as the buyer")
    elif event.kind in _DISPUTED:
        what, dispute, amount = _DISPUTED[event.kind], text(about, "id"), about.get("amount")
    elif amount is None:
        amount = about.get("amount_refunded")
    currency = text(about, "currency")
    if currency != CURRENCY.lower():
        raise Unplaced(f"{event.payment} {what}: {amount} in the currency {currency[:8]}")
    if type(amount) is not int or not event.payment:
        raise Unplaced(f"{event.payment or event.kind} {what}: no amount, or no payment")
    # A refund that fails in the second in which it was made still fails after it.
    at = event.at + event.failed_refund
    return Movement(buyer.user, event.payment, cast(What, what), amount * CENT, at, dispute, buyer.here)
