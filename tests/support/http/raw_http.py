"""A server called over plain HTTP, without an event loop, and a seed file with a person who can sign in."""

from __future__ import annotations

import http.client
import json
import select
import socket
from pathlib import Path
from urllib.parse import urlencode

from store.engine.datadir import Files, is_store
from tests.support.http.driver import CALLBACK, PASSWORD

EMAIL = "ada@example.com"
SECRET = "s" * 43
SEED = {
    "apps": [
        {"client_id": "web", "client_secret": SECRET, "name": "Web", "redirect_uris": [CALLBACK], "scopes": "profile"}
    ],
    "users": [{"email": EMAIL, "name": "Ada", "password": PASSWORD}],
}


def seed_file(directory: Path) -> str:
    """A seed file with a person and an app."""
    path = directory / "seed.json"
    path.write_text(json.dumps(SEED))
    return str(path)


def all_serve(port: int) -> None:
    """Makes every worker answer something: each connection goes to a random one."""
    assert {status_of(port, "/readyz") for _ in range(16)} == {200}


def status_of(port: int, path: str = "/healthz", host: str = "127.0.0.1") -> int:
    """The status of one GET."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def listens(port: int) -> bool:
    """Whether a new connection is accepted."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


class SignIn:
    """A sign-in request whose answer has not been read yet."""

    def __init__(self, port: int) -> None:
        page = self._page(port)
        form = urlencode({**self.fields, "email": EMAIL, "password": PASSWORD})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": page.headers["Set-Cookie"] or ""}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("POST", "/signin", form, headers)
        # Two rounds of the server's loop, with some to spare for several workers: it has started on the request.
        assert {status_of(port) for _ in range(8)} == {200}

    def _page(self, port: int) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/signin")
        page = connection.getresponse()
        text = page.read().decode()
        connection.close()
        name, _, rest = text.partition('name="_xsrf" value="')[2].partition('"')
        assert rest
        self.fields = {"_xsrf": name}
        return page

    def in_flight(self) -> bool:
        """Whether the answer has not come yet."""
        return not select.select([self.connection.sock], [], [], 0)[0]

    def cookie(self) -> str:
        """The session cookie in the answer, which shows that the person is signed in."""
        response = self.connection.getresponse()
        assert response.status == 303, response.read()
        cookies = response.headers.get_all("Set-Cookie") or []
        self.connection.close()
        return next(cookie.partition(";")[0] for cookie in cookies if cookie.startswith("latchkey_session="))


def account(port: int, cookie: str) -> int:
    """The status of the account page with this cookie: 200 for a live session."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/account", headers={"Cookie": cookie})
        return connection.getresponse().status
    finally:
        connection.close()


def store_pid(data_dir: Path) -> int:
    """The process id of the embedded store."""
    return int(Files(data_dir).pid.read_text())


def store_runs(data_dir: Path, pid: int) -> bool:
    """Whether that process is the live store of the directory."""
    return is_store(pid, Files(data_dir.resolve()))
