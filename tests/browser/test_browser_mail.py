"""E-mail links in a real browser: confirming and changing an address, and a forgotten password."""

from __future__ import annotations

import asyncio
import email
import re
import threading
import time
from collections.abc import Iterator
from email.policy import default
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.browser.test_browser import INVITATION
from tests.support.browser.mailbox import Mailbox, link_in
from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.http.driver import Browser
from tests.support.processes.processes import QUICK, Server

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
                return server.url + link_in(mail)
        assert time.monotonic() < deadline, f"no mail says: {subject}"
        time.sleep(0.02)


class Running:
    """A mail server in a thread of its own, as a context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.box = self.loop.run_until_complete(Mailbox.open())
        self._thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self.box.close(), self.loop).result(PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def link(self, server: Server, subject: str, number: int = 1) -> str:
        """The address in the mail of this number with this subject, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while len(found := [mail for mail in self.box.mails if mail["Subject"] == subject]) < number:
            assert time.monotonic() < deadline, f"no mail {number} says: {subject}"
            time.sleep(0.02)
        return server.url + link_in(found[number - 1])


async def sign_up(server: Server) -> None:
    """A person signs up without a mail server."""
    browser = Browser(server.url)
    page = await browser.get("/signup")
    done = await browser.submit(page, "/signup", email="grace@example.com", name="Grace", password=PASSWORD)
    assert done.code == 303


@pytest.mark.trap(33)
@pytest.mark.trap(34)
def test_with_mail_authorization_goes_through_the_mailbox(data_dir: Path) -> None:
    with Server(*QUICK, data_dir=data_dir) as before:
        asyncio.run(sign_up(before.ready()))
        before.stop()
    environment = {"LATCHKEY_SMTP_URL": ""}
    with Running() as post, Chromium() as browser:
        environment["LATCHKEY_SMTP_URL"] = post.box.url
        with Server("--demo", *QUICK, data_dir=data_dir, environment=environment) as server:
            found = re.search(r"Open (http://localhost:\d+) and", server.ready().out)
            assert found
            app = found[1]
            # Whose account is from before there was a mail server confirms the address first.
            browser.open(app)
            browser.click(INVITATION)
            browser.wait_for("Password", f"{server.url}/signin")
            browser.type("email", "grace@example.com")
            browser.type("password", PASSWORD)
            browser.click("Sign in")
            browser.wait_for("First, confirm your e-mail address", f"{server.url}/oauth/authorize?")
            first = post.link(server, "Confirm your e-mail address")
            browser.click("Send the e-mail again")
            browser.wait_for("Check your e-mail")
            newest = post.link(server, "Confirm your e-mail address", 2)
            assert newest != first
            browser.open(newest)
            browser.wait_for("Yes, confirm it")
            browser.click("Yes, confirm it")
            browser.wait_for("The Daily Leaf", f"{server.url}/oauth/authorize?")
            browser.click("Allow")
            browser.wait_for("Grace", f"{app}/")
            # A person without an account makes one by mail, and also reaches the app.
            browser.forget()
            browser.open(app)
            browser.click(INVITATION)
            browser.click("Create an account")
            browser.wait_for("Create your account", f"{server.url}/signup")
            browser.type("email", "linus@example.com")
            browser.click("Send the link")
            browser.wait_for("Check your e-mail")
            browser.open(post.link(server, "Finish creating your account"))
            browser.type("name", "Linus")
            browser.type("password", PASSWORD)
            browser.click("Create account")
            browser.wait_for("The Daily Leaf", f"{server.url}/oauth/authorize?")
            browser.click("Allow")
            browser.wait_for("Linus", f"{app}/")
            assert browser.console() == []
            server.stop()


def test_an_address_is_confirmed_and_changed_and_a_password_reset(server: Server) -> None:
    with Chromium() as browser:
        browser.open(f"{server.url}/signup?next=/account")
        for field, text in (("name", "Grace"), ("email", "grace@example.com"), ("password", PASSWORD)):
            browser.type(field, text)
        browser.click("Create account")
        browser.wait_for("Not confirmed", f"{server.url}/account")
        browser.open(newest_link(server, "Confirm your e-mail address"))
        browser.wait_for("grace@example.com")
        browser.click("Yes, confirm it")
        browser.wait_for("Confirmed", f"{server.url}/account")
        browser.click("Change your address")
        browser.wait_for("Change your address", f"{server.url}/account/email")
        browser.type("email", "new@example.com")
        browser.type("current_password", "wrong password")
        browser.click("Send the link")
        browser.wait_for("The current password is incorrect.")
        (complaint,) = browser.console()  # the answer's status, and no more
        assert "400" in complaint
        browser.type("current_password", PASSWORD)
        browser.click("Send the link")
        browser.wait_for("Check your e-mail")
        browser.open(newest_link(server, "Confirm your new e-mail address"))
        browser.wait_for("Current address")
        browser.click("Change my address")
        browser.wait_for("Your address was changed")
        browser.click("Sign out")
        browser.wait_for("You decide what each app can do", f"{server.url}/")
        browser.open(f"{server.url}/signin")
        browser.click("Forgot your password?")
        browser.wait_for("Forgot your password?", f"{server.url}/forgot")
        browser.type("email", "new@example.com")
        browser.click("Send the link")
        browser.wait_for("Check your e-mail")
        browser.open(newest_link(server, "Set a new password"))
        browser.wait_for("Choose a new password")
        browser.type("new_password", NEW_PASSWORD)
        browser.click("Set password")
        browser.wait_for("Your password was changed")
        browser.click("Sign in")
        browser.wait_for("Keep me signed in")
        assert browser.run("return document.forms[0].elements.email.value") == "new@example.com"
        browser.type("password", NEW_PASSWORD)
        browser.click("Sign in")
        browser.wait_for("Sign out")
        assert browser.console() == []
    # On a loopback address the log also shows the mails, for developers.
    assert re.search(r"mail to new@example\.com: Your password was changed", server.log)
