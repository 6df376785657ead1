"""The HTTP server that the tests run on, and a raw client for bytes that no HTTP library would send."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerConnectionDelegate
from tornado.testing import bind_unused_port

from runtime.http.plain_server import PlainServer
from runtime.http.server import HttpServer

HTTP_SERVERS: dict[str, type[HTTPServer]] = {"fast": HttpServer, "tornado": PlainServer}
CHOSEN = os.environ.get("LATCHKEY_TEST_HTTP") or "fast"
assert CHOSEN in HTTP_SERVERS, f"LATCHKEY_TEST_HTTP is one of {', '.join(HTTP_SERVERS)}"
SECONDS = 10.0
"""Longest wait of a test in seconds. Only a failing test waits that long."""


def chosen(app: HTTPServerConnectionDelegate, **options: Any) -> HTTPServer:
    """The HTTP server of this test run."""
    return HTTP_SERVERS[CHOSEN](app, **options)


@dataclass
class Running:
    """A server on a free port."""

    server: HTTPServer
    port: int
    socket: socket.socket

    async def connect(self) -> Client:
        """A new connection."""
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))

    async def ask(self, sent: bytes) -> bytes:
        """Everything received until the server closes."""
        async with await self.connect() as client:
            client.write(sent)
            return await client.rest()


@asynccontextmanager
async def running(app: Any, http: str = "fast", **options: Any) -> AsyncIterator[Running]:
    """Serves the application."""
    listening, port = bind_unused_port()
    server = HTTP_SERVERS[http](app, **options)
    server.add_socket(listening)
    try:
        yield Running(server, port, listening)
    finally:
        server.stop()
        await server.close_all_connections()


class Client:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, data: bytes) -> None:
        """Sends."""
        self.writer.write(data)

    async def rest(self) -> bytes:
        """Everything until the server closes; a reset counts as closing."""
        received = bytearray()
        with suppress(ConnectionError):
            while piece := await within(self.reader.read(2**16)):
                received += piece
        return bytes(received)

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer, with a Content-Length or in chunks. With `head`, the answer has no body."""
        text = (await within(self.reader.readuntil(b"\r\n\r\n"))).decode("latin-1")
        line, *lines = text.split("\r\n")[:-2]
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(line.split(" ")[1])
        body = b""
        if not head and status not in (100, 204, 304):
            if "content-length" in fields:
                body = await within(self.reader.readexactly(int(fields["content-length"])))
            elif fields.get("transfer-encoding") == "chunked":
                body = b"".join(await self.chunks())
        return Answer(status, fields, body)

    async def chunks(self) -> list[bytes]:
        """The chunks up to the last one."""
        found = []
        while size := int(await within(self.reader.readuntil(b"\r\n")), 16):
            found.append((await within(self.reader.readexactly(size + 2)))[:-2])
        assert await within(self.reader.readexactly(2)) == b"\r\n"
        return found

    def close(self) -> None:
        """Closes the connection."""
        self.writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@dataclass(frozen=True)
class Answer:
    """One answer; the names of `fields` are in lower case."""

    status: int
    fields: dict[str, str]
    body: bytes


def statuses(received: bytes) -> tuple[int, ...]:
    """The statuses of the answers in a stream of bytes."""
    return tuple(int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received))


def request(method: str = "GET", target: str = "/", *fields: str, body: bytes = b"", version: str = "1.1") -> bytes:
    """A request. Adds Host and Content-Length where needed."""
    lines = [f"{method} {target} HTTP/{version}", *(["Host: localhost"] if version == "1.1" else []), *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def within(awaitable: Awaitable[Any]) -> Any:
    """The result; fails if it takes too long."""
    return await asyncio.wait_for(awaitable, SECONDS)


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until the condition holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def joined(pieces: Sequence[bytes]) -> bytes:
    """Pipelined requests."""
    return b"".join(pieces)
