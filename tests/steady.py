"""Clients that go on asking while servers come and go, and know what became of each request.

They try again where a connection is refused, and nowhere else: a request that was sent and not answered whole is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from tests.fronts import Client, request

PAUSE = 0.005
"""Seconds that a client thinks between two requests."""


@dataclass
class Steady:
    """Clients of one port. `kept`: half of them keep their connections, the others open one for each request.
    `until_refused`: who is refused goes home."""

    port: int
    path: str = "/healthz"
    until_refused: bool = False
    statuses: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    refused: int = 0
    last: list[bool] = field(default_factory=list)
    """Of the connections that were kept, whether their last answer said that it was the last."""
    _over: bool = False

    @property
    def answered(self) -> int:
        """Requests."""
        return sum(self.statuses.values())

    @contextlib.asynccontextmanager
    async def at_work(self, clients: int = 12) -> AsyncIterator[None]:
        """They ask as long as the block goes on, and finish what they have begun."""
        tasks = [asyncio.ensure_future(self._work(kept=number % 2 == 0)) for number in range(clients)]
        try:
            yield
        finally:
            self._over = True
            await asyncio.gather(*tasks)

    async def more(self, count: int) -> None:
        """Waits until so many more were answered."""
        goal = self.answered + count
        async with asyncio.timeout(20):
            while self.answered < goal:
                await asyncio.sleep(0.01)

    async def _work(self, *, kept: bool) -> None:
        while not self._over:
            try:
                client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
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
        told = False
        while not self._over and not told:
            try:
                client.write(request("GET", self.path, *(() if kept else ("Connection: close",))))
                answer = await client.answer()
            except (ConnectionError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.lost.append(repr(error))
                return
            self.statuses[answer.status] += 1
            told = answer.fields.get("connection") == "close"
            await asyncio.sleep(PAUSE)
        if kept and not self._over:
            self.last.append(told)
