"""The second click of a double click must not decide on a consent page that has just come to the front."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from runtime import demo
from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.http.driver import challenge
from tests.support.processes.processes import QUICK, Server

PRESS = "document.querySelector('button[value=allow]').click()"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--demo", "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture
def browser(server: Server) -> Iterator[Chromium]:
    """A browser in which somebody has signed in."""
    with Chromium() as made:
        made.open(f"{server.url}/signin")
        made.type("email", demo.EMAIL)
        made.type("password", demo.PASSWORD)
        made.click("Sign in")
        made.wait_for("Sign out", f"{server.url}/account")
        yield made


def consent_page(server: Server) -> str:
    """The demo app's redirect of a browser back to the demo app."""
    parameters = {
        "client_id": "demo-app",
        "redirect_uri": f"{server.out.split('Open ')[1].split(' ')[0]}/callback",
        "response_type": "code",
        "scope": "profile",
        "state": "a-state",
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
        "prompt": "consent",
    }
    return f"{server.url}/oauth/authorize?{urlencode(parameters)}"


def still_asks_then_takes_a_click(server: Server, browser: Chromium) -> None:
    deadline = time.monotonic() + PATIENCE
    while not browser.run("return window.pressed"):
        assert time.monotonic() < deadline, "nobody clicked"
        time.sleep(0.02)
    assert browser.url.startswith(f"{server.url}/oauth/authorize?"), "the hurried click decided"
    browser.click("Allow")
    browser.wait_for("", at=server.out.split("Open ")[1].split(" ")[0])


def test_rapid_clicks_decide_nothing(server: Server, browser: Chromium) -> None:
    browser.open(consent_page(server))
    pressing = f"const timer = setInterval(() => {PRESS}, 100); setTimeout(() => clearInterval(timer), 2000)"
    browser.run(f"dispatchEvent(new Event('focus')); {pressing}; setTimeout(() => {{ window.pressed = true }}, 1900)")
    still_asks_then_takes_a_click(server, browser)


@pytest.mark.parametrize("moment", ["DOMContentLoaded", "pageshow"])
def test_a_click_right_after_page_load_decides_nothing(server: Server, browser: Chromium, moment: str) -> None:
    pressing = f"addEventListener('{moment}', () => setTimeout(() => {{ {PRESS}; window.pressed = true }}))"
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=pressing)
    browser.open(consent_page(server))
    still_asks_then_takes_a_click(server, browser)


def test_a_click_right_after_a_page_becomes_visible_decides_nothing(server: Server, browser: Chromium) -> None:
    browser.open(consent_page(server))
    browser.wait_until_ready()
    browser.run("window.cover = open('about:blank')")
    browser.run(f"addEventListener('focus', () => {{ {PRESS}; window.pressed = true }})")
    browser.run("window.cover.close()")
    browser.wait_for("Allow The Daily Leaf")
    still_asks_then_takes_a_click(server, browser)
