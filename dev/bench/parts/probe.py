"""An open-loop client: asks at a given rate, and notes when and how each request was answered."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Sequence
from itertools import cycle
from time import perf_counter
from typing import NamedTuple, cast

from dev.bench.measure import HOST

TICK = 0.001
"""Seconds between two checks for due requests."""
MOST = 3_900
"""Most connections: fewer than the server accepts."""


class Seen(NamedTuple):
    """An answer: when it was requested and how long it took, in seconds; its status, or 0 if none came."""

    at: float
    took: float
    status: int


class Probe:
    """Asks the server at `port` at random times, `rate` times a second on average, on a free connection or a new one.
    The rate may be changed. Use as a context manager; at the end it waits for requests in progress."""

    def __init__(self, port: int, requests: Sequence[bytes], rate: float) -> None:
        self.rate = rate
        self.free: list[_Connection] = []
        self.open = 0
        self.unsent = 0
        """Requests that found no free connection: all were waiting for answers."""
        self._port = port
        self._requests = cycle(requests)
        self._connecting: set[asyncio.Task[None]] = set()
        # Numbers, not objects: there may be a million answers.
        self._at, self._took, self._status = array("d"), array("d"), array("H")

    @property
    def seen(self) -> list[Seen]:
        """Every answer, in the order they came."""
        return [Seen(*one) for one in zip(self._at, self._took, self._status, strict=True)]

    async def __aenter__(self) -> Probe:
        self._loop = asyncio.get_running_loop()
        self._due = perf_counter()
        self._timer = self._loop.call_soon(self._tick)
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._timer.cancel()
        if self._connecting:
            await asyncio.wait(self._connecting)
        deadline = perf_counter() + 60
        while len(self.free) < self.open and perf_counter() < deadline:
            await asyncio.sleep(0.01)
        for one in self.free:
            one.close()

    def _tick(self) -> None:
        now = perf_counter()
        while self._due <= now:
            # A late tick counts as latency: the request was due earlier.
            self._send(self._due)
            self._due += random.expovariate(self.rate)
        self._timer = self._loop.call_later(max(TICK, self._due - now), self._tick)

    def _send(self, due: float) -> None:
        if self.free:
            self.free.pop().ask(next(self._requests), due)
        elif self.open < MOST:
            self.open += 1
            task = self._loop.create_task(self._connect(due))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
        else:
            self.unsent += 1

    async def _connect(self, due: float) -> None:
        try:
            _, made = await self._loop.create_connection(lambda: _Connection(self), HOST, self._port)
        except OSError:
            self.open -= 1
            self.note(due, 0)
        else:
            made.ask(next(self._requests), due)

    def note(self, due: float, status: int) -> None:
        """Notes an answer, or that none comes."""
        self._at.append(due)
        self._took.append(perf_counter() - due)
        self._status.append(status)


class _Connection(asyncio.Protocol):
    """One request at a time; reads the status and the end of the answer only."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._due: float | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes, due: float) -> None:
        """Sends a request."""
        self._due = due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._received:
            data = self._received + data
        head = data.find(b"\r\n\r\n") + 4
        begins = data.find(b"\r\nContent-Length: ", 0, head) + 18
        if head < 4 or begins < 18 or len(data) < head + int(data[begins : data.index(b"\r", begins)]):
            self._received = data
            return
        self._received = b""
        due, self._due = self._due, None
        if due is not None:
            self._probe.note(due, int(data[9:12]))
            self._probe.free.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._probe.open -= 1
        if self._due is not None:
            self._probe.note(self._due, 0)
            self._due = None
        elif self in self._probe.free:
            self._probe.free.remove(self)

    def close(self) -> None:
        """Closes the connection."""
        self._transport.close()
