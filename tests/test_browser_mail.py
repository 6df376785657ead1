"""Mailed links in a real browser: confirming an address, changing it, and a forgotten password."""

from __future__ import annotations

import email
import re
import time
from collections.abc import Iterator
from email.policy import default
from pathlib import Path

import pytest

from tests.mailbox import link_in
from tests.processes import QUICK, Server
from tests.test_browser import picture
from tests.webdriver import PATIENCE, Chromium

PASSWORD, NEW_PASSWORD = "correct horse battery", "another horse battery"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that keeps its mails in files."""
    with Server("--redis-url", "memory", *QUICK) as made:
        yield made.ready()


def newest_link(server: Server, subject: str) -> str:
    """The address in the newest mail with this subject, once there is one; it is used once."""
    deadline = time.monotonic() + PATIENCE
    while True:
        for file in sorted(Path(server.data_dir / "mail").glob("*.eml"), reverse=True):
            mail = email.message_from_bytes(file.read_bytes(), policy=default)
            if mail["Subject"] == subject:
                file.unlink()
                return server.url + link_in(mail)  # type: ignore[arg-type]  # the default policy makes an EmailMessage
        assert time.monotonic() < deadline, f"no mail says: {subject}"
        time.sleep(0.02)


def test_an_address_is_confirmed_and_changed_and_a_forgotten_password_set(server: Server) -> None:
    with Chromium() as browser:
        browser.open(f"{server.url}/signup?next=/account")
        for field, text in (("name", "Grace"), ("email", "grace@example.com"), ("password", PASSWORD)):
            browser.type(field, text)
        browser.click("Create account")
        browser.wait_for("Not confirmed", f"{server.url}/account")
        picture(browser, "mail-account-unconfirmed")
        browser.open(newest_link(server, "Confirm your e-mail address"))
        browser.wait_for("grace@example.com")
        picture(browser, "mail-confirm")
        browser.click("Yes, confirm it")
        browser.wait_for("Confirmed", f"{server.url}/account")
        browser.click("Change the address")
        browser.wait_for("Change it", f"{server.url}/account/email")
        picture(browser, "mail-account-email")
        browser.type("email", "new@example.com")
        browser.type("current_password", "wrong password")
        browser.click("Send the link")
        browser.wait_for("The current password is not right.")
        (complaint,) = browser.console()  # the answer's status, and no more
        assert "400" in complaint
        picture(browser, "mail-account-email-wrong")
        browser.type("current_password", PASSWORD)
        browser.click("Send the link")
        browser.wait_for("Look into your mailbox")
        picture(browser, "mail-sent")
        browser.open(newest_link(server, "Confirm your new e-mail address"))
        browser.wait_for("From now on")
        picture(browser, "mail-change")
        browser.click("Change my address")
        browser.wait_for("Your address was changed")
        picture(browser, "mail-changed")
        browser.click("Sign out")
        browser.open(f"{server.url}/signin")
        browser.click("Forgot your password?")
        browser.wait_for("Forgot your password?", f"{server.url}/forgot")
        picture(browser, "mail-forgot")
        browser.type("email", "new@example.com")
        browser.click("Send the link")
        browser.wait_for("Look into your mailbox")
        browser.open(newest_link(server, "Set a new password"))
        browser.wait_for("Choose a new password")
        picture(browser, "mail-reset")
        browser.type("new_password", NEW_PASSWORD)
        browser.click("Set the password")
        browser.wait_for("Your password was changed")
        browser.click("Sign in")
        browser.type("email", "new@example.com")
        browser.type("password", NEW_PASSWORD)
        browser.click("Sign in")
        browser.wait_for("Sign out")
        assert browser.console() == []
    # On this machine the mails stand in the log as well, for whoever develops here.
    assert re.search(r"mail to new@example\.com: Your password was changed", server.log)
