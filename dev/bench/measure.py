"""Shared by benchmarks: the server as a process, a cheap HTTP client, figures, tables."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from operator import truediv
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import NamedTuple, Protocol, Self, TypeVar, cast

import psutil

from store.crypto.keyring import KeyRing

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_LISTENING = re.compile(r"Latchkey listening on \S+:(\d+)\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"
T = TypeVar("T")


class Unexpected(Exception):
    """The server's answer or start is unusable for a measurement."""


class Served(NamedTuple):
    """A server as a separate process."""

    port: int
    process: psutil.Process

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident(self) -> int:
        """Bytes of memory in use."""
        return int(self.process.memory_info().rss)


@contextlib.contextmanager
def serving(store_url: str, ring: KeyRing, directory: Path, *flags: str) -> Iterator[Served]:
    """`server.py` on a free port over the store at `store_url`, with default settings except for `flags`.

    Its log is `server.log` in `directory`. Raises Unexpected if it never listens.
    """
    command = ["server.py", "--host", HOST, "--port", "0", "--redis-url", store_url]
    command += ["--data-dir", str(directory / "server"), *flags]
    with running(command, _LISTENING, directory / "server.log", LATCHKEY_SECRET_KEYS=ring.render()) as served:
        yield served


@contextlib.contextmanager
def running(command: Sequence[str], listening: re.Pattern[str], log: Path, **environment: str) -> Iterator[Served]:
    """A Python program whose first line, which `listening` matches, names its port. It ends with the block. Raises
    Unexpected if it never listens."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env={**inherited, **environment},
        )
    with process:
        try:
            assert process.stdout is not None
            found = listening.fullmatch(process.stdout.readline())
            if found is None:
                raise Unexpected(f"{command[0]} does not listen: {log.read_text()}")
            yield Served(int(found[1]), psutil.Process(process.pid))
        finally:
            process.terminate()


def request(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    """The bytes of an HTTP/1.1 request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@dataclass(frozen=True, slots=True)
class Burst:
    """Requests, all with correct answers. Seconds: of all together, of each one, of each until the first bytes of its
    body, and the longest pause of each after those."""

    seconds: float
    latencies: list[float]
    firsts: list[float]
    pauses: list[float]


class Client:
    """Keep-alive connections, one request at a time on each: a closed loop."""

    def __init__(self, connections: Sequence[_Connection]) -> None:
        self._connections = connections

    @classmethod
    async def connect(cls, port: int, connections: int) -> Self:
        """Opens the connections."""
        loop = asyncio.get_running_loop()
        return cls([(await loop.create_connection(_Connection, HOST, port))[1] for _ in range(connections)])

    async def burst(self, requests: Iterable[bytes], expected: bytes = b"") -> Burst:
        """Sends the requests, one at a time on each connection. Raises Unexpected for an answer other than 200 and 201,
        or without the expected bytes."""
        waiting, burst = iter(requests), Burst(0.0, [], [], [])
        start = perf_counter()
        await asyncio.gather(*(connection.work(waiting, burst, expected) for connection in self._connections))
        return replace(burst, seconds=perf_counter() - start)

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._connections:
            connection.close()


class _Connection(asyncio.Protocol):
    """Reads only the status and the end of an answer, and checks for the expected bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._received = bytearray()
        self._done: asyncio.Future[None] | None = None

    def work(self, waiting: Iterator[bytes], burst: Burst, expected: bytes) -> asyncio.Future[None]:
        """Takes requests from `waiting` until there are none, and appends to `burst` the seconds of each."""
        self._waiting, self._burst, self._expected = waiting, burst, expected
        self._done = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self._done.set_exception(Unexpected("the server closed a connection"))
        else:
            self._next(self._done)
        return self._done

    def _next(self, done: asyncio.Future[None]) -> None:
        following = next(self._waiting, None)
        if following is None:
            done.set_result(None)
            return
        self._first = self._last = self._pause = 0.0
        self._sent = perf_counter()
        self._transport.write(following)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n") + 4
        if head < 4 or self._done is None or self._done.done():
            return
        arrived = perf_counter()
        if self._first:
            self._pause = max(self._pause, arrived - self._last)
        elif len(self._received) > head:
            self._first = arrived
        self._last = arrived
        if not self._complete(head):
            return
        if bytes(self._received[9:12]) not in (b"200", b"201") or self._expected not in self._received:
            self._done.set_exception(Unexpected(self._received.decode("utf-8", "replace")))
            return
        self._burst.latencies.append(arrived - self._sent)
        self._burst.firsts.append((self._first or arrived) - self._sent)
        self._burst.pauses.append(self._pause)
        self._received.clear()
        self._next(self._done)

    def _complete(self, head: int) -> bool:
        length = _LENGTH.search(self._received, 0, head)
        if length is None and _CHUNKED.search(self._received, 0, head):
            return self._received.endswith(_LAST_CHUNK)
        return len(self._received) >= head + (int(length[1]) if length else 0)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(Unexpected(f"the server closed a connection: {exc}"))

    def close(self) -> None:
        self._transport.close()


class Sampled(Protocol):
    """What a benchmark takes samples of."""

    def forget(self) -> None:
        """Drops the samples."""


async def in_rounds(
    turns: deque[T], one_round: Callable[[], Awaitable[None]], sampled: Iterable[Sampled], seconds: float
) -> int:
    """Runs rounds over `turns` for some seconds, at least one; each round starts with another turn. A first round warms
    up servers, stores and connections, and doesn't count. Returns the number of rounds."""
    await one_round()
    for one in sampled:
        one.forget()
    deadline = monotonic() + seconds
    rounds = 0
    while not rounds or monotonic() < deadline:
        turns.rotate(1)
        await one_round()
        rounds += 1
    return rounds


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed."""
    return sorted(values)[max(1, ceil(len(values) * percent / 100)) - 1]


def compared(values: Sequence[float], others: Sequence[float], digits: int) -> str:
    """The median of the values, and the median of their ratios to the others' values of the same round: a slow round
    changes no ratio."""
    ratio = median(map(truediv, values, others))
    return f"{median(values):,.{digits}f} (×{ratio:.2f})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: int = 2) -> str:
    """A table in Markdown; all columns but the first `words` are figures."""
    rule = ["---" if column < words else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def progress(message: str) -> None:
    """Reports progress on standard error."""
    print(message, file=sys.stderr, flush=True)
