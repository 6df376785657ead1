"""Real servers, a proxy that loses replies, and a clock for fakeredis: the stores that tests run on."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pytest

from dev.lab.engines import VALKEY, Engine, valkey
from store.engine.connect import unix_url
from testkit import fakeredis_private

__all__ = ["VALKEY", "DroppingProxy", "Engine", "FakeClock", "redis_server", "valkey"]


def redis_server(*, append_only: bool = False, options: Sequence[str] = ()) -> Engine:
    """The `redis-server` on the PATH; skips the test without one."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("there is no redis-server on the PATH")
    return Engine(binary, append_only=append_only, options=options)


class DroppingProxy:
    """A proxy in front of an engine that can lose the reply to a request that the engine has executed.

    Listens on a unix socket, or on a loopback port, in its own thread; `url` names it. `seen` counts the commands
    passed on, by upper-case name, so that a test can show that one was sent once. Use as a context manager.
    """

    def __init__(self, engine: Engine, port: int | None = None) -> None:
        self._target = engine.socket_path
        self._directory = tempfile.mkdtemp(prefix="proxy-", dir="/tmp")
        self.socket_path = self._directory + "/p.sock"
        self._port = port
        self.url = f"redis://127.0.0.1:{port}" if port else unix_url(self.socket_path)
        self.seen: Counter[str] = Counter()
        self.dropped = 0
        self._replies: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._clients: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def drop_reply(self, command: str = "EVALSHA", times: int = 1) -> None:
        """Executes the next `times` requests named `command` and cuts their connections before the reply."""
        self._replies[command.upper()] += times

    def drop_request(self, command: str = "EVALSHA", times: int = 1) -> None:
        """Cuts off the next `times` requests named `command` before they reach the engine."""
        self._requests[command.upper()] += times

    def pass_all(self) -> None:
        """Lose nothing more."""
        self._replies.clear()
        self._requests.clear()

    def cut(self) -> None:
        """Close every open connection."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(5)

    def __enter__(self) -> Self:
        started = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self._thread.start()
        started.result(5)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        if self._port is None:
            self._server = await asyncio.start_unix_server(self._serve, self.socket_path)
        else:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _cut(self) -> None:
        for writer in self._clients:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            engine_reader, engine_writer = await asyncio.open_unix_connection(self._target)
            self._clients.add(writer)
            cutting = asyncio.Event()
            back = asyncio.create_task(self._pass_back(engine_reader, writer, cutting))
            try:
                while True:
                    name, request = await _read_request(reader)
                    if self._requests[name] > 0:
                        self._requests[name] -= 1
                        self.dropped += 1
                        break
                    if self._replies[name] > 0:
                        self._replies[name] -= 1
                        cutting.set()
                    self.seen[name] += 1
                    engine_writer.write(request)
                    if cutting.is_set():
                        await back
                        break
            finally:
                back.cancel()
                self._clients.discard(writer)
                engine_writer.close()
        writer.close()

    async def _pass_back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cutting: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            if cutting.is_set():
                self.dropped += 1
                return
            writer.write(data)
        writer.close()


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """A client's request, an array of bulk strings: the command's upper-case name and the bytes."""
    head = await reader.readuntil(b"\r\n")
    raw, words = bytearray(head), []
    for _ in range(int(head[1:])):
        size = await reader.readuntil(b"\r\n")
        word = await reader.readexactly(int(size[1:]) + 2)
        raw += size + word
        words.append(word[:-2])
    return words[0].decode().upper(), bytes(raw)


class Ticking:
    """A clock of this process that a test moves, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeClock:
    """Moves fakeredis's time: key expiry, `TIME` (in scripts too) and every absolute expiry follow it.

    Use as a context manager, one at a time.
    """

    def __init__(self) -> None:
        self._offset = 0.0
        self._stopped: float | None = None

    def advance(self, seconds: float) -> None:
        """Put the clock forward."""
        self._offset += seconds

    def back(self, seconds: float) -> None:
        """Put the clock back, as a failover to a host with a slow clock would."""
        self._offset -= seconds

    def stop(self) -> None:
        """Stop the clock, so that results do not depend on a test's speed."""
        self._stopped = time.time()

    def time(self) -> float:
        """The seconds since 1970 that fakeredis sees."""
        return (time.time() if self._stopped is None else self._stopped) + self._offset

    def __enter__(self) -> Self:
        fakeredis_private.follow(self.time)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        fakeredis_private.follow()
