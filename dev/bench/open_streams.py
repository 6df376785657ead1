"""The memory that an open stream takes in the server."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.bench.measure import HOST, Served, Unexpected, request, table
from dev.bench.parts.calling import Reply, Through, latchkey
from dev.bench.parts.filling import FilledStore, Pair
from dev.bench.parts.stub_upstream import FRAME, HOLD
from store.lifetimes import AI

AT_ONCE = 50
WARM = 20

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Memory:
    """The server's resident memory in bytes: at rest, with idle connections, and with an open stream on each."""

    streams: int
    rest: int
    connected: int
    streaming: int

    def printed(self) -> str:
        """The results as a table."""
        rows = [("at rest", _mib(self.rest), "")]
        for what, now, before in (
            ("connections, idle", self.connected, self.rest),
            ("open streams, with their connections", self.streaming, self.rest),
        ):
            each = (now - before) / self.streams / 1024
            rows.append((f"{self.streams:,} {what}", _mib(now), f"{each:,.1f}"))
        return table(("the server", "resident, MiB", "each, KiB"), rows)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"


def room_for(streams: int) -> None:
    """Raises this process's limit of open files for `streams` streams; children inherit it. Raises Unexpected."""
    needed = 3 * streams + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise Unexpected(f"{streams} streams take {needed} open files, and {hard} are allowed (ulimit -n)")
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


async def measure(
    store: FilledStore, pairs: Sequence[Pair], stub: Served, streams: int, length: int, directory: Path
) -> Memory:
    """Opens streams that stop half-way, on a separate server, and measures its memory. Raises Unexpected."""
    held, ended = Reply(200, HOLD, True, length), Reply(200, 0, True, length)
    with latchkey(store, stub, (held, ended), directory) as served:
        way = Through(served, store, pairs)
        # People take turns: one person may have few long requests read at a time.
        tokens = [pair.token for _ in range(AI.limit) for pair in pairs]
        if len(tokens) < streams + WARM:
            raise Unexpected(f"{streams} streams take more people: each has {AI.limit} calls a minute")
        # One-time loads and allocations must not count for streams.
        warm = await _Streams.connect(served, WARM)
        await warm.each([way.request(ended, token) for token in tokens[:WARM]], ended.all_events)
        await warm.close()
        rest = served.resident()
        opened = await _Streams.connect(served, streams)
        await opened.each([request("GET", "/healthz", "none")] * streams, 0)
        connected = served.resident()
        sent = [way.request(held, token) for token in tokens[WARM : WARM + streams]]
        await opened.each(sent, (held.events + FRAME) // 2)
        streaming = served.resident()
        await opened.close()
        way.close()
    return Memory(streams, rest, connected, streaming)


class _Streams:
    """Connections that each wait for a number of events."""

    def __init__(self, ends: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
        self._ends = ends
        self._turns = asyncio.Semaphore(AT_ONCE)

    @classmethod
    async def connect(cls, served: Served, number: int) -> _Streams:
        return cls([await asyncio.open_connection(HOST, served.port) for _ in range(number)])

    async def each(self, requests: Sequence[bytes], events: int) -> None:
        """Sends one request on each connection, and waits for the head and `events` events."""
        async with asyncio.timeout(_SECONDS):
            await asyncio.gather(
                *(self._one(*end, sent, events) for end, sent in zip(self._ends, requests, strict=True))
            )

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes, events: int) -> None:
        async with self._turns:
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise Unexpected(head.decode("latin-1"))
            if not events:
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            for _ in range(events):
                await reader.readuntil(b"\n\n")

    async def close(self) -> None:
        for _, writer in self._ends:
            writer.close()
        for _, writer in self._ends:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
