"""A webhook receiver of an app's developer, controlled by a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks.webhooks import Webhook


@dataclass(frozen=True)
class Posted:
    """A received request: its request line, headers in lower case, the body."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:
        """The JSON, verified by the Standard Webhooks library. Raises WebhookVerificationError."""
        return Webhook(secret).verify(self.body, self.headers)


Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answering(status: int, *headers: str, body: bytes = b"") -> Reply:
    """Answers at once."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(head).encode() + body)

    return reply


@dataclass
class Receiver:
    """Listens on loopback. `script` has the first answers in turn, `reply` all others."""

    reply: Reply = field(default_factory=lambda: answering(204))
    script: list[Reply] = field(default_factory=list)
    posted: list[Posted] = field(default_factory=list)
    most_at_once: int = 0
    listens: bool = False
    _at_once: int = 0

    async def start(self, host: str = "127.0.0.1", ssl: Any = None) -> None:
        self._arrived = asyncio.Condition()
        self._server = await asyncio.start_server(self._serve, host, 0, ssl=ssl)
        self.port = self._server.sockets[0].getsockname()[1]
        self.listens = True
        self._connections: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def close(self) -> None:
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def count(self, number: int, seconds: float = 20.0) -> list[Posted]:
        """Waits until `number` events have arrived."""
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: len(self.posted) >= number)
        return self.posted

    def events(self) -> list[Any]:
        return [json.loads(one.body) for one in self.posted]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = (line.split(":", 1) for line in head[1:] if line)
            headers = {name.lower(): value.strip() for name, value in fields}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            async with self._arrived:
                self.posted.append(Posted(head[0], headers, body))
                reply = self.script.pop(0) if self.script else self.reply
                self._arrived.notify_all()
            await reply(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):  # `close` cuts what hangs
            pass
        finally:
            self._at_once -= 1
            self._connections.discard(task)
            writer.close()
