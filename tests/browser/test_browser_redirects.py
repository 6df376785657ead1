"""Apps whose callback redirects again, to another site or a program, in a real browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.http.driver import EMAIL, NAME, PASSWORD, VERIFIER, challenge
from tests.support.processes.processes import QUICK, Server

PROGRAM = "com.example.leaf:/arrived"
LANDED = "You have arrived."


class Site(BaseHTTPRequestHandler):
    """An app on two addresses: both callbacks send the browser on, everything else is the page it arrives at."""

    onward: dict[str, str]
    asked: list[str]

    def log_message(self, *args: object) -> None:
        """Writes nothing."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.asked.append(path)
        if path in self.onward:
            self.send_response(302)
            self.send_header("Location", self.onward[path])
            self.end_headers()
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(LANDED.encode())


class Third:
    """The app's two addresses while they listen, as a context manager."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        kind = type("Kind", (Site,), {"asked": self.asked, "onward": {}})
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), kind) for _ in range(2)]
        first, second = (server.server_port for server in self._servers)
        self.origin, self.elsewhere = f"http://localhost:{first}", f"http://127.0.0.1:{second}"
        kind.onward = {"/to-site": f"{self.elsewhere}/landing", "/to-program": PROGRAM}  # type: ignore[attr-defined]

    def __enter__(self) -> Third:
        for server in self._servers:
            threading.Thread(target=server.serve_forever).start()
        return self

    def __exit__(self, *raised: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture(scope="module")
def app() -> Iterator[Third]:
    with Third() as made:
        yield made


@pytest.fixture(scope="module")
def server(app: Third, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file: Path = tmp_path_factory.mktemp("seed") / "seed.json"
    uris = [f"{app.origin}/to-site", f"{app.origin}/to-program"]
    leaf = {"client_id": "leaf", "client_secret": "s" * 43, "name": "Leaf", "redirect_uris": uris, "scopes": "profile"}
    file.write_text(json.dumps({"apps": [leaf], "users": [{"email": EMAIL, "name": NAME, "password": PASSWORD}]}))
    with Server("--seed", str(file), "--redis-url", "memory", *QUICK) as made:
        yield made.ready()


@pytest.fixture
def browser(server: Server) -> Iterator[Chromium]:
    with Chromium() as made:
        yield made
        # The icon of the app's bare pages is the browser's own wish.
        assert [said for said in made.console() if "favicon" not in said] == []


def authorization(server: Server, app: Third, callback: str, **more: str) -> str:
    """The app's redirect target for a browser."""
    asked = {
        "client_id": "leaf",
        "redirect_uri": f"{app.origin}/{callback}",
        "response_type": "code",
        "scope": "profile",
        "state": "a-state",
        "code_challenge": challenge(VERIFIER),
        "code_challenge_method": "S256",
    }
    return f"{server.url}/oauth/authorize?{urlencode({**asked, **more})}"


def sign_in(browser: Chromium) -> None:
    browser.wait_for("Password")
    browser.type("email", EMAIL)
    browser.type("password", PASSWORD)
    browser.click("Sign in")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.mark.trap(33)
def test_an_app_may_redirect_on_to_another_site(server: Server, app: Third, browser: Chromium) -> None:
    browser.open(authorization(server, app, "to-site"))
    sign_in(browser)
    browser.wait_for("Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    # The answer to the person who says no goes the same way.
    browser.open(authorization(server, app, "to-site", prompt="consent"))
    browser.click("Deny")
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    # With consent remembered the chain begins at the form of the sign-in page.
    browser.open(f"{server.url}/")
    browser.click("Sign out")
    browser.wait_for("Create an account", at=f"{server.url}/")
    browser.open(authorization(server, app, "to-site"))
    sign_in(browser)
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")


@pytest.mark.trap(33)
def test_an_app_may_redirect_on_to_a_program(server: Server, app: Third, browser: Chromium) -> None:
    app.asked.clear()
    browser.open(authorization(server, app, "to-program", prompt="consent"))
    sign_in(browser)
    browser.wait_for("Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")
    # No program here has this scheme, so the page stays; what matters is that the browser complains of nothing.
    until(lambda: "/to-program" in app.asked)
