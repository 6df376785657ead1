"""Stripe Checkout, through Stripe's own library. The library is imported on first use; it blocks, so it has threads."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from observability.spans import outgoing
from outbound.payments.provider import BadSignature, Order, PaymentFailed, Unplaced
from outbound.payments.stripe_events import CENT, SITE, USER, StripeEvent, buyer_of, event_of, movement, text
from store.credits.credits import CURRENCY
from store.credits.payments import Movement
from store.json_text import Ambiguous, NotJSON, decode_strictly
from store.refused import Refused
from store.threads import SharedThreads, Threads

log = logging.getLogger("latchkey.payments")

SECONDS = 10.0
"""How long Stripe may take to accept a connection, and to send more of an answer."""
RETRIES = 1
WORKERS, QUEUE = 4, 32
EACH = 2
"""Orders of one person in progress."""
TOLERANCE = 300
"""Seconds for which a signature counts."""
LONGEST_SIGNATURE = 2048
MOST_REFUNDS = 100
_STANDING = ("pending", "requires_action", "succeeded")


@dataclass(frozen=True, slots=True)
class StripeAccount:
    """How the account is reached. `secrets`: any of them may have signed an event; `site`: the base URL of this server;
    `api` and `page`: origins."""

    key: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    site: str
    api: str
    page: str

    @property
    def live(self) -> bool:
        """Whether the key moves real money."""
        return "_live_" in self.key[:9]


class StripeCheckout:
    """The provider."""

    def __init__(self, account: StripeAccount) -> None:
        self.account = account
        # Purchases that wait for Stripe keep no event from its place.
        self._purchases = SharedThreads(Threads("latchkey-purchases", workers=WORKERS, queue=QUEUE), EACH)
        self._events = Threads("latchkey-payments", workers=WORKERS, queue=QUEUE)
        self._library: Any = None
        self._client: Any = None

    @property
    def page(self) -> str:
        """The origin of the payment page."""
        return self.account.page

    async def checkout(self, order: Order) -> str:
        """Prepares the payment page of an order, and returns its address. Raises PaymentFailed,
        Refused("temporarily_unavailable"), Refused("rate_limited") while the person has `EACH` orders in progress."""
        with outgoing(self.account.api):
            work = self._purchases.run(order.user, self._named, self._create, order, secrets.token_hex(16))
            session = _whole(await work)
        url = text(session, "url")
        if not url.startswith(f"{self.page}/") or not (url.isascii() and url.isprintable()):
            raise PaymentFailed("the payment page is at another origin than stripe_page")
        return url

    async def read(self, body: bytes, signature: str) -> Movement | None:
        """The movement that an event reports; None if the event is not about credits. Raises BadSignature, Unplaced,
        PaymentFailed, and Refused("invalid_request" or "temporarily_unavailable")."""
        await self._check(body, signature)
        try:
            told = decode_strictly(body)
        except (NotJSON, Ambiguous):
            told = None
        if not isinstance(told, Mapping):
            raise Refused("invalid_request", "The body is not a JSON object.")
        event = event_of(told)
        if event is None or (event.kind.startswith("refund.") and not event.failed_refund):
            return None
        buyer = buyer_of(event.about, self.account.site)
        if event.live is not self.account.live:
            if buyer and buyer.here:
                raise Unplaced(f"{event.payment} {event.kind}: another mode than that of stripe_key")
            return None
        if buyer is None and event.payment and not event.kind.startswith("checkout."):
            # A refund and a dispute do not name the buyer; a charge does, unless somebody removed it there.
            buyer = buyer_of(await self._call(self._intent, event.payment), self.account.site)
        if buyer is None:
            return None
        return movement(event, buyer, await self._refunded(event) if event.failed_refund else None)

    async def _refunded(self, event: StripeEvent) -> int:
        """What is refunded of a payment by now, in cents."""
        listed = await self._call(self._refunds, event.payment)
        if listed.get("has_more"):
            raise Unplaced(f"{event.payment}: more than {MOST_REFUNDS} refunds")
        return sum(int(one["amount"]) for one in listed["data"] if one.get("status") in _STANDING)

    async def _check(self, body: bytes, signature: str) -> None:
        """Raises BadSignature unless one of the secrets signed these bytes, not long ago."""
        # The library compares text of ASCII alone, and fails at any other.
        if not 0 < len(signature) <= LONGEST_SIGNATURE or not signature.isascii():
            raise BadSignature("no signature")
        if self._library is None:
            self._library = await self._events.run(import_module, "stripe")
        library = self._library
        for secret in self.account.secrets:
            try:
                library.WebhookSignature.verify_header(body, signature, secret, TOLERANCE)
            except (library.SignatureVerificationError, ValueError):
                continue
            return
        raise BadSignature("wrong signature")

    async def _call(self, work: Callable[..., Any], *args: object) -> Mapping[str, Any]:
        """Runs a call about an event in a thread. Raises PaymentFailed, Refused("temporarily_unavailable")."""
        with outgoing(self.account.api):
            return _whole(await self._events.run(self._named, work, *args))

    def _named(self, work: Callable[..., Any], *args: object) -> Mapping[str, Any] | PaymentFailed:
        """The answer to a call, or why there is none, in our words: the library's may quote the key."""
        library: Any = import_module("stripe")
        try:
            found: Mapping[str, Any] = work(*args).to_dict()
        except library.StripeError as error:
            status, request = error.http_status or "no answer", error.request_id or "none"
            return PaymentFailed(f"{type(error).__name__}, status {status}, request {request}")
        return found

    def _open(self) -> Any:
        """The client of the library."""
        if self._client is None:
            library: Any = import_module("stripe")
            library.enable_telemetry = False
            logging.getLogger("stripe").setLevel(logging.WARNING)
            self._client = library.StripeClient(
                self.account.key,
                base_addresses={"api": self.account.api},
                http_client=library.RequestsClient(timeout=SECONDS),
                max_network_retries=RETRIES,
            )
        return self._client

    def _create(self, order: Order, key: str) -> Any:
        named = {USER: order.user, SITE: self.account.site}
        priced = {
            "currency": CURRENCY.lower(),
            "unit_amount": order.amount // CENT,
            "product_data": {"name": order.title},
        }
        params = {
            "mode": "payment",
            "line_items": [{"price_data": priced, "quantity": 1}],
            "client_reference_id": order.user,
            "metadata": named,
            # Its charges take a copy of it, so that refunds name the person.
            "payment_intent_data": {"metadata": named},
            # The person pays in the currency of the credits, so that a refund is of the same amount.
            "adaptive_pricing": {"enabled": False},
            "success_url": order.done,
            "cancel_url": order.cancelled,
        }
        return self._open().v1.checkout.sessions.create(params, {"idempotency_key": key})

    def _intent(self, payment: str) -> Any:
        return self._open().v1.payment_intents.retrieve(payment)

    def _refunds(self, payment: str) -> Any:
        return self._open().v1.refunds.list({"payment_intent": payment, "limit": MOST_REFUNDS})


def _whole(answer: Mapping[str, Any] | PaymentFailed) -> Mapping[str, Any]:
    """The answer to a call. Raises PaymentFailed."""
    if isinstance(answer, PaymentFailed):
        raise answer
    return answer
