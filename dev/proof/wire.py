"""A relay between servers and a store that can lose the store's answers."""

from __future__ import annotations

import asyncio
import contextlib

from dev.bench.measure import HOST
from dev.lab.ports import free_port


class Wire:
    """Passes bytes between a loopback port and a store's socket. `url` is the servers' setting."""

    def __init__(self, socket_path: str) -> None:
        self._target = socket_path
        self._port = free_port()
        self.url = f"redis://{HOST}:{self._port}"
        self._losing = False
        # The bytes of a request whose answer to lose, and who waits for that request.
        self._awaited: tuple[bytes, asyncio.Event] | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        """Starts listening."""
        self._server = await asyncio.start_server(self._carry, HOST, self._port)

    async def close(self) -> None:
        """Closes the relay and all connections."""
        self._server.close()
        self.cut()
        await asyncio.sleep(0)

    async def lose_answer_to(self, request: bytes) -> None:
        """Waits for a request that contains these bytes. From then on requests pass and answers are dropped."""
        came = asyncio.Event()
        self._awaited = request, came
        await came.wait()

    def cut(self) -> None:
        """Cuts every connection. New connections get answers."""
        self._losing, self._awaited = False, None
        for writer in self._open:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            store_reader, store_writer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, store_writer}
        both = [
            asyncio.ensure_future(self._pass(reader, store_writer, answers=False)),
            asyncio.ensure_future(self._pass(store_reader, writer, answers=True)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            for one in (writer, store_writer):
                self._open.discard(one)
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not answers and self._awaited is not None and self._awaited[0] in data:
                    self._losing = True
                    self._awaited[1].set()
                if not (answers and self._losing):
                    writer.write(data)
                    await writer.drain()
