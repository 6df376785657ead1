"""Spending limits in a real browser: the amount on the consent page, and under Connected apps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser.test_browser_redirects import LANDED, Third
from tests.support.browser.webdriver import Chromium
from tests.support.processes.processes import QUICK, Server

ADA = {"email": "ada@example.com", "name": "Ada", "password": "correct horse battery"}
APP = {
    "client_id": "writer",
    "client_secret": "s" * 32,
    "name": "Writer",
    "redirect_uris": ["http://127.0.0.1/landing"],
    "scopes": "profile credits:spend",
}
ENTER = "\ue007"


@pytest.fixture(scope="module")
def back() -> Iterator[str]:
    """Where the app takes its answer."""
    with Third() as app:
        yield f"{app.elsewhere}/landing"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows the person and the app."""
    seed: Path = tmp_path_factory.mktemp("seed") / "seed.json"
    seed.write_text(json.dumps({"apps": [APP], "users": [ADA]}))
    with Server("--seed", str(seed), "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Chromium]:
    """A browser in which the person is signed in."""
    with Chromium() as made:
        made.open(f"{server.url}/signin")
        made.type("email", ADA["email"])
        made.type("password", ADA["password"])
        made.click("Sign in")
        made.wait_for("Ada", at=server.url)
        yield made


def asks(server: Server, back: str) -> str:
    """The address at which the app asks."""
    parameters = {"client_id": "writer", "redirect_uri": back, "response_type": "code", "scope": APP["scopes"]}
    return f"{server.url}/oauth/authorize?{urlencode({**parameters, 'state': 'a-state', 'prompt': 'consent'})}"


def test_the_consent_page_sets_a_spend_limit(server: Server, browser: Chromium, back: str) -> None:
    consent = f"{server.url}/oauth/authorize?"
    browser.open(asks(server, back))
    browser.wait_for("dollars a month", at=consent)
    # After the 5.00 that is there, which is no amount then: the browser does not send it.
    browser.type("spend_dollars", " five")
    browser.click("Allow")
    browser.type("spend_dollars", ENTER)
    browser.wait_for("dollars a month", at=consent)
    browser.click("Deny")
    browser.wait_for(LANDED, at=f"{back}?error=access_denied")

    browser.open(asks(server, back))
    browser.wait_for("dollars a month", at=consent)
    browser.type("spend_dollars", "25" + ENTER)
    browser.wait_for("dollars a month", at=consent)
    browser.click("Allow")
    browser.wait_for(LANDED, at=f"{back}?code=")
    browser.open(f"{server.url}/account/apps")
    browser.wait_for("Its limit is $5.0025.")
    # There Enter saves.
    browser.type("dollars", "1" + ENTER)
    browser.wait_for("Confirm it’s you", at=f"{server.url}/account/apps/writer/limit")
    browser.type("confirm_password", ADA["password"] + ENTER)
    browser.wait_for("Its limit is $5.00251.", at=f"{server.url}/account/apps")
    expected = ("favicon", "status of 403")  # the page that asks for the password
    assert [line for line in browser.console() if not any(words in line for words in expected)] == []
