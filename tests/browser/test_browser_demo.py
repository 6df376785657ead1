"""The demo app's story in a real browser: notes, an answer as it arrives, and the end of the access seen live."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime import demo
from tests.browser.test_browser import allow, sign_in
from tests.browser.test_demo import app_of
from tests.support.browser.demo_site import Browser as AppBrowser
from tests.support.browser.demo_site import Demo
from tests.support.browser.webdriver import Chromium
from tests.support.http.driver import Browser
from tests.support.processes.processes import QUICK, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--demo", "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture(scope="module")
def app(server: Server) -> str:
    """The address of the demo app."""
    return app_of(server)


@pytest.fixture
def browser(server: Server, app: str) -> Iterator[Chromium]:
    """A browser in which the person is signed in to the demo app."""
    with Chromium() as made:
        made.open(f"{app}/login")
        sign_in(made, server)
        allow(made, server)
        made.wait_for(f"Hello, {demo.NAME}", at=f"{app}/")
        yield made
        assert made.console() == []


def disconnect(server: Server) -> None:
    """The person disconnects the app, in another window."""

    async def go() -> None:
        browser = Browser(server.here)
        await browser.sign_in(demo.EMAIL, demo.PASSWORD)
        page = await browser.get("/account/apps")
        await browser.submit(page, f"/account/apps/{demo.CLIENT_ID}/revoke")

    asyncio.run(go())


def test_the_demo_from_start_to_end(server: Server, app: str, browser: Chromium) -> None:
    browser.wait_for("None yet.")
    browser.type("text", "Read: <b>Notes</b> by A. A. L.")
    browser.click("Keep it")
    browser.wait_for("Read: <b>Notes</b> by A. A. L.", at=f"{app}/")
    browser.click("Change")
    browser.run("document.querySelector('.notes textarea').value = 'Read twice.'")
    browser.click("Save the note")
    browser.wait_for("Read twice.", at=f"{app}/")
    assert "by A. A. L." not in browser.text

    browser.run("window.stayed = true")
    browser.type("question", "What does this cost?")
    browser.click("Ask")
    browser.wait_for("It cost you 0.0000", at=f"{app}/")
    assert browser.run("return window.stayed"), "the answer came into the page"
    browser.wait_for("Credits: 4.9999")
    assert browser.run("return document.querySelector('header img').naturalWidth") == 256

    browser.open(f"{server.url}/account/apps/{demo.CLIENT_ID}/data")
    browser.wait_for("notes")
    browser.open(app)
    browser.click("Change")
    browser.click("Delete the note")
    browser.wait_for("None yet.", at=f"{app}/")

    browser.run("window.stayed = true")
    disconnect(server)
    browser.wait_for("You are no longer connected")
    assert browser.run("return window.stayed"), "the page noticed by itself"
    assert "Your notes" not in browser.text
    browser.open(app)
    browser.wait_for("Sign in with Latchkey")
    assert "You are no longer connected" in browser.text, "whether anybody has read the page is not known"
    browser.open(app)
    browser.wait_for("Sign in with Latchkey")
    assert "connected" not in browser.text


def test_the_minute_shows_the_limit_the_document_the_helper_and_the_end(server: Server, app: str) -> None:
    with Chromium() as browser:
        browser.open(f"{server.url}/")
        browser.click("Open the demo app")
        browser.wait_for("Latchkey in a minute", at=f"{app}/")
        browser.click("Connect with a limit")
        sign_in(browser, server)
        browser.wait_for("The app asks for $0.05")
        allow(browser, server)
        browser.wait_for("spend up to 0.05 USD", at=f"{app}/")
        browser.click("Keep a note")
        browser.wait_for("is in your account")
        browser.click("Start the helper")
        browser.wait_for("the helper asked 1 question for 0.01 USD. Latchkey refused the next one.")
        browser.click("Spend up to the limit")
        browser.wait_for("This site asked 3 questions for 0.04 USD. Latchkey refused the next one.")
        browser.open(f"{server.url}/account/apps")
        browser.wait_for("$0.05 of $0.05 used")
        assert "Fern reader" in browser.text
        assert "spent $0.01 of $0.01" in browser.text
        browser.open(app)
        browser.run("window.stayed = true")
        disconnect(server)
        browser.wait_for("this page noticed")
        assert browser.run("return window.stayed")
        assert "Open Connected apps" not in browser.text
        browser.open(app)
        browser.wait_for("Your documents are still in your account")
        browser.open(f"{server.url}/account/apps/{demo.CLIENT_ID}/data")
        browser.wait_for("This app is disconnected")
        assert browser.console() == []


def test_a_note_changed_elsewhere_is_not_overwritten(server: Server, app: str, browser: Chromium) -> None:
    browser.type("text", "First.")
    browser.click("Keep it")
    browser.wait_for("First.", at=f"{app}/")
    other = AppBrowser(Demo(app, Path()))
    other.cookie = "demo_app_session=" + browser.cookie("demo_app_session")
    fields = browser.run(
        "return Object.fromEntries(new FormData(document.querySelector('[action=\"/notes/edit\"]')).entries())"
    )
    assert other.ask("/notes/edit", {**fields, "text": "Second."})[0] == 303
    browser.click("Change")
    browser.run("document.querySelector('.notes textarea').value = 'Third.'")
    browser.click("Save the note")
    browser.wait_for("changed or deleted elsewhere meanwhile")
    assert "Third." in browser.text, "what was typed can be kept"
    assert ["409" in complaint for complaint in browser.console()] == [True]
    browser.open(app)
    browser.wait_for("Second.")
