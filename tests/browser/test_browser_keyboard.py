"""The whole flow in a real browser with the keyboard alone: Tab, Enter, the space bar and typing.

Tests find the focused element as a screen reader does, by its role and name. Its focus must be visible.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.browser.test_demo import app_of
from tests.support.browser.webdriver import CONTROL, ENTER, PATIENCE, SHIFT, SPACE, TAB, Chromium, Focused
from tests.support.processes.processes import QUICK, Server

MOST = 80
"""Most presses of Tab on one page. No page has as many stops."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--demo", "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as made:
        yield made


class Keyboard:
    """A person without a mouse."""

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser

    def to(self, role: str, name: str, key: str = TAB) -> Focused:
        """Presses Tab until an element with this role and a name that begins so has the focus."""
        for _ in range(MOST):
            self.browser.press(key)
            now = self.browser.focused()
            if now.nothing:  # the end of the page, before it begins again, or a page that has only just loaded
                continue
            assert now.outline >= 2, f"{now} does not show that it has the focus"
            assert now.seen, f"{now} is out of sight"
            if now.role == role and now.name.startswith(name):
                return now
        raise AssertionError(f"Tab does not lead to the {role} {name}: {self.browser.text}")

    def begins_at(self, role: str, name: str) -> None:
        """Waits until a new page has set the focus there by itself."""
        deadline = time.monotonic() + PATIENCE
        while ((now := self.browser.focused()).role, now.name) != (role, name):
            assert time.monotonic() < deadline, f"the focus is on {now}"
            time.sleep(0.02)

    def write(self, name: str, text: str, *, instead: bool = False) -> None:
        """Types into the field with this label, replacing its content."""
        self.to("textbox", name)
        if instead:
            self.browser.press(CONTROL + "a")
        self.browser.press(*text)

    def press(self, name: str, key: str = ENTER, role: str = "button") -> None:
        """Presses the button with this label."""
        self.to(role, name)
        self.browser.wait_until_ready()
        self.browser.press(key)

    def follow(self, name: str) -> None:
        """Follows the link with this text."""
        self.press(name, role="link")


@pytest.mark.parametrize("scripts", [pytest.param(True, id="with JavaScript"), pytest.param(False, id="without")])
def test_a_person_connects_inspects_and_disconnects_an_app_by_keyboard(
    server: Server, chromium: Chromium, scripts: bool
) -> None:
    browser, keyboard, app = chromium, Keyboard(chromium), app_of(server)
    browser.allow_scripts(scripts)
    browser.open(f"{server.url}/signin")
    assert ("Sign in with a passkey" in browser.text) == scripts

    # Signs up on the way to the app.
    browser.open(app)
    keyboard.follow("Sign in with Latchkey")
    browser.wait_for("New here?", at=f"{server.url}/signin")
    keyboard.follow("Create an account")
    browser.wait_for("Create your account", at=f"{server.url}/signup")
    # The first field has the focus already: Shift and Tab lead back to where Tab leads on from.
    keyboard.begins_at("textbox", "Your name")
    keyboard.to("link", "Skip to content", SHIFT + TAB)
    keyboard.write("Your name", "Joan Clarke")
    keyboard.write("E-mail address", f"joan{scripts}@example.com".lower())
    keyboard.write("Password", "six unrelated words")
    keyboard.press("Create account")

    # Reads what the app may do, and says how much.
    browser.wait_for("Allow The Daily Leaf to use your Latchkey account?", at=f"{server.url}/oauth/authorize")
    for words in ("See who you are", "It can make AI calls that you pay for", "never sees your password"):
        assert words in browser.text
    keyboard.to("checkbox", "See your credit balance")
    browser.press(SPACE)
    keyboard.write("Up to", "2.50", instead=True)
    browser.press(ENTER)  # decides nothing
    keyboard.to("button", "Deny")
    keyboard.press("Allow", SPACE)

    # Has the app keep something.
    browser.wait_for("Hello, Joan Clarke", at=f"{app}/")
    assert "Credits:" not in browser.text, "the box was unticked"
    keyboard.write("A new note", "Ferns have no flowers.")
    keyboard.press("Keep it")
    browser.wait_for("Change", at=f"{app}/")
    assert "Ferns have no flowers." in browser.text

    # Looks at what it may spend, and at what it keeps.
    browser.open(server.url)
    keyboard.follow("Connected apps")
    browser.wait_for("Its limit is $2.50.", at=f"{server.url}/account/apps")
    keyboard.write("Up to", "1", instead=True)
    keyboard.press("Save limit")
    browser.wait_for("Confirm it’s you", at=f"{server.url}/account/apps/demo-app/limit")
    keyboard.begins_at("textbox", "Password")
    browser.press(*"six unrelated words", ENTER)
    browser.wait_for("Its limit is $1.00.", at=f"{server.url}/account/apps")
    keyboard.follow("Stored documents")
    browser.wait_for("1 document", at=f"{server.url}/account/apps/demo-app/data")
    keyboard.to("DisclosureTriangle", "Delete all")
    browser.press(TAB, ENTER)
    browser.wait_for("Ferns have no flowers.", at=f"{server.url}/account/apps/demo-app/data/")
    keyboard.follow("Documents stored by The Daily Leaf")
    browser.wait_for("1 document", at=f"{server.url}/account/apps/demo-app/data")

    # Disconnects it.
    keyboard.follow("Connected apps")
    browser.wait_for("Disconnect…", at=f"{server.url}/account/apps")
    keyboard.press("Disconnect", SPACE, role="DisclosureTriangle")
    browser.wait_for("loses access immediately")
    keyboard.press("Disconnect The Daily Leaf")
    browser.wait_for("Recently disconnected", at=f"{server.url}/account/apps")
    browser.open(app)
    browser.wait_for("You are no longer connected", at=f"{app}/")
    assert "Sign in with Latchkey" in browser.text
    browser.open(f"{server.url}/account")
    keyboard.press("Sign out")
    browser.wait_for("You decide what each app can do", at=f"{server.url}/")


def test_a_developer_registers_and_tries_an_app_by_keyboard(server: Server, chromium: Chromium) -> None:
    browser, keyboard = chromium, Keyboard(chromium)
    browser.allow_scripts(True)
    browser.open(server.url)
    keyboard.follow("Your apps")
    browser.wait_for("New here?", at=f"{server.url}/signin")
    keyboard.follow("Create an account")
    browser.wait_for("Create your account", at=f"{server.url}/signup")
    keyboard.begins_at("textbox", "Your name")
    browser.press(*"Grace Hopper", TAB, *"grace@example.com", TAB, *"six unrelated words", ENTER)

    browser.wait_for("You have no apps yet", at=f"{server.url}/developer/apps")
    keyboard.follow("Register an app")
    browser.wait_for("What kind of app is it?", at=f"{server.url}/developer/register")
    keyboard.write("Name", "Weather Diary")
    keyboard.write("Redirect URIs", "weather.example/callback")
    keyboard.press("Register")
    browser.wait_for("The app was not registered", at=f"{server.url}/developer/register")
    keyboard.write("Redirect URIs", "https://weather.example/callback", instead=True)
    keyboard.to("checkbox", "Store documents for you")
    browser.press(SPACE)
    keyboard.press("Register")
    browser.wait_for("Client secret: copy it now")
    assert "CLIENT_SECRET=lk_cs_" in browser.text, "the code to begin with has it"

    keyboard.follow("Try it")
    browser.wait_for("See what people see", at=f"{server.url}/developer/apps/")
    keyboard.press("Start")
    browser.wait_for("Allow Weather Diary to use your Latchkey account?", at=f"{server.url}/oauth/authorize")
    assert "Store documents for you" in browser.text
    keyboard.press("Allow")
    browser.wait_for("4. The end", at=f"{server.url}/developer/apps/")
    assert '"email": "grace@example.com"' in browser.text
    # Everything is seen that is longer than its box: the box takes the focus, and scrolls.
    keyboard.to("group", "The tokens: the response")
