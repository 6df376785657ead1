"""Buying credits over HTTP, against a double of Stripe: the form, the page, and what events do to the books."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from outbound.mail.message import plain_text
from outbound.payments.stripe_checkout import EACH
from store.lifetimes import CHECKOUT
from tests.support.browser.email_links import Post
from tests.support.browser.mailbox import until
from tests.support.http import payments
from tests.support.http.driver import EMAIL, Service, send, text_of
from tests.support.http.payments import CHECKOUT_FORM, PAGE, bought, paid, start, tell, told
from tests.support.http.stripe_double import KEY, SECRET, StripeDouble
from tests.support.store.credit_spender import DOLLAR

within_a_minute = pytest.mark.gen_test(timeout=60)
mails, post, stripe, site = payments.mails, payments.post, payments.stripe, payments.site


@within_a_minute
async def test_a_person_pays_and_gets_credits_a_mail_and_a_message(post: Post, stripe: StripeDouble) -> None:
    service = post.service
    browser = await service.signed_in()
    answer = await start(browser, "$20.50")
    session = answer.headers["Location"].rpartition("/")[2]
    assert (answer.code, answer.headers["Location"]) == (303, f"{stripe.url}/c/pay/{session}")
    method, path, form, headers = stripe.asked[0]
    assert (method, path) == ("POST", "/v1/checkout/sessions")
    assert form["line_items[0][price_data][unit_amount]"] == "2050"
    assert form["line_items[0][price_data][currency]"] == "usd"
    assert form["client_reference_id"] == form["metadata[latchkey_user]"] == service.ada
    assert form["payment_intent_data[metadata][latchkey_user]"] == service.ada
    assert EMAIL not in str(form)
    assert "Idempotency-Key" in headers
    assert await paid(service) == 0, "nothing is paid yet"

    await told(service, stripe.pay(session))
    back = await browser.get(form["success_url"].removeprefix(service.base_url))
    assert "Thank you! Your credits appear here" in text_of(back)
    for words in ("$20.50", "Bought", "payment pi_"):
        assert words in text_of(back)
    again = await browser.get(f"{PAGE}?paid")
    assert "Thank you" not in text_of(again), "an address alone says nothing"
    await post.settled()
    mail = " ".join(plain_text(await post.mails.newest(EMAIL, "Your credits are here")).split())
    assert "We added $20.50 to your credits" in mail
    assert "Your balance is now $20.50." in mail


@pytest.mark.parametrize("dollars", ["", "4.99", "500.01", "20.005", "1e3", "-20", "٢٠", "20\0", "9" * 3000])
@within_a_minute
async def test_an_amount_that_is_not_sold_is_shown_in_its_field(
    service: Service, stripe: StripeDouble, dollars: str
) -> None:
    browser = await service.signed_in()
    answer = await start(browser, dollars)
    assert answer.code == 400
    if "\0" not in dollars:
        assert "Enter an amount" in text_of(answer)
    assert stripe.asked == []


@within_a_minute
async def test_a_purchase_needs_a_session_the_token_of_the_form_and_room(
    service: Service, stripe: StripeDouble
) -> None:
    browser = await service.signed_in()
    assert (await browser.send(CHECKOUT_FORM, "POST", form={"dollars": "20"})).code == 403
    elsewhere = await browser.send(CHECKOUT_FORM, "POST", form={"dollars": "20"}, headers={"Origin": "https://evil"})
    assert elsewhere.code == 403
    page = await browser.get(PAGE)
    for _ in range(CHECKOUT.limit):
        assert (await browser.submit(page, CHECKOUT_FORM, dollars="20")).code == 303
    assert (await browser.submit(page, CHECKOUT_FORM, dollars="20")).code == 429
    assert len(stripe.asked) == CHECKOUT.limit
    del browser.cookies["latchkey_session"]
    answer = await browser.submit(page, CHECKOUT_FORM, dollars="20")
    assert answer.headers["Location"] == "/signin?next=%2Faccount%2Fcredits"


@within_a_minute
async def test_the_page_lets_its_form_lead_to_the_payment_page_alone(service: Service, stripe: StripeDouble) -> None:
    browser = await service.signed_in()
    policy = (await browser.get(PAGE)).headers["Content-Security-Policy"]
    assert f"form-action 'self' {stripe.url};" in policy
    assert "form-action 'self';" in (await browser.get("/account")).headers["Content-Security-Policy"]


@pytest.mark.parametrize("status", [401, 402, 429, 500])
@within_a_minute
async def test_a_failure_at_stripe_is_an_error_page_and_no_secret_is_logged(
    service: Service, stripe: StripeDouble, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stripe.failing = status
    answer = await start(await service.signed_in())
    assert answer.code == 503
    assert "You haven’t paid anything" in text_of(answer)
    assert f"status {status}, request req_1" in caplog.text
    assert KEY not in caplog.text
    assert SECRET not in caplog.text
    stripe.failing = 0
    assert (await start(await service.signed_in())).code == 303


@within_a_minute
async def test_a_payment_page_at_another_address_is_refused(service: Service, stripe: StripeDouble) -> None:
    made = stripe.create

    def elsewhere(form: dict[str, str]) -> dict[str, Any]:
        return {**made(form), "url": f"{stripe.url}.evil.example/c/pay/1"}

    stripe.create = elsewhere  # type: ignore[method-assign]  # gives another address
    assert (await start(await service.signed_in())).code == 503


@within_a_minute
async def test_the_server_answers_while_stripe_hangs(service: Service, stripe: StripeDouble) -> None:
    browser = await service.signed_in()
    page = await browser.get(PAGE)
    stripe.answering.clear()
    waiting = asyncio.ensure_future(browser.submit(page, CHECKOUT_FORM, dollars="20"))
    await until(lambda: "begin_checkout" in {script for script, _, _ in service.store.answers()})
    began = time.monotonic()
    assert (await send(service.base_url + "/healthz")).code == 200
    assert time.monotonic() - began < 5
    stripe.answering.set()
    assert (await waiting).code == 303


@within_a_minute
async def test_one_person_has_two_orders_in_progress_at_most(service: Service, stripe: StripeDouble) -> None:
    browser = await service.signed_in()
    page = await browser.get(PAGE)
    stripe.answering.clear()
    waiting = [asyncio.ensure_future(browser.submit(page, CHECKOUT_FORM, dollars="20")) for _ in range(6)]
    refused, _ = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    await until(lambda: sum(one.done() for one in waiting) == 6 - EACH)
    stripe.answering.set()
    assert refused
    assert sorted([(await one).code for one in waiting]) == [303] * EACH + [429] * (6 - EACH)


@within_a_minute
async def test_events_in_any_order_and_twice_are_booked_once(service: Service, stripe: StripeDouble) -> None:
    session = await bought(service, stripe)
    completed = stripe.pay(session)
    part, whole = stripe.refund(session, 500), stripe.refund(session, 700)
    await told(service, whole, part, whole)
    assert await paid(service) == 0, "there is no purchase yet"
    await told(service, completed, completed, part)
    assert await paid(service) == 8
    await told(service, stripe.fail_refund(1), whole)
    assert await paid(service) == 15, "the failed refund of seven dollars counts no more"


@pytest.mark.parametrize("late", [False, True])
@within_a_minute
async def test_a_refund_that_fails_in_the_second_in_which_it_was_made_gives_back(
    service: Service, stripe: StripeDouble, late: bool
) -> None:
    session = await bought(service, stripe)
    await told(service, stripe.pay(session))
    at = 1_790_000_500
    made, failed = stripe.refund(session, 500, at=at), stripe.fail_refund(0, at=at)
    await told(service, *((failed, made) if late else (made, failed)))
    assert await paid(service) == 20


@within_a_minute
async def test_a_dispute_takes_the_credits_until_it_is_won(post: Post, stripe: StripeDouble) -> None:
    service = post.service
    session = await bought(service, stripe)
    await told(service, stripe.pay(session), stripe.dispute(session, "created", 2000))
    assert await paid(service) == 20, "the money is still here"
    await told(service, stripe.dispute(session, "funds_withdrawn", 2000))
    assert await paid(service) == 0
    await post.settled()
    mail = " ".join(plain_text(await post.mails.newest(EMAIL, "Credits were taken back")).split())
    assert "We took back the $20.00 that you got for it." in mail
    await told(service, stripe.dispute(session, "closed", 2000))
    await told(service, stripe.dispute(session, "funds_reinstated", 2000))
    assert await paid(service) == 20
    await post.settled()
    mail = " ".join(plain_text(await post.mails.newest(EMAIL, "Credits were given back")).split())
    assert "We gave you back $20.00." in mail
    page = text_of(await (await service.signed_in()).get(PAGE))
    for words in ("Payment reversed", "Your payment was disputed.", "Reversal undone", "Your payment counts again."):
        assert words in page


@within_a_minute
async def test_a_reversal_of_spent_credits_is_explained(post: Post, stripe: StripeDouble) -> None:
    service = post.service
    session = await bought(service, stripe)
    await told(service, stripe.pay(session))
    await service.store.credits.grant(service.ada, -3 * DOLLAR)
    await told(service, stripe.refund(session, 2000))
    page = text_of(await (await service.signed_in()).get(PAGE))
    assert "Your balance is below zero" in page
    assert "Available credits $0.00" in " ".join(page.split())
    await post.settled()
    mail = plain_text(await post.mails.newest(EMAIL, "Credits were taken back"))
    assert "It is below zero because some of those credits were spent already" in " ".join(mail.split())


@within_a_minute
async def test_a_payment_that_takes_days_counts_when_it_arrives(service: Service, stripe: StripeDouble) -> None:
    session, other = await bought(service, stripe), await bought(service, stripe, "7")
    await told(service, stripe.pay(session, "unpaid"), stripe.pay(other, "unpaid"))
    assert await paid(service) == 0
    await told(service, stripe.arrived(session), stripe.arrived(session), stripe.arrived(other, well=False))
    assert await paid(service) == 20


@within_a_minute
async def test_a_charge_without_its_copy_of_the_buyer_is_looked_up(service: Service, stripe: StripeDouble) -> None:
    session = await bought(service, stripe)
    await told(service, stripe.pay(session))
    bare = stripe.event("charge.refunded", stripe.charge(session, 2000, metadata={}))
    stripe.failing = 500
    assert (await tell(service, bare)).code == 503, "Stripe sends it again"
    assert await paid(service) == 20
    stripe.failing = 0
    await told(service, bare)
    assert await paid(service) == 0


@pytest.fixture
def without(site: Site) -> None:
    """The site sells nothing."""
    object.__setattr__(site, "payments", None)


@within_a_minute
async def test_without_a_provider_nothing_is_sold(
    without: None, service: Service, site: Site, stripe: StripeDouble
) -> None:
    browser = await service.signed_in()
    page = await browser.get(PAGE)
    assert "Add credits" not in text_of(page)
    token = {"_xsrf": browser.cookies["latchkey_xsrf"], "dollars": "20"}
    assert (await browser.send(CHECKOUT_FORM, "POST", form=token)).code == 404
    assert (await tell(service, b"{}")).code == 404
    object.__setattr__(site, "brand", replace(site.brand, help="mailto:help@example.org"))
    page = await browser.get(PAGE)
    assert "To get more credits, contact us" in " ".join(text_of(page).split())
    assert 'href="mailto:help@example.org"' in page.body.decode()
