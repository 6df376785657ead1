"""An open page of connected apps: the stream of what apps do, over a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self
from urllib.parse import urlsplit

from tests.support.http.driver import Browser

PATH = "/account/apps/live"


class LivePage:
    """`apps`: what the page shows by now, by client id; `events`: the names of the events so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status, self.head = 0, ""
        self.apps: dict[str, Any] = {}
        self.all: list[str] = []
        self.events: list[str] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def opening(cls, base_url: str) -> AsyncIterator[Callable[[Browser], Awaitable[Self]]]:
        """Opens pages for browsers; all are closed at the end of the block."""
        async with contextlib.AsyncExitStack() as stack:

            async def open_page(browser: Browser) -> Self:
                page = await cls.open(base_url, browser)
                stack.push_async_callback(page.leave)
                return page

            yield open_page

    @classmethod
    async def open(cls, base_url: str, browser: Browser) -> Self:
        """The page, once the head of the answer is there. `browser` has the cookies."""
        made = cls(*await asyncio.open_connection("127.0.0.1", urlsplit(base_url).port))
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        lines = (f"GET {PATH} HTTP/1.1", "Host: localhost", "Accept: text/event-stream", f"Cookie: {cookies}", "", "")
        made._writer.write("\r\n".join(lines).encode())
        made.head = (await made._reader.readuntil(b"\r\n\r\n")).decode()
        made.status = int(made.head.split(" ")[1])
        return made

    async def event(self) -> str:
        """Takes the next event; returns its name, `comment` for a comment, or "" at the end of the answer."""
        size = int((await self._reader.readuntil(b"\r\n")).strip(), 16)
        piece = (await self._reader.readexactly(size + 2))[:-2].decode()
        if not size:
            return ""
        if piece.startswith(":"):
            return "comment"
        name, data = (line.partition(": ")[2] for line in piece.strip().split("\n"))
        told = json.loads(data)
        self.apps.update(told.get("apps", {}))
        self.all = told.get("all", self.all)
        self.events.append(name)
        return name

    async def until(self, client: str, part: str, seconds: float = 2.0) -> Any:
        """Takes events until what the page shows of an app contains this text; fails after so long."""
        async with asyncio.timeout(seconds):
            while part not in json.dumps(self.apps.get(client)):
                assert await self.event(), "the stream ended"
        return self.apps[client]

    async def ends(self, seconds: float = 2.0) -> list[str]:
        """Takes all events until the answer ends; returns the names of all."""
        async with asyncio.timeout(seconds):
            while await self.event():
                pass
        return self.events

    async def leave(self) -> None:
        """Closes the page."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
