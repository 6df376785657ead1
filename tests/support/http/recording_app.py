"""An application that records what happens to its clients, and a count of a client's unsent bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler, stream_request_body

from tests.support.http.http_servers import Client

both = pytest.mark.parametrize("http", ["fast", "tornado"])
MEGABYTE = b"x" * 2**20


class Notes:
    """A record of events in the application."""

    def __init__(self) -> None:
        self.begun = 0
        self.closed = 0
        self.written = 0
        self.raised: BaseException | None = None
        self.go_on = asyncio.Event()


class Noting(RequestHandler):
    """Records that a client has gone."""

    @property
    def notes(self) -> Notes:
        found: Notes = self.application.settings["notes"]
        return found

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.notes.closed += 1

    async def write_and_record(self, piece: bytes | str) -> None:
        """Writes, and records the result."""
        self.write(piece)
        try:
            await self.flush()
        except StreamClosedError as error:
            self.notes.raised = error
            raise
        self.notes.written += len(piece)


class Held(Noting):
    """Answers when the test lets it."""

    async def get(self) -> None:
        self.notes.begun += 1
        await self.notes.go_on.wait()
        await self.write_and_record("done")

    post = get


class Begun(Noting):
    """Writes, waits, and writes more."""

    async def get(self) -> None:
        await self.write_and_record("begun")
        await self.notes.go_on.wait()
        await self.write_and_record("done")


class Endless(Noting):
    """Sends 20 MB, more than all buffers between the two hold."""

    async def get(self) -> None:
        for _ in range(20):
            await self.write_and_record(MEGABYTE)


class Large(Noting):
    """Sends 20 MB without waiting for the client."""

    def get(self) -> None:
        self.finish(MEGABYTE * 20)
        self.notes.written += 1


class Cutting(Noting):
    """Cuts the connection in the middle of the answer."""

    async def get(self) -> None:
        connection: Any = self.request.connection
        await self.write_and_record("half")
        connection.stream.close()
        assert connection.stream.closed()
        await self.write_and_record("an answer")


@stream_request_body
class Taking(Noting):
    """Reads a body piece by piece, when the test lets it."""

    async def data_received(self, chunk: bytes) -> None:
        self.notes.begun += 1
        self.notes.written += len(chunk)
        await self.notes.go_on.wait()

    def post(self) -> None:
        self.finish("taken")


@stream_request_body
class Preparing(Noting):
    """Waits before it reads a body."""

    async def prepare(self) -> None:
        await self.notes.go_on.wait()

    def data_received(self, chunk: bytes) -> None:
        """Ignores the body."""

    def post(self) -> None:
        self.finish("taken")


class Detaching(Noting):
    """Uses parts of the connection that do not exist."""

    def get(self) -> None:
        with pytest.raises(NotImplementedError):
            cast(Any, self.request.connection).detach()
        self.finish(f"{self.request.protocol} {self.request.remote_ip} {self.request.get_ssl_certificate()!r}")


@pytest.fixture
def notes(io_loop: Any) -> Iterator[Notes]:
    notes = Notes()
    yield notes
    notes.go_on.set()  # waiting handlers end with the test, not when its loop is collected
    io_loop.run_sync(lambda: asyncio.sleep(0.01))


@pytest.fixture
def site(notes: Notes) -> Application:
    handlers = [Held, Begun, Endless, Large, Cutting, Taking, Preparing, Detaching]
    return Application(
        [(f"/{handler.__name__.lower()}", handler) for handler in handlers],
        notes=notes,
        log_function=lambda handler: None,
    )


async def settled(client: Client) -> int:
    """Bytes that the client still has to send when no more data moves."""
    sizes = [-1]
    while len(sizes) < 20 or len(set(sizes[-20:])) > 1:
        sizes.append(client.writer.transport.get_write_buffer_size())
        await asyncio.sleep(0.001)
    return sizes[-1]
