"""Stripe's events over HTTP: what nobody may send, what is left alone, and what the operator has to know."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from store import keys
from tests.support.http import payments
from tests.support.http.driver import Service, json_of, send
from tests.support.http.payments import EVENTS, NEXT, bought, names_of_events, paid, tell, told
from tests.support.http.stripe_double import StripeDouble, signed
from tests.support.store.credit_spender import DOLLAR

within_a_minute = pytest.mark.gen_test(timeout=60)
mails, post, stripe, site = payments.mails, payments.post, payments.stripe, payments.site


FOREIGN: dict[str, dict[str, Any]] = {
    "another mode": {"livemode": True},
    "a connected account": {"account": "acct_1"},
    "another type": {"type": "payment_intent.succeeded"},
    "no event": {"object": "v2.core.event"},
    "no object": {"data": None},
    "no time": {"created": "now"},
}


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
@within_a_minute
async def test_an_event_of_another_kind_moves_nothing(
    service: Service, stripe: StripeDouble, changes: dict[str, Any]
) -> None:
    session = await bought(service, stripe)
    await told(service, stripe.pay(session, **changes))
    assert await paid(service) == 0


ODD: dict[str, dict[str, Any]] = {
    "another currency": {"currency": "eur"},
    "no amount": {"amount_total": None},
    "half a cent": {"amount_total": 2000.5},
    "no payment": {"payment_intent": None},
    "a payment id that no key may have": {"payment_intent": "pi_1:2"},
    "two buyers": {"client_reference_id": "f" * 32},
    "an amount beyond all balances": {"amount_total": 10**14},
}


@pytest.mark.parametrize("changes", ODD.values(), ids=ODD)
@within_a_minute
async def test_money_that_cannot_be_booked_is_logged_and_audited(
    service: Service, stripe: StripeDouble, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    session = await bought(service, stripe)
    stripe.pay(session)
    await told(service, stripe.event("checkout.session.completed", {**stripe.sessions[session], **changes}))
    assert await paid(service) == 0
    assert "a payment could not be booked: " in caplog.text
    assert "payment_unplaced" in await names_of_events(service)


@within_a_minute
async def test_a_payment_of_a_person_who_is_gone_is_logged_and_audited(
    service: Service, stripe: StripeDouble, caplog: pytest.LogCaptureFixture
) -> None:
    session = await bought(service, stripe)
    await service.store.people.delete(service.ada)
    await told(service, stripe.pay(session))
    assert f"pi_1 paid {20 * DOLLAR} for {service.ada}: No such person." in caplog.text
    assert "payment_unplaced" in await names_of_events(service)
    assert await service.store.client.exists(*keys.credits(service.ada).values()) == 0


@within_a_minute
async def test_payments_for_other_things_in_the_same_account_are_left_alone(
    service: Service, stripe: StripeDouble, caplog: pytest.LogCaptureFixture
) -> None:
    session = await bought(service, stripe)
    stripe.pay(session)
    about = {**stripe.sessions[session], "metadata": {}}
    other_site = {**about, "metadata": {"latchkey_user": service.ada, "latchkey_site": "https://other.example"}}
    stripe.intents["pi_1"]["metadata"] = {}
    await told(
        service,
        stripe.event("checkout.session.completed", about),
        stripe.event("checkout.session.completed", other_site),
        stripe.refund(session, 100),
        stripe.dispute(session, "funds_withdrawn", 100),
    )
    assert await paid(service) == 0
    assert "payment" not in caplog.text


def altered(event: bytes) -> bytes:
    """The event with another amount."""
    return event.replace(b"2000", b"9000")


@within_a_minute
async def test_only_stripes_fresh_signature_over_the_exact_bytes_counts(service: Service, stripe: StripeDouble) -> None:
    event, now = stripe.pay(await bought(service, stripe)), int(time.time())
    good = signed(event)
    for body, signature in (
        (event, " "),
        (event, "t=,v1="),
        (event, signed(event, "whsec_" + "x" * 32)),
        (event, signed(event, at=now - 301)),
        (event, signed(event, scheme="v0")),
        (event, good.replace("t=", "t=1")),
        (event, good + "," * 3000),
        (event, "t=" + "9" * 1500 + ",v1=0"),
        (event, f"t={now},v1=é"),
        (altered(event), good),
        (event + b"\n", good),
        (json.dumps(json.loads(event)).encode(), good),
        (b"\xff" + event, good),
    ):
        answer = await tell(service, body, signature)
        assert (answer.code, json_of(answer)["error"]) == (400, "invalid_request"), signature
    assert await paid(service) == 0
    assert "payment_event_refused" in await names_of_events(service)
    wrong = "v1=" + "0" * 64
    for signature in (
        f"{good},{wrong}",
        good.replace(",v1", f",{wrong},v1"),
        signed(event, NEXT),
        signed(event, at=now - 290),
    ):
        assert (await tell(service, event, signature)).code == 200, "one of several, or of the next secret"
    assert await paid(service) == 20


@within_a_minute
async def test_only_json_of_64_kib_is_read(service: Service, stripe: StripeDouble) -> None:
    event = stripe.pay(await bought(service, stripe))
    long = event + b" " * (65_537 - len(event))
    assert (await tell(service, long)).code == 413
    assert (await tell(service, event, **{"Content-Type": "text/plain"})).code == 415
    for body in (b"", b"[]", b"{", b'"x"', b"[" * 5000, b'{"object":"event","object":"event"}'):
        assert (await tell(service, body)).code == 400, body
    assert await paid(service) == 0
    await told(service, long[:65_536])
    assert await paid(service) == 20


@within_a_minute
async def test_events_know_no_cookie_and_no_other_origin(service: Service, stripe: StripeDouble) -> None:
    event = stripe.pay(await bought(service, stripe))
    answer = await tell(service, event, Origin="https://evil.example", Cookie="latchkey_session=x")
    assert answer.code == 200
    assert not [name for name in answer.headers if name in ("Set-Cookie", "Access-Control-Allow-Origin")]
    for method in ("GET", "OPTIONS", "PUT"):
        answer = await send(service.base_url + EVENTS, method, body=b"{}" if method == "PUT" else None, described=False)
        assert answer.code == 405
