"""The main flow in a real browser, with the demo app as the third party on another port."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from runtime import demo
from tests.support.browser.webdriver import Chromium
from tests.support.processes.processes import QUICK, Server

INVITATION = "Sign in with Latchkey"
GREETING = "Ada Lovelace"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that also runs the demo app."""
    with Server("--demo", "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture(scope="module")
def app(server: Server) -> str:
    """The origin of the demo app."""
    found = re.search(r"Open (http://localhost:\d+) and", server.out)
    assert found, server.out
    assert found[1] != server.url
    return found[1]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """One browser for all tests."""
    with Chromium() as made:
        yield made


@pytest.fixture
def browser(server: Server, chromium: Chromium) -> Iterator[Chromium]:
    """The browser without cookies; at the end it must have no complaints."""
    chromium.open(f"{server.url}/")
    chromium.forget()
    chromium.console()
    yield chromium
    assert chromium.console() == []


def sign_in(browser: Chromium, server: Server) -> None:
    """Fills in the sign-in page."""
    browser.wait_for("Password", at=f"{server.url}/signin")
    browser.type("email", demo.EMAIL)
    browser.type("password", demo.PASSWORD)
    browser.click("Sign in")


def allow(browser: Chromium, server: Server) -> None:
    """Allows what the consent page asks for."""
    browser.wait_for("The Daily Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")


@pytest.mark.trap(33)
@pytest.mark.spec("4.1")
@pytest.mark.spec("4.2")
def test_sign_in_consent_use_of_the_app_and_disconnection(server: Server, app: str, browser: Chromium) -> None:
    browser.open(app)
    browser.click(INVITATION)
    sign_in(browser, server)
    allow(browser, server)
    browser.wait_for(GREETING, at=f"{app}/")
    assert browser.url == f"{app}/", "the code left the address bar"
    browser.type("question", "What does this cost?")
    browser.click("Ask")
    browser.wait_for("It cost you 0.0000", at=f"{app}/")
    # Cookies know no ports: both servers' go to both, under names that leave the other alone.
    assert {"latchkey_session", "demo_app_session"} <= browser.cookies()
    browser.open(f"{server.url}/account")
    browser.wait_for(demo.EMAIL, at=f"{server.url}/account")
    browser.open(app)
    browser.wait_for(GREETING)

    browser.open(f"{server.url}/account/security")
    browser.wait_for("App connected")
    browser.open(f"{server.url}/account/apps")
    browser.click("Disconnect…")
    browser.click("Disconnect The Daily Leaf")
    browser.wait_for("Recently disconnected", at=f"{server.url}/account/apps")
    browser.open(app)
    browser.wait_for(INVITATION)
    assert "You are no longer connected" in browser.text
    browser.open(app)
    browser.wait_for(INVITATION)
    assert "connected" not in browser.text
    assert browser.console() == []


@pytest.mark.trap(33)
def test_remembered_consent_redirects_from_sign_in_straight_to_the_app(
    server: Server, app: str, browser: Chromium
) -> None:
    browser.open(app)
    browser.click(INVITATION)
    sign_in(browser, server)
    allow(browser, server)
    browser.wait_for(GREETING, at=f"{app}/")
    browser.open(f"{server.url}/account")
    browser.click("Sign out")
    browser.wait_for("Sign in", at=server.url)
    browser.open(f"{app}/login")
    sign_in(browser, server)
    browser.wait_for(GREETING, at=f"{app}/")
    # Signed in, and consent remembered: no page at all.
    browser.open(f"{app}/login")
    browser.wait_for(GREETING, at=f"{app}/")


def test_a_person_who_denies_goes_back_to_the_app_without_access(server: Server, app: str, browser: Chromium) -> None:
    browser.open(f"{app}/login")
    browser.click("Create an account")
    sign_up(browser, server, "grace@example.com", "Grace Hopper")
    browser.wait_for("Grace Hopper", at=f"{server.url}/oauth/authorize?")
    browser.click("Deny")
    browser.wait_for("access_denied", at=f"{app}/callback")
    assert len(complaints := browser.console()) == 1, complaints
    assert "400" in complaints[0]
    browser.open(app)
    browser.wait_for(INVITATION)


def sign_up(browser: Chromium, server: Server, email: str, name: str) -> None:
    """Fills in the sign-up page."""
    browser.wait_for("Create your account", at=f"{server.url}/signup")
    browser.type("name", name)
    browser.type("email", email)
    browser.type("password", "a long enough password")
    browser.click("Create account")


@pytest.mark.trap(33)
def test_a_new_person_signs_up_during_authorization(server: Server, app: str, browser: Chromium) -> None:
    browser.open(f"{app}/login")
    browser.click("Create an account")
    sign_up(browser, server, "joan@example.com", "Joan Clarke")
    allow(browser, server)
    browser.wait_for("Joan Clarke", at=f"{app}/")


def test_a_wrong_password_shows_an_error_on_the_page(server: Server, browser: Chromium) -> None:
    browser.open(f"{server.url}/signin")
    browser.type("email", demo.EMAIL)
    browser.type("password", "not the password")
    browser.click("Sign in")
    browser.wait_for("Incorrect e-mail address or password", at=f"{server.url}/signin")
    assert len(complaints := browser.console()) == 1, complaints
    assert "400" in complaints[0]
