"""A developer registers and tries an app in a real browser, guided only by the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime import demo
from tests.support.browser.webdriver import Chromium
from tests.support.processes.processes import QUICK, Server

ENTER = "\ue007"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--demo", "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture
def browser(server: Server) -> Iterator[Chromium]:
    """A browser in which the demo person is signed in; at the end it must have had nothing to complain about."""
    with Chromium() as made:
        made.open(f"{server.url}/signin?next=/developer/apps")
        made.type("email", demo.EMAIL)
        made.type("password", demo.PASSWORD + ENTER)
        made.wait_for("You have no apps yet", at=f"{server.url}/developer/apps")
        made.console()
        yield made
        assert made.console() == []


def test_a_developer_registers_tries_and_deletes_an_app(server: Server, browser: Chromium) -> None:
    browser.click("Register an app")
    browser.wait_for("What kind of app is it?")
    browser.type("redirect_uris", "https://weather.example/callback")
    browser.type("name", "Weather Diary" + ENTER)
    browser.wait_for("copy it now")
    assert "CLIENT_SECRET=lk_cs_" in browser.text

    browser.click("Try it")
    browser.wait_for("See what people see")
    browser.click("Start")
    browser.wait_for("Allow Weather Diary", at=f"{server.url}/oauth/authorize")
    browser.click("Allow")
    browser.wait_for("4. The end", at=f"{server.url}/developer/apps/")
    assert demo.EMAIL in browser.text

    browser.click("Weather Diary")
    browser.wait_for("Endpoints")
    assert "lk_cs_" not in browser.text
    browser.click("Credentials")
    browser.click("Create a second secret")
    browser.wait_for("Enter your password to continue")
    [complaint] = browser.console()
    assert "403" in complaint, "the browser complains of the page that asks"
    browser.type("confirm_password", demo.PASSWORD + ENTER)
    browser.wait_for("lk_cs_")
    browser.press_on("(//summary[contains(., 'Revoke secret')])[2]")
    browser.wait_for("refused immediately")
    browser.press_on("//details[@open]//button[contains(., 'Revoke secret')]")
    browser.wait_for("The secret was revoked")
    browser.click("Settings")
    browser.wait_for("Require PKCE")
    browser.wait_until_ready()
    browser.press_on("//button[contains(., 'Switch off')]")
    browser.wait_for("The app is switched off")
    browser.click("Delete…")
    browser.wait_for("Enter the app’s name")
    browser.type("confirm", "weather diary")
    browser.type("password", demo.PASSWORD + ENTER)
    browser.wait_for("The app was deleted", at=f"{server.url}/developer/apps")
