"""The page of connected apps in a real browser: its figures change by themselves, and its buttons pause an app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handlers.core.live.watches import Watches
from runtime import demo
from store.apps.registration import Registration
from tests.support.browser.furnished_account import register
from tests.support.browser.tour_kit import Stand
from tests.support.browser.webdriver import Chromium
from tests.support.store.charges import charge
from tests.support.store.world import VISITOR

SCOPES = ("profile", "credits:read", "credits:spend")


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as made:
        yield made


def connected(stand: Stand) -> Registration:
    """An app of the demo's person, who has credits."""

    async def connect() -> Registration:
        person = (await stand.store.operator.find(demo.EMAIL)).user
        app = await register(stand, "weather", "Weather", SCOPES)
        await stand.store.tokens.mint(person, app, SCOPES)
        await stand.store.credits.grant(person, 5_000_000)
        return app

    return stand.run(connect())


def spend(stand: Stand, app: Registration) -> None:
    """A call of the app, for a cent."""

    async def call() -> None:
        person = (await stand.store.operator.find(demo.EMAIL)).user
        await charge(stand.store, person, app, 10_000)

    stand.run(call())


def test_a_number_changes_by_itself_and_a_click_pauses_the_app(stand: Stand) -> None:
    stand.change(watches=Watches(0.05))
    at, app = stand.site.base_url, connected(stand)
    with Chromium() as browser:
        browser.open(f"{at}/signin?next=/account/apps")
        browser.type("email", demo.EMAIL)
        browser.type("password", demo.PASSWORD)
        browser.click("Sign in")
        browser.wait_for("Live: the figures update by themselves.", f"{at}/account/apps")
        assert "No calls right now" in browser.text
        browser.run("window.stays = true")
        spend(stand, app)
        browser.wait_for("1 AI call today")
        browser.wait_for("It spent $0.01")
        assert browser.run("return window.stays"), "the page was not loaded again"
        # Only the status is read aloud, and it did not change with the figures.
        assert browser.run("return document.querySelectorAll('[aria-live], [role=status]').length") == 1
        browser.click("Pause Weather")
        browser.wait_for("The app is paused.")
        browser.wait_for("Live: the figures")
        browser.click("Resume Weather")
        browser.wait_for("no longer paused")
        browser.wait_for("Live: the figures")

        async def pause() -> None:
            session = stand.site.store.sessions.open(browser.cookie("latchkey_session"))
            assert session is not None
            await stand.store.grants.pause(session, app.client_id, VISITOR)

        stand.run(pause())
        browser.wait_for("Something changed here. Reload the page to see it.")
        assert not browser.console()


def test_without_scripts_the_figures_are_those_of_the_load(stand: Stand) -> None:
    at, app = stand.site.base_url, connected(stand)
    with Chromium() as browser:
        browser.allow_scripts(False)
        browser.open(f"{at}/signin?next=/account/apps")
        browser.type("email", demo.EMAIL)
        browser.type("password", demo.PASSWORD)
        browser.click("Sign in")
        browser.wait_for("Reload the page for the newest figures.", f"{at}/account/apps")
        spend(stand, app)
        browser.open(f"{at}/account/apps")
        browser.wait_for("1 AI call today")
        browser.wait_for("It spent $0.01")
