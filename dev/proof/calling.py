"""HTTP requests, each sent once, with one of three outcomes: answered, never sent, unknown."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

from dev.proof.history import UNREACHABLE, Outcome

TIMEOUT = 15.0
"""Seconds that a client waits for an answer: longer than a server may take."""

# Statuses that mean nothing was done: refusals, and a failed model server (docs/http.md).
_DONE_NOTHING = frozenset({502, 504, 507, 529})


@dataclass
class Response:
    """An answer. If there was none, `status` is 0 and `error` says why; `cut` means that the answer broke off."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str = ""
    cookies: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The body. Raises ValueError."""
        return json.loads(self.body)

    def outcome(self, done: Sequence[int]) -> Outcome:
        """What a client knows from the answer; `done` are the statuses that mean success."""
        if self.error == UNREACHABLE:
            return "refused"
        if self.status in done and not self.error:
            return "acknowledged"
        if not self.error and (400 <= self.status < 500 or self.status in _DONE_NOTHING or self.status in (200, 303)):
            return "refused"
        return "unknown"

    def code(self) -> str:
        """The error code in the body, or the fault of the connection."""
        if self.error or self.status < 400:
            return self.error
        try:
            found = self.json()
            return str(found["error"] if isinstance(found["error"], str) else found["error"]["type"])
        except (ValueError, KeyError, TypeError):
            return ""


class _Once:
    """aiohttp would otherwise repeat a PUT on a new connection when the first one is lost."""

    def __init__(self) -> None:
        self._sent = False

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if self._sent:
            raise aiohttp.ClientConnectionError("lost")
        self._sent = True
        return await handler(request)


class Clients:
    """Connections to all servers, shared by all workers. `hang_up` cuts those in use. While `ending` is set, workers
    end what they have: tokens, sessions, documents, accounts."""

    def __init__(self, servers: Sequence[str], dice: random.Random) -> None:
        self.servers = servers
        self.ending = False
        self._dice = dice
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=False),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self._under_way: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    def hang_up(self) -> int:
        """Every client drops its request and closes the connection. Returns how many."""
        cut = list(self._under_way)
        for task in cut:
            task.cancel("hung up")
        return len(cut)

    async def send(
        self,
        method: str,
        path: str,
        *,
        server: int | None = None,
        patience: float = TIMEOUT,
        most: int | None = None,
        **options: Any,
    ) -> Response:
        """One request to the given server, or to a random one; redirects are not followed. The client hangs up after
        `patience` (s), or after `most` bytes of the body."""
        base = self._dice.choice(self.servers) if server is None else self.servers[server % len(self.servers)]
        answer = Response()
        url = path if path.startswith("http") else base + path
        task = asyncio.ensure_future(self._into(answer, method, url, patience, most, options))
        self._under_way.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._under_way.discard(task)
            task.cancel()
        if task.cancelled():
            answer.error = "hung up"
        elif (failed := task.exception()) is not None:
            raise failed
        return answer

    async def _into(
        self, answer: Response, method: str, url: str, patience: float, most: int | None, options: dict[str, Any]
    ) -> None:
        timeout = aiohttp.ClientTimeout(total=patience)
        try:
            async with self._session.request(
                method, url, allow_redirects=False, timeout=timeout, middlewares=(_Once(),), **options
            ) as response:
                answer.status, answer.headers = response.status, response.headers
                answer.cookies = {name: morsel.value for name, morsel in response.cookies.items()}
                async for piece in response.content.iter_any():
                    answer.body += piece
                    if most is not None and len(answer.body) >= most:
                        answer.error = "hung up"
                        response.close()
                        return
        except aiohttp.ClientConnectorError:
            answer.error = UNREACHABLE
        except TimeoutError:
            answer.error = "no answer in time"
        except (aiohttp.ClientError, OSError) as error:
            answer.error = type(error).__name__
