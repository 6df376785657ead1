"""Helpers for tests of payments over HTTP, against a double of Stripe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from outbound.payments.stripe_checkout import StripeAccount, StripeCheckout
from store.wiring import Store
from tests.support.browser import email_links
from tests.support.browser.mailbox import Kept, mailer
from tests.support.http import stripe_double
from tests.support.http.driver import Browser, Service, json_of, send
from tests.support.http.stripe_double import KEY, SECRET, StripeDouble, signed
from tests.support.store.credit_spender import DOLLAR, recount

mails, post = email_links.mails, email_links.post
PAGE, CHECKOUT_FORM, EVENTS = "/account/credits", "/account/credits/checkout", "/api/payments/stripe"
NEXT = "whsec_" + "n" * 32
"""The secret after the next one."""


@pytest.fixture
def stripe() -> Iterator[StripeDouble]:
    yield from stripe_double.standing()


@pytest.fixture
def site(memory_store: Store, base_url: str, mails: Kept, stripe: StripeDouble) -> Site:
    account = StripeAccount(KEY, (SECRET, NEXT), base_url, stripe.url, stripe.url)
    return Site(memory_store, base_url, mail=mailer(mails), payments=StripeCheckout(account))


async def start(browser: Browser, dollars: str = "20") -> HTTPResponse:
    """The person sends the form."""
    return await browser.submit(await browser.get(PAGE), CHECKOUT_FORM, dollars=dollars)


async def bought(service: Service, stripe: StripeDouble, dollars: str = "20") -> str:
    """The id of a payment page that a person asked for."""
    answer = await start(await service.signed_in(), dollars)
    assert answer.code == 303, answer.body
    return answer.headers["Location"].rpartition("/")[2]


async def tell(service: Service, event: bytes, signature: str | None = None, **headers: str) -> HTTPResponse:
    """Stripe sends an event."""
    sent = {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": signature or signed(event)}
    return await send(service.base_url + EVENTS, "POST", body=event, headers={**sent, **headers}, described=False)


async def told(service: Service, *events: bytes) -> None:
    """Stripe sends events, and each is taken."""
    for event in events:
        answer = await tell(service, event)
        assert (answer.code, json_of(answer)) == (200, {"received": True})


async def paid(service: Service) -> int:
    """The balance in dollars; all checks of the books are right."""
    return (await recount(service.store, service.ada)).paid // DOLLAR


async def names_of_events(service: Service) -> list[str]:
    """The names of the events in the security log."""
    await service.store.security.flush()
    return [one.event for one in await service.store.security_events.newest(100)]
