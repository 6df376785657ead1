"""Buying credits: the form that leads to the provider's payment page, and the provider's events."""

from __future__ import annotations

import logging

from handlers.core import mails
from handlers.core.amounts import dollars
from handlers.core.base import BaseHandler
from handlers.core.page import DONE_COOKIE
from handlers.core.params import JSON
from handlers.credits.pages import PAID, CreditsPage
from outbound.payments.provider import BadSignature, Order, PaymentFailed, Unplaced
from store.credits.payments import Movement
from store.lifetimes import DAY
from store.phrases import Phrase
from store.refused import Refused
from store.results import NO_CHOICE

log = logging.getLogger("latchkey.payments")

CENT = 10_000
"""Micro-dollars."""
MOST_EVENT = 65_536
"""The largest event, in bytes."""
_CREDITS = "/account/credits"


class CheckoutHandler(CreditsPage):
    """The start of a purchase."""

    uses_scripts = True
    came_from = _CREDITS

    async def post(self) -> None:
        """Sends the person to the payment page for an amount in dollars. Shows an error in the field for a wrong
        amount. Raises SignedOut, Refused."""
        self.check_same_origin()
        session, provider = self.require_session(), self.site.payments
        if provider is None:
            raise Refused("not_found")
        typed = self.body().get("dollars") or ""
        try:
            amount = self.amount(typed)
        except Refused as refusal:
            self.set_status(400)
            return await self.show_credits(typed=typed, error=refusal.description)
        await self.store.payments.begin(session)
        title = self.wording(NO_CHOICE).say(Phrase("Credits at %(site)s", site=self.site.brand.name))
        home = f"{self.site.base_url}{_CREDITS}"
        try:
            page = await provider.checkout(Order(session.user, amount, title, f"{home}?{PAID}", home))
        except PaymentFailed as failure:
            log.warning("no payment page: %s", failure)
            description = Phrase("We couldn’t open the payment page. You haven’t paid anything. Try again in a minute.")
            raise Refused("temporarily_unavailable", description, retry_after=60) from None
        # Without the cookie, the address that the provider sends the person back to shows nothing.
        self.write_cookie(DONE_COOKIE, PAID, DAY)
        self.see_other(page)

    def amount(self, typed: str) -> int:
        """The typed amount in micro-dollars. Raises Refused("invalid_request") unless it may be bought."""
        least, most = self.site.purchases
        amount = dollars(typed)
        if amount % CENT or not least <= amount <= most:
            wording = self.wording(NO_CHOICE)
            limits = {"least": wording.money(least), "most": wording.money(most)}
            raise Refused("invalid_request", Phrase("Enter an amount from %(least)s to %(most)s.", **limits))
        return amount


class StripeEventsHandler(BaseHandler):
    """Stripe's events about payments. It has no CORS and reads no cookie."""

    only_json = True

    @property
    def max_body(self) -> int:
        """The largest event in bytes."""
        return MOST_EVENT

    async def post(self) -> None:
        """Books what an event reports. Any answer but 200 makes Stripe send the event again. Raises Refused."""
        provider = self.site.payments
        if provider is None:
            raise Refused("not_found")
        if self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused("unsupported_media_type", "Send application/json.")
        signed = self.request.headers.get_list("Stripe-Signature")
        try:
            moved = await provider.read(self.request.body, signed[0] if len(signed) == 1 else "")
            if moved:
                await self.book(moved)
        except BadSignature:
            self.store.security.note("payment_event_refused")
            raise Refused("invalid_request", "The signature is missing, too old or wrong.") from None
        except Unplaced as problem:
            # Sent again it would be the same. The operator decides: the money is in the account at Stripe.
            log.warning("a payment could not be booked: %s", problem)
            self.store.security.note("payment_unplaced", detail=str(problem))
        except PaymentFailed as failure:
            log.warning("an event about a payment waits for Stripe: %s", failure)
            raise Refused("temporarily_unavailable", retry_after=60) from None
        self.write_json({"received": True})

    async def book(self, moved: Movement) -> None:
        """Books a movement and mails the person. Raises Unplaced, StoreUnavailable."""
        try:
            booked = await self.store.payments.book(moved)
        except Refused as refusal:
            # Another site that shares the account at Stripe has its own people.
            if refusal.code == "not_found" and not moved.here:
                return
            raise Unplaced(f"{moved} for {moved.user[:32]}: {refusal.description}") from None
        mails.payment_booked(self.site, moved.user, booked)
