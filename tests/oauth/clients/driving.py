"""Has the examples of the client libraries do what an app does, one way for all of them, in Python and in Node."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.oauth.clients.account import Account
from tests.oauth.clients.table import BASIC, HERE, NONE, POST, Library
from tests.support.http.driver import NAME, PASSWORD, Browser
from tests.support.processes.npm import packages

NODE = HERE / "node"
WEB, NATIVE = "web", "native"
EAGER = "eager@example.com"
SECRET = "s" * 43
SECONDS = 20
"""What a call in Node may take."""
SCOPE = "profile data:read"
CALLBACK = "http://127.0.0.1/callback"
CALLBACKS = [CALLBACK, "http://127.0.0.1/auth/callback/latchkey"]
APPS: list[dict[str, Any]] = [
    {"client_id": WEB, "client_secret": SECRET, "name": "Web", "redirect_uris": CALLBACKS, "scopes": SCOPE},
    {"client_id": NATIVE, "name": "Native", "redirect_uris": CALLBACKS, "scopes": SCOPE, "public": True},
]


class Failed(Exception):
    """A call of a library failed; `code` is the error that it lets an app read."""

    def __init__(self, code: str | None, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Client(Protocol):
    """A library at work for one person. Each call raises Failed."""

    def begin(self) -> str:
        """The address that the person's browser is sent to."""

    def finish(self, callback: str) -> None:
        """Takes the browser back, and the tokens."""

    def userinfo(self) -> dict[str, Any]:
        """Who the person is, with a refresh first where the access token is over."""

    def together(self, times: int) -> list[dict[str, Any]]:
        """The same several times at once."""

    def refresh(self) -> None:
        """Makes new tokens of the refresh token."""

    def revoke(self) -> None:
        """Ends the tokens."""

    def expire(self) -> None:
        """For the app, the hour of the access token goes by."""

    def refresh_token(self) -> str:
        """The one that the app keeps."""


@dataclass
class PythonClient:
    """An example in this process."""

    module: Any
    settings: dict[str, Any]
    runner: asyncio.Runner
    session: dict[str, str] = field(default_factory=dict)
    target: Any = None

    def discover(self) -> None:
        self.app = self._call(lambda: self.module.Latchkey(**self.settings))

    def begin(self) -> str:
        return str(self._call(self.app.begin, self.session))

    def finish(self, callback: str) -> None:
        self.account: Account = self._call(self.app.finish, self.session, callback)
        # What an asynchronous client of Authlib's works with; the others take the account.
        stays = self.module.__name__.endswith("authlib_httpx")
        self.target = self.app.open(self.account) if stays else self.account

    def userinfo(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call(self.app.userinfo, self.target)
        return found

    def together(self, times: int) -> list[dict[str, Any]]:
        if inspect.iscoroutinefunction(self.app.userinfo):

            async def all_of_them() -> list[dict[str, Any]]:
                return [*await asyncio.gather(*(self.app.userinfo(self.target) for _ in range(times)))]

            found: list[dict[str, Any]] = self._call(all_of_them)
            return found
        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(lambda _: self.userinfo(), range(times)))

    def refresh(self) -> None:
        self._call(self.app.refresh, self.target)

    def revoke(self) -> None:
        self._call(self.app.revoke, self.target)

    def expire(self) -> None:
        self.account.token["expires_at"] -= 7200
        if self.target is not self.account:
            self.target.token["expires_at"] = self.account.token["expires_at"]

    def refresh_token(self) -> str:
        return str(self.account.token["refresh_token"])

    def close(self) -> None:
        """Closes what stayed open."""
        if self.target is not None and self.target is not self.account:
            self.runner.run(self.target.aclose())

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            found = function(*args)
            return self.runner.run(found) if inspect.iscoroutine(found) else found
        except Exception as error:
            raise Failed(self.module.code_of(error), repr(error)) from error


class Node:
    """A process of Node with one library, by way of drive.mjs."""

    def __init__(self, library: Library) -> None:
        packages(NODE)
        command = [str(shutil.which("node")), "drive.mjs", library.path.stem]
        self.process = subprocess.Popen(command, cwd=NODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, *call: Any) -> Any:
        """What a call comes to. Raises Failed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        answers, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        assert answers, f"no answer to {call[0]} after {SECONDS} seconds"
        line = self.process.stdout.readline()
        assert line, f"node ended with {self.process.wait()}"
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["code"], answer["error"])
        return answer["value"]

    def close(self) -> None:
        """Ends it."""
        with self.process:
            self.process.kill()


@dataclass
class NodeClient:
    """An example in a process of Node."""

    node: Node
    settings: dict[str, Any]

    def discover(self) -> None:
        self.node.call("discover", self.settings)

    def begin(self) -> str:
        return str(self.node.call("begin"))

    def finish(self, callback: str) -> None:
        self.node.call("finish", callback)

    def userinfo(self) -> dict[str, Any]:
        found: dict[str, Any] = self.node.call("userinfo")
        return found

    def together(self, times: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.node.call("together", times)
        return found

    def refresh(self) -> None:
        self.node.call("refresh")

    def revoke(self) -> None:
        self.node.call("revoke")

    def expire(self) -> None:
        self.node.call("expire")

    def refresh_token(self) -> str:
        return str(self.node.call("refreshToken"))


class Clients:
    """Makes clients; a library of Node's has one process for all of its clients."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._nodes: dict[str, Node] = {}

    def close(self) -> None:
        """Ends the processes."""
        for node in self._nodes.values():
            node.close()

    @contextmanager
    def of(self, library: Library, method: str, secret: str = SECRET) -> Iterator[Client]:
        """The library for the confidential app, or for the public one with the method NONE; it has discovered."""
        client_id, given = (NATIVE, None) if method == NONE else (WEB, secret)
        if library.path.suffix == ".mjs":
            words: dict[str, Any] = {
                "issuer": self.issuer,
                "clientId": client_id,
                "redirectUri": CALLBACK,
                "scope": SCOPE,
            }
            words |= {"inBody": method == POST, **({"clientSecret": given} if given else {})}
            if library.name not in self._nodes:
                self._nodes[library.name] = Node(library)
            node = NodeClient(self._nodes[library.name], words)
            node.discover()
            yield node
            return
        settings = {"issuer": self.issuer, "redirect_uri": CALLBACK, "scope": SCOPE, "client_id": client_id}
        settings |= _authentication(library, method, given)
        with asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patch:
            patch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # requests-oauthlib refuses http:// without
            python = PythonClient(importlib.import_module(f"tests.oauth.clients.{library.path.stem}"), settings, runner)
            python.discover()
            if library.name == "httpx-oauth" and method == POST:
                python.app.client.token_endpoint_auth_method = POST
            try:
                yield python
            finally:
                python.close()


def _authentication(library: Library, method: str, secret: str | None) -> dict[str, Any]:
    """The settings of each Python example."""
    if library.name == "httpx-oauth":
        return {"client_secret": secret or ""}
    if library.name == "requests-oauthlib":
        return {"client_secret": secret, "in_body": method != BASIC}
    return {"client_secret": secret, "token_endpoint_auth_method": method}


class Person:
    """Somebody with an account, in a browser in which they have signed in."""

    def __init__(self, issuer: str, email: str) -> None:
        self.browser = Browser(issuer)
        assert asyncio.run(self.browser.sign_in(email)).code == 303

    def decides(self, address: str, decision: str = "allow", untick: tuple[str, ...] = ()) -> str:
        """Opens the address that an app sends the browser to, and decides; returns where the browser is sent then."""
        answer = asyncio.run(self.browser.consent(address, decision, untick))
        return str(answer.headers["Location"])


def email_of(library: Library) -> str:
    """Of the person who signs in with a library."""
    return library.name.strip("@").replace("/", "-") + "@example.com"


def seed_in(directory: Path, *emails: str, apps: list[dict[str, Any]] = APPS) -> str:
    """A seed file with the apps and these people."""
    users = [{"email": email, "name": NAME, "password": PASSWORD} for email in emails]
    file = directory / "seed.json"
    file.write_text(json.dumps({"apps": apps, "users": users}))
    return str(file)
