"""A single-page app signs a person in with oidc-client-ts, in a real browser, from another origin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dev.lab.ports import free_port
from tests.oauth.clients.driving import NODE, seed_in
from tests.oauth.relying_parties.sites import HERE
from tests.support.browser.webdriver import Chromium
from tests.support.http.driver import EMAIL, NAME, PASSWORD
from tests.support.processes.npm import packages
from tests.support.processes.processes import QUICK, Server

LIBRARY = "oidc-client-ts.min.js"


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the app: the address to which people return is exact."""
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Server]:
    app: dict[str, Any] = {"client_id": "notes", "name": "Notes", "public": True, "scopes": "openid profile"}
    app |= {"redirect_uris": ["http://127.0.0.1/"], "postLogoutRedirectUris": [f"http://127.0.0.1:{port}/bye"]}
    seed = seed_in(tmp_path_factory.mktemp("app"), EMAIL, apps=[app])
    with Server("--redis-url", "memory", "--seed", seed, *QUICK) as server:
        yield server.ready()


@pytest.fixture
def app(server: Server, port: int) -> Iterator[str]:
    """The address of the app, which is two static files."""
    page = (HERE / "single_page.html").read_text().replace("https://id.example.org", server.url).encode()
    script = (packages(NODE) / "oidc-client-ts" / "dist" / "browser" / LIBRARY).read_bytes()

    class Files(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Writes nothing."""

        def do_GET(self) -> None:
            library = self.path == f"/{LIBRARY}"
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if library else "text/html")
            self.end_headers()
            self.wfile.write(script if library else page)

    with ThreadingHTTPServer(("127.0.0.1", port), Files) as files:
        threading.Thread(target=files.serve_forever).start()
        yield f"http://127.0.0.1:{port}"
        files.shutdown()


def test_a_single_page_app_signs_a_person_in_and_out(server: Server, app: str) -> None:
    with Chromium() as browser:
        browser.open(f"{app}/")
        browser.wait_for("Password", at=f"{server.url}/signin")
        browser.type("email", EMAIL)
        browser.type("password", PASSWORD)
        browser.click("Sign in")
        browser.wait_for("Notes", at=f"{server.url}/oauth/authorize?")
        browser.click("Allow")
        browser.wait_for(NAME, at=f"{app}/")
        browser.click("Leave")
        browser.wait_for("Leave", at=f"{app}/bye")
        browser.open(f"{app}/")
        browser.wait_for("Password", at=f"{server.url}/signin")
        assert browser.console() == []
