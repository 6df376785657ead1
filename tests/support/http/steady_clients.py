"""Clients that keep sending while servers come and go, and know what happened to each request.

They retry only refused connections: a request that was sent and not answered completely is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import new_id
from tests.support.http.driver import Service
from tests.support.http.http_servers import Client, request
from tests.support.processes.processes import opened

PAUSE = 0.005
"""Seconds between two requests of a client."""


Ask = tuple[str, str, dict[str, str]]
"""Method, target, and the form to send, if any."""
NUMBER = "the-number"
"""A placeholder in a form for a number that differs each time."""


HEALTH: Ask = ("GET", "/healthz", {})


async def revocation(url: str, ring: str, here: str) -> Ask:
    """A call of a new app, with its secret, of the server that is `here` and stores everything at `url`. Only the app
    may repeat it."""
    async with opened(url, Keys(KeyRing.parse(ring))) as store:
        app = await Service(here, store).add_app(f"steady-{new_id()}")
    named = {"client_id": app.client_id, "client_secret": str(app.secret)}
    return "POST", "/api/oauth/revoke", {**named, "token": f"{NUMBER} of another server"}


@dataclass
class Steady:
    """Clients of one port. Half of them keep their connections; the others open one for each request. They send
    `requests` in turn. With `until_refused` a refused client stops. `trust`: use TLS."""

    port: int
    requests: tuple[Ask, ...] = (HEALTH,)
    until_refused: bool = False
    trust: ssl.SSLContext | None = None
    statuses: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    refused: int = 0
    last: list[bool] = field(default_factory=list)
    """For each kept connection, whether its last answer said that it was the last."""
    _over: bool = False

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._turn = itertools.cycle(self.requests)
        self._named: dict[str, Any] = {"server_hostname": "localhost"} if self.trust else {}

    @property
    def answered(self) -> int:
        """The number of requests."""
        return sum(self.statuses.values())

    @contextlib.asynccontextmanager
    async def at_work(self, clients: int = 12) -> AsyncIterator[None]:
        """Clients send during the block and finish what they have begun."""
        tasks = [asyncio.ensure_future(self._work(kept=number % 2 == 0)) for number in range(clients)]
        try:
            yield
        finally:
            self._over = True
            await asyncio.gather(*tasks)

    async def more(self, count: int) -> None:
        """Waits for this many more answers."""
        goal = self.answered + count
        async with asyncio.timeout(20):
            while self.answered < goal:
                await asyncio.sleep(0.01)

    def _request(self, fields: tuple[str, ...]) -> bytes:
        method, target, form = next(self._turn)
        if form:
            fields += ("Content-Type: application/x-www-form-urlencoded",)
        return request(method, target, *fields, body=urlencode(form).replace(NUMBER, str(next(self._numbers))).encode())

    async def _work(self, *, kept: bool) -> None:
        while not self._over:
            try:
                client = Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust, **self._named))
            except ConnectionRefusedError:
                self.refused += 1
                if self.until_refused:
                    return
                await asyncio.sleep(PAUSE)
                continue
            except ConnectionError as error:  # reset by a listening socket that was closed
                self.lost.append(f"connecting: {error!r}")
                continue
            async with client:
                await self._ask(client, kept=kept)

    async def _ask(self, client: Client, *, kept: bool) -> None:
        """Until the server says that it was the last answer."""
        closing = False
        while not self._over and not closing:
            try:
                client.write(self._request(() if kept else ("Connection: close",)))
                answer = await client.answer()
            except (ConnectionError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.lost.append(repr(error))
                return
            self.statuses[answer.status] += 1
            closing = answer.fields.get("connection") == "close"
            await asyncio.sleep(PAUSE)
        if kept and not self._over:
            self.last.append(closing)
