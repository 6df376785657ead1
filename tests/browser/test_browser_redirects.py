"""Apps whose callback redirects again, to another site or a program, and apps that post and are posted to, in a real
browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.http.driver import EMAIL, NAME, PASSWORD, VERIFIER, challenge
from tests.support.processes.processes import QUICK, Server

PROGRAM = "com.example.leaf:/arrived"
LANDED = "You have arrived."


class Site(BaseHTTPRequestHandler):
    """An app on two addresses: both callbacks send the browser on, everything else is the page it arrives at."""

    onward: dict[str, str]
    visited: list[str]
    posted: list[dict[str, str]]

    def log_message(self, *args: object) -> None:
        """Writes nothing."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.visited.append(path)
        if path in self.onward:
            self.send_response(302)
            self.send_header("Location", self.onward[path])
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=UTF-8")
            self.end_headers()
            self.wfile.write((asking_page(query) if path == "/asks" else LANDED).encode())

    def do_POST(self) -> None:
        self.posted.append(dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode())))
        self.do_GET()


def asking_page(query: str) -> str:
    """A page whose button posts an authorization request. `query`: the address of the server, then the parameters."""
    (_, action), *fields = parse_qsl(query)
    inputs = "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields)
    return f'<form method="post" action="{action}">{inputs}<button>Ask</button></form>'


class Third:
    """The app's two addresses while they listen, as a context manager."""

    def __init__(self) -> None:
        self.visited: list[str] = []
        self.posted: list[dict[str, str]] = []
        kind: Any = type("Kind", (Site,), {"visited": self.visited, "posted": self.posted, "onward": {}})
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), kind) for _ in range(2)]
        first, second = (server.server_port for server in self._servers)
        self.origin, self.elsewhere = f"http://localhost:{first}", f"http://127.0.0.1:{second}"
        kind.onward = {"/to-site": f"{self.elsewhere}/landing", "/to-program": PROGRAM}

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
    leaf = {
        "client_id": "leaf",
        "client_secret": "s" * 43,
        "name": "Leaf",
        "redirect_uris": uris,
        "scopes": "openid profile",
    }
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
    parameters = {
        "client_id": "leaf",
        "redirect_uri": f"{app.origin}/{callback}",
        "response_type": "code",
        "scope": "profile",
        "state": "a-state",
        "code_challenge": challenge(VERIFIER),
        "code_challenge_method": "S256",
    }
    return f"{server.url}/oauth/authorize?{urlencode({**parameters, **more})}"


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
    app.visited.clear()
    browser.open(authorization(server, app, "to-program", prompt="consent"))
    sign_in(browser)
    browser.wait_for("Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")
    # No program here has this scheme, so the page stays; what matters is that the browser complains of nothing.
    until(lambda: "/to-program" in app.visited)


@pytest.mark.trap(33)
def test_an_answer_is_posted_to_an_app_that_wants_it(server: Server, app: Third, browser: Chromium) -> None:
    app.posted.clear()
    posts = {"scope": "openid", "response_mode": "form_post", "prompt": "login"}
    browser.open(authorization(server, app, "to-site", **posts))
    sign_in(browser)
    browser.wait_for("It signs you in", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    # Consent is remembered now: the page that posts comes at once, and an error comes in the same way.
    del posts["prompt"]
    browser.open(authorization(server, app, "to-site", **posts))
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    browser.open(authorization(server, app, "to-site", **{**posts, "scope": "data:read"}))
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    # Without scripts there is a button.
    browser.allow_scripts(False)
    browser.open(authorization(server, app, "to-site", **posts))
    browser.wait_for("Back to Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Continue")
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
    browser.allow_scripts(True)
    code, error = {"code", "state", "iss"}, {"error", "error_description", "state", "iss"}
    assert [set(one) for one in app.posted] == [code, code, error, code]


def test_a_site_may_post_its_request(server: Server, app: Third, browser: Chromium) -> None:
    browser.open(f"{server.url}/signin")
    sign_in(browser)
    browser.wait_for("Ada", at=f"{server.url}/")
    parts = urlsplit(authorization(server, app, "to-site", prompt="consent"))
    address = parts._replace(query="").geturl()
    browser.open(f"{app.origin}/asks?{urlencode({'action': address})}&{parts.query}")
    browser.click("Ask")
    # The session counts, although the browser sends no cookie with another site's form.
    browser.wait_for("Leaf", at=f"{server.url}/oauth/authorize?")
    browser.click("Allow")
    browser.wait_for(LANDED, at=f"{app.elsewhere}/landing")
