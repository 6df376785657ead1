"""The surroundings of the demo app in tests: a small authorization server, the app's process, and a browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

PROGRAM = Path(__file__).parent.parent.parent.parent / "examples" / "demo_app.py"
ADA = {"sub": "user-1", "name": "Ada Lovelace", "email": "ada@example.org", "picture": ""}


class Stub:
    """The data of the authorization server and the requests it got. `answers` overrides an endpoint's answer."""

    def __init__(self) -> None:
        self.issuer = ""
        self.challenges: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, str], str]] = []
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {}
        self.issued = 0
        self.refresh_token = ""
        self.has_model = False
        self.hung_up = threading.Event()

    def named(self, name: str) -> list[tuple[dict[str, str], str]]:
        return [(form, authorization) for path, form, authorization in self.calls if path == name]

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        self.calls.append((path, form, authorization))
        if path in self.answers:
            return self.answers[path]
        if path == "token":
            return self.token(form)
        if path == "userinfo":
            return (
                (200, ADA) if authorization == f"Bearer at-secret-{self.issued}" else (401, {"error": "invalid_token"})
            )
        return 200, {}

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "authorization_code":
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            live = self.challenges.pop(form["code"], "") == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        else:
            live = form["refresh_token"] == self.refresh_token
        if not live:
            return 400, {"error": "invalid_grant", "error_description": "not live"}
        self.issued += 1
        self.refresh_token = f"rt-secret-{self.issued}"
        tokens = {"access_token": f"at-secret-{self.issued}", "refresh_token": self.refresh_token}
        return 200, {**tokens, "token_type": "Bearer", "expires_in": 3600, "scope": "profile data:read"}


class Metadata(RequestHandler):
    def get(self) -> None:
        issuer = self.settings["stub"].issuer
        paths = {name: f"{issuer}/{name}" for name in ("token", "userinfo", "revocation", "authorization")}
        endpoints = {f"{name}_endpoint": url for name, url in paths.items()}
        self.write({"issuer": issuer, "authorization_response_iss_parameter_supported": True, **endpoints})


class Endpoint(RequestHandler):
    def get(self, path: str) -> None:
        form = {name: values[0] for name, values in parse_qs(self.request.body.decode()).items()}
        status, body = self.settings["stub"].answer(path, form, self.request.headers.get("Authorization", ""))
        self.set_status(status)
        self.write(body)

    post = put = delete = get


class Endless(RequestHandler):
    """An optional model that streams until its client hangs up."""

    async def post(self) -> None:
        if not self.settings["stub"].has_model:
            raise HTTPError(404)
        said = {"type": "content_block_delta", "delta": {"text": "and "}}
        with suppress(StreamClosedError):
            while True:
                self.write(f"data: {json.dumps(said)}\n\n")
                await self.flush()
                await asyncio.sleep(0.01)

    def on_connection_close(self) -> None:
        self.settings["stub"].hung_up.set()


@contextmanager
def serving() -> Iterator[Stub]:
    """A stub on a loopback port, in its own thread."""
    stub, ready, loop = Stub(), threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        routes = [
            (r"/.*\.well-known/oauth-authorization-server", Metadata),
            (r"/api/v1/ai/messages", Endless),
            (r"/(?:api/v1/data/)?(\w+)(?:/[\w-]+)?", Endpoint),
        ]
        server = HTTPServer(Application(routes, stub=stub, log_function=lambda handler: None))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        stub.issuer = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        stop.add_done_callback(lambda _: server.stop())
        ready.set()
        await stop
        await server.close_all_connections()

    stop = loop.create_future()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield stub
    loop.call_soon_threadsafe(stop.set_result, None)
    thread.join(10)
    loop.close()


class Demo:
    """A running demo app: its address and its log file."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self.log = url, log


@contextmanager
def running(issuer: str, log: Path, *options: str, secret: str = "", signing: str = "") -> Iterator[Demo]:
    command = [sys.executable, str(PROGRAM), "--latchkey", issuer, "--client-id", "app:1", "--port", "0", *options]
    environment = {**os.environ, "DEMO_CLIENT_SECRET": secret, "DEMO_WEBHOOK_SECRET": signing}
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True) as process,
    ):
        try:
            assert process.stdout
            line = process.stdout.readline().strip()
            assert line.startswith("Demo app listening on http://localhost:"), log.read_text()
            yield Demo(line.removeprefix("Demo app listening on "), log)
        finally:
            process.terminate()


class Browser:
    """A browser that keeps the app's cookie, follows no redirect, and remembers every answer."""

    def __init__(self, demo: Demo) -> None:
        self.host, self.cookie, self.shown = urlsplit(demo.url).netloc, "", ""
        self.redirect_uri = f"{demo.url}/callback"

    def ask(self, path: str, form: dict[str, str] | None = None) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            body = None if form is None else urlencode(form)
            headers = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("GET" if form is None else "POST", path, body, headers)
            response = connection.getresponse()
            page = response.read().decode()
        finally:
            connection.close()
        if response.headers["Set-Cookie"]:
            self.cookie = response.headers["Set-Cookie"].split(";")[0]
        self.shown += page + str(response.headers)
        return response.status, response.headers, page

    def begin(self, stub: Stub, code: str = "code-secret") -> dict[str, str]:
        """Start a sign-in; returns the query of the server's redirect back."""
        status, headers, _ = self.ask("/login")
        assert status == 303
        query = {name: values[0] for name, values in parse_qs(urlsplit(headers["Location"]).query).items()}
        assert query["code_challenge_method"] == "S256"
        assert query["redirect_uri"] == self.redirect_uri
        stub.challenges[code] = query["code_challenge"]
        return {"code": code, "state": query["state"], "iss": stub.issuer}

    def connect(self, stub: Stub) -> str:
        """Sign in; returns the greeting page."""
        status, headers, _ = self.ask("/callback?" + urlencode(self.begin(stub)))
        assert (status, headers["Location"]) == (303, "/")
        return self.ask("/")[2]

    def press(self, page: str, action: str) -> tuple[int, str]:
        """Press the button of the form that posts to `action`."""
        found = re.search(rf'action="{action}".*?name="form_token" value="([^"]+)"', page, re.DOTALL)
        assert found, page
        status, _, answer = self.ask(action, {"form_token": found[1]})
        return status, answer
