"""Passkeys and the second step in a real browser, with Chromium's virtual authenticator."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.accounts.signin.totp import STEP, code_at
from tests.support.browser.webdriver import Chromium
from tests.support.processes.processes import QUICK, Server

ADA = {"email": "ada@example.com", "name": "Ada Lovelace", "password": "correct horse battery"}
GRACE = {"email": "grace@example.com", "name": "Grace Hopper", "password": "correct horse battery"}
ENTER = "\ue007"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows two people."""
    seed: Path = tmp_path_factory.mktemp("seed") / "seed.json"
    seed.write_text(json.dumps({"users": [ADA, GRACE]}))
    with Server("--seed", str(seed), "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture
def browser() -> Iterator[Chromium]:
    """A browser of its own: passkeys belong to it."""
    with Chromium() as made:
        yield made


def sign_in(browser: Chromium, server: Server, person: dict[str, str]) -> None:
    """By name and password."""
    browser.open(f"{server.url}/signin?next=/account/security")
    browser.wait_for("Password", at=f"{server.url}/signin")
    browser.type("email", person["email"])
    browser.type("password", person["password"])
    browser.click("Sign in")


def confirm(browser: Chromium, person: dict[str, str]) -> None:
    """Types the password once more."""
    browser.type("password", person["password"] + ENTER)
    browser.wait_for("You can now change how you sign in.")


def sign_out(browser: Chromium, server: Server) -> None:
    browser.click("Sign out")
    browser.wait_for("Sign in", at=server.url)


def test_a_passkey_is_added_signs_in_and_serves_as_second_step(server: Server, browser: Chromium) -> None:
    browser.add_authenticator()
    sign_in(browser, server, ADA)
    browser.wait_for("Where you’re signed in", at=f"{server.url}/account/security")
    assert "Chrome on Linux" in browser.text
    confirm(browser, ADA)
    browser.click("Add a passkey")
    browser.wait_for("Save your recovery codes")
    browser.click("I’ve saved them")
    browser.wait_for("not used yet", at=f"{server.url}/account/security")

    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in.")
    browser.click("Add a passkey")
    browser.wait_for("This device already has a passkey for your account.")

    sign_out(browser, server)
    # The browser's test device chooses the passkey that the address field offers, as a person would.
    browser.open(f"{server.url}/signin?next=/account/security")
    browser.wait_for("Signed in with a passkey", at=f"{server.url}/account/security")

    sign_out(browser, server)
    browser.offer_no_passkeys()
    browser.open(f"{server.url}/signin?next=/account/security")
    browser.press_on('//input[@name="keep"][@type="checkbox"]')
    browser.click("Sign in with a passkey")
    browser.wait_for("Signed in with a passkey", at=f"{server.url}/account/security")

    sign_out(browser, server)
    sign_in(browser, server, ADA)
    browser.wait_for("Your password is correct", at=f"{server.url}/signin/second")
    browser.click("Use your passkey")
    browser.wait_for("Where you’re signed in", at=f"{server.url}/account/security")

    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in.")
    browser.click("Remove Chrome on Linux…")
    browser.press_on('//button[contains(., "Remove Chrome on Linux")]')
    browser.wait_for("The passkey was removed.")
    sign_out(browser, server)
    browser.open(f"{server.url}/signin")
    browser.click("Sign in with a passkey")
    browser.wait_for("We don't recognize that passkey")
    complaints = browser.console()
    assert all("400" in one for one in complaints), complaints


def test_an_authenticator_app_is_set_up_and_asked_for(server: Server, browser: Chromium) -> None:
    sign_in(browser, server, GRACE)
    browser.wait_for("Where you’re signed in", at=f"{server.url}/account/security")
    confirm(browser, GRACE)
    browser.click("Set up an app")
    browser.wait_for("Scan this QR code")
    found = re.search(r"\b((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})\b", browser.text)
    assert found
    browser.type("code", code_of(found[1]))
    browser.click("Turn on")
    browser.wait_for("Save your recovery codes")
    codes = re.findall(r"\b(?:[a-z2-7]{4}-){3}[a-z2-7]{4}\b", browser.text)
    assert len(set(codes)) == 10
    browser.click("I’ve saved them")
    browser.wait_for("You have 10 codes left.")
    sign_out(browser, server)
    sign_in(browser, server, GRACE)
    browser.wait_for("Code from your authenticator app", at=f"{server.url}/signin/second")
    browser.type("code", codes[0] + ENTER)
    browser.wait_for("You have 9 codes left.", at=f"{server.url}/account/security")
    assert browser.console() == []


def test_a_passkey_is_set_up_on_the_way_where_one_is_needed(tmp_path: Path, browser: Chromium) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({"users": [ADA]}))
    with Server("--seed", str(seed), "--redis-url", "memory", "--second-step", "all", *QUICK) as made:
        server = made.ready()
        browser.add_authenticator()
        browser.offer_no_passkeys()
        sign_in(browser, server, ADA)
        browser.wait_for("You need two-step verification", at=f"{server.url}/signin/setup")
        browser.click("Create a passkey and sign in")
        browser.wait_for("Save your recovery codes")
        browser.click("I’ve saved them")
        browser.wait_for("Added just now", at=f"{server.url}/account/security")
        sign_out(browser, server)
        sign_in(browser, server, ADA)
        browser.click("Use your passkey")
        browser.wait_for("Where you’re signed in", at=f"{server.url}/account/security")
        assert browser.console() == []


def code_of(shown: str) -> str:
    """The code of a secret as the page shows it; of the next step when that is about to begin."""
    return code_at(base64.b32decode(shown.replace(" ", "")), int(time.time() * 1000 + 2_000) // STEP)
