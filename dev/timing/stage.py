"""A server with people and apps, and a client that measures response times."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple
from urllib.parse import urlencode

from dev.bench.measure import HOST, Unexpected, serving
from dev.bench.parts.filling import FilledStore
from dev.bench.parts.rows import http
from dev.lab.ports import free_port
from store.apps.client_ids import new_client_id
from store.apps.registration import Registration
from store.crypto.keyring import Keys
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.results import Visitor
from store.wiring import Store

MEMORY_KIB, ITERATIONS = 8192, 1
"""Cost of a password hash: the lowest allowed. All requests share it, and a cheaper hash hides other differences
less."""
PEOPLE = 500
PASSWORD = "correct horse battery"
_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n")
_FIELD = re.compile(rb'name="_xsrf" value="([^"]+)"')
_COOKIE = re.compile(rb"Set-Cookie: (latchkey_xsrf=[^;]+);")


class Cast(NamedTuple):
    """The cast: addresses with an account, and as many of the same length without; an app and its secret; revoked
    access tokens; live ones of another app; and a factory for other tokens of the same people, sealed alike but absent
    from the store."""

    known: list[str]
    invented: list[str]
    client_id: str
    secret: str
    revoked: list[str]
    foreign: list[str]
    rowless: Callable[[], str]


class Response(NamedTuple):
    """An answer, and its time in µs."""

    status: int
    body: bytes
    micros: float


class Stage:
    """One connection to the server. Every request comes from another address and network, so no window fills."""

    def __init__(self, port: int, cast: Cast) -> None:
        self.cast = cast
        self._port = port
        self._addresses = count(1)
        self._socket = self._connect()
        found = self._ask(http("GET", "/signin", {}))[0]
        cookie, field = _COOKIE.search(found), _FIELD.search(found)
        assert cookie
        assert field
        self._cookie, self._xsrf = cookie[1].decode(), field[1].decode()

    def _connect(self) -> socket.socket:
        made = socket.create_connection((HOST, self._port), timeout=30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def form(self, path: str, **fields: str) -> bytes:
        """A form, sent as a browser does."""
        body = urlencode({"_xsrf": self._xsrf, **fields})
        return http("POST", path, {**self._from(), "Cookie": self._cookie, "Accept": "text/html"}, body)

    def post(self, path: str, **fields: str) -> bytes:
        """A request of an app's back end."""
        return http("POST", path, self._from(), urlencode(fields))

    def userinfo(self, token: str) -> bytes:
        """A call of the resource API."""
        return http("GET", "/api/oauth/userinfo", {**self._from(), "Authorization": f"Bearer {token}"})

    def _from(self) -> dict[str, str]:
        number = next(self._addresses)
        # The next address is in another /24: those of one network share windows and a part of the mail queue.
        return {"X-Forwarded-For": f"10.{number & 255}.{number >> 8 & 255}.{number >> 16 & 255}"}

    def ask(self, request: bytes) -> Response:
        """Sends a request and waits for the complete answer."""
        answer, head, micros = self._ask_timed(request)
        return Response(int(answer[9:12]), answer[head:], micros)

    def _ask(self, request: bytes) -> tuple[bytes, float]:
        answer, _, micros = self._ask_timed(request)
        return answer, micros

    def _ask_timed(self, request: bytes) -> tuple[bytes, int, float]:
        began = perf_counter_ns()
        self._socket.sendall(request)
        answer = b""
        while True:
            piece = self._socket.recv(2**17)
            if not piece:
                raise Unexpected(f"the server hung up: {answer[:200]!r}")
            answer += piece
            head = answer.find(b"\r\n\r\n") + 4
            if head >= 4:
                length = _LENGTH.search(answer, 0, head)
                if length is None:
                    raise Unexpected(f"an answer without a length: {answer[:200]!r}")
                if len(answer) >= head + int(length[1]):
                    return answer, head, (perf_counter_ns() - began) / 1000

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


@contextlib.contextmanager
def staged(directory: Path, people: int = PEOPLE) -> Iterator[Stage]:
    """A server on its own store, with `people` accounts. Mail goes to a port where nobody listens."""
    with FilledStore.started(directory / "store") as filled:
        cast = asyncio.run(_populate(filled, people))
        flags = ["--trusted-proxies", "127.0.0.1", "--smtp-url", f"smtp://127.0.0.1:{free_port()}"]
        flags += ["--introspections-per-minute", "10000000"]
        flags += ["--password-memory", str(MEMORY_KIB), "--password-iterations", str(ITERATIONS)]
        with serving(filled.url, filled.ring, directory, "--log-level", "error", *flags) as served:
            stage = Stage(served.port, cast)
            try:
                yield stage
            finally:
                stage.close()


async def _populate(filled: FilledStore, people: int) -> Cast:
    store = await Store.open(
        filled.url,
        Keys(filled.ring),
        PasswordHasher(MEMORY_KIB, ITERATIONS),
        timeout=10,
        connections=8,
        session_idle=86400,
        session_lifetime=86400,
    )
    try:
        known, invented = ([f"{secrets.token_hex(6)}@example.com" for _ in range(people)] for _ in range(2))
        users = [
            await store.people.create(
                email, "A Person", PASSWORD, verified=True, event="created_by_operator", visitor=Visitor()
            )
            for email in known
        ]
        app = Registration(new_client_id(), "An App", ("https://app.example.com/cb",), ("profile",))
        app, secret = await store.apps.create(app)
        assert secret is not None
        revoked = [(await store.tokens.mint(user, app, ("profile",))).access_token for user in users]
        for access in revoked:
            await store.tokens.revoke(None, access)
        other, _ = await store.apps.create(replace(app, client_id=new_client_id(), secrets=()))
        foreign = [(await store.tokens.mint(user, other, ("profile",))).access_token for user in users]
        turns = cycle(users)
        sealer = Sealer(Keys(filled.ring))

        def rowless() -> str:
            return sealer.seal(Token(TokenKind.ACCESS, next(turns), app.client_id, new_id(), 0))

        return Cast(known, invented, app.client_id, secret, revoked, foreign, rowless)
    finally:
        await store.close()
