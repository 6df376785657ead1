"""Buying credits in a real browser: the page's policy lets its form lead to the payment page, and the person back."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser.webdriver import Chromium
from tests.support.http import stripe_double
from tests.support.http.stripe_double import KEY, SECRET, StripeDouble, signed
from tests.support.processes.processes import QUICK, Server

ADA = {"email": "ada@example.com", "name": "Ada", "password": "correct horse battery"}


@pytest.fixture(scope="module")
def stripe() -> Iterator[StripeDouble]:
    yield from stripe_double.standing()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stripe: StripeDouble) -> Iterator[Server]:
    """A server that sells credits."""
    seed: Path = tmp_path_factory.mktemp("seed") / "seed.json"
    seed.write_text(json.dumps({"users": [ADA]}))
    secrets = {"LATCHKEY_STRIPE_KEY": KEY, "LATCHKEY_STRIPE_WEBHOOK_SECRET": SECRET}
    there = ("--stripe-api", stripe.url, "--stripe-page", stripe.url)
    with Server("--seed", str(seed), "--redis-url", "memory", *there, *QUICK, environment=secrets) as made:
        yield made.ready()
        for secret in secrets.values():
            assert secret not in made.log + made.out


def told(server: Server, event: bytes) -> int:
    """The status of the answer to an event."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Content-Type": "application/json", "Stripe-Signature": signed(event)}
    connection.request("POST", "/api/payments/stripe", event, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_person_pays_on_the_providers_page_and_comes_back(server: Server, stripe: StripeDouble) -> None:
    with Chromium() as browser:
        browser.open(f"{server.url}/signin?next=/account/credits")
        browser.type("email", ADA["email"])
        browser.type("password", ADA["password"])
        browser.click("Sign in")
        browser.wait_for("Add credits", at=server.url)
        browser.type("dollars", "20")
        browser.click("Continue to payment")
        browser.wait_for("Pay", at=f"{stripe.url}/c/pay/")
        (session,) = stripe.sessions
        assert told(server, stripe.pay(session)) == 200
        browser.click("Pay")
        browser.wait_for("Thank you! Your credits appear here", at=f"{server.url}/account/credits?paid")
        assert "$20.00" in browser.text
        browser.open(f"{server.url}/account/credits?paid")
        browser.wait_for("Add credits")
        assert "Thank you" not in browser.text


@pytest.fixture
def strict(tmp_path: Path, stripe: StripeDouble) -> Iterator[Server]:
    """A server whose payment page is said to be at another origin than it is."""
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({"users": [ADA]}))
    secrets = {"LATCHKEY_STRIPE_KEY": KEY, "LATCHKEY_STRIPE_WEBHOOK_SECRET": SECRET}
    with Server(
        *("--seed", str(seed), "--redis-url", "memory", "--stripe-api", stripe.url, *QUICK), environment=secrets
    ) as made:
        yield made.ready()


def test_a_page_at_another_origin_is_not_opened(strict: Server) -> None:
    with Chromium() as browser:
        browser.open(f"{strict.url}/signin?next=/account/credits")
        browser.type("email", ADA["email"])
        browser.type("password", ADA["password"])
        browser.click("Sign in")
        browser.wait_for("Add credits", at=strict.url)
        browser.type("dollars", "20")
        browser.click("Continue to payment")
        browser.wait_for("We couldn’t open the payment page", at=strict.url)
