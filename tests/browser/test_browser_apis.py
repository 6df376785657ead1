"""The pages of an API in a real browser, with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from runtime import demo
from tests.browser.test_browser_keyboard import Keyboard
from tests.support.browser.furnished_account import ORDERS
from tests.support.browser.tour_kit import Stand
from tests.support.browser.webdriver import SPACE, Chromium

WHERE = f"/developer/apis/{ORDERS.client_id}"


@pytest.fixture
def stand() -> Iterator[Stand]:
    """A server on which the demo's person owns an API."""
    with Stand() as made:

        async def give() -> None:
            person = await made.store.operator.find(demo.EMAIL)
            await made.store.apis.create(replace(ORDERS, owner=person.user))

        made.run(give())
        yield made


def test_an_owner_adds_a_scope_and_deletes_the_api_by_keyboard(stand: Stand) -> None:
    at = stand.site.base_url
    with Chromium() as browser:
        keyboard = Keyboard(browser)
        browser.open(f"{at}/signin?next=/developer/apps")
        browser.type("email", demo.EMAIL)
        keyboard.write("Password", demo.PASSWORD)
        keyboard.press("Sign in")
        browser.wait_for("Your APIs", at=f"{at}/developer/apps")
        keyboard.follow("Manage your APIs")
        browser.wait_for("1 API", at=f"{at}/developer/apis")
        keyboard.follow("Orders")
        browser.wait_for("Apps that use it", at=f"{at}{WHERE}")

        keyboard.to("DisclosureTriangle", "Add a scope")
        browser.press(SPACE)
        keyboard.write("Name of the scope", "orders:cancel")
        keyboard.write("Title shown to people", "Cancel orders")
        keyboard.to("checkbox", "Sensitive")
        browser.press(SPACE)
        keyboard.press("Save")
        browser.wait_for("Enter your password to continue")
        keyboard.begins_at("textbox", "Password")
        browser.press(*demo.PASSWORD)
        keyboard.press("Confirm and continue")
        browser.wait_for("Saved.", at=f"{at}{WHERE}?saved")
        assert "orders:cancel Cancel orders" in browser.text

        keyboard.follow("Delete…")
        browser.wait_for("This can’t be undone")
        keyboard.write("Enter the API’s name", "Orders")
        keyboard.write("Your password", demo.PASSWORD)
        keyboard.press("Delete this API")
        browser.wait_for("The API was deleted", at=f"{at}/developer/apis?deleted")
