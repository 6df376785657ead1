"""A person sets a picture and a name in a real browser, and deletes the account."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser.pictures import drawn
from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.processes.processes import QUICK, Server

NAME, EMAIL, PASSWORD = "Ada Lovelace", "ada@example.com", "correct horse battery"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Chromium]:
    with Chromium() as made:
        yield made


def test_a_person_edits_the_profile_and_deletes_the_account(server: Server, browser: Chromium, tmp_path: Path) -> None:
    browser.open(f"{server.url}/signup?next=/account")
    for field, text in (("name", NAME), ("email", EMAIL), ("password", PASSWORD)):
        browser.type(field, text)
    browser.click("Create account")
    browser.wait_for("Profile", at=f"{server.url}/account")
    assert width_of_picture(browser) == 256, "the generated one is shown"

    file = tmp_path / "me.gif"
    file.write_bytes(drawn("GIF"))
    browser.type("picture", str(file))
    browser.click("Upload picture")
    browser.wait_for("Your picture was changed.", at=f"{server.url}/account?picture")
    assert width_of_picture(browser) == 256, "the uploaded one is shown"
    assert browser.console() == []

    file.write_bytes(b"no picture")
    browser.type("picture", str(file))
    browser.click("Upload picture")
    browser.wait_for("read that file as a picture", at=f"{server.url}/account/picture")
    assert ["400" in complaint for complaint in browser.console()] == [True]
    browser.click("Remove your picture…")
    browser.press_on('//button[.="Remove your picture"]')
    browser.wait_for("Your picture was removed.")

    browser.type("name", " of London")
    browser.click("Save name")
    browser.wait_for("Your name was changed.", at=f"{server.url}/account?name")
    browser.wait_for(f"{NAME} of London")

    browser.open(f"{server.url}/account/delete")
    browser.type("email", EMAIL)
    browser.type("password", "wrong horse battery")
    browser.click("Delete my account for good")
    browser.wait_for("Incorrect password.", at=f"{server.url}/account/delete")
    assert ["400" in complaint for complaint in browser.console()] == [True]
    browser.type("password", PASSWORD)
    browser.click("Delete my account for good")
    browser.wait_for("Your account was deleted", at=f"{server.url}/account/deleted")
    browser.open(f"{server.url}/account")
    browser.wait_for("Sign in", at=f"{server.url}/signin")
    assert browser.console() == []


@pytest.mark.parametrize("slow", ["Intl.DateTimeFormat", "Temporal"])
def test_a_page_keeps_the_time_zone_of_the_browser(server: Server, slow: str) -> None:
    """By the quick way alone, which delays no paint, and without it."""
    with Chromium() as browser:
        browser.devtools("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=f"delete {slow}")
        browser.open(f"{server.url}/signin")
        deadline = time.monotonic() + PATIENCE
        while "latchkey_zone" not in browser.cookies():
            assert time.monotonic() < deadline, browser.console()
            time.sleep(0.02)
        assert browser.cookie("latchkey_zone") == "Asia/Tokyo"


def width_of_picture(browser: Chromium) -> int:
    """Of the first picture in the page, in its own pixels; 0 for one that cannot be shown."""
    return int(browser.run("return document.querySelector('main img').naturalWidth"))
