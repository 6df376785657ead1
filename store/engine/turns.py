"""Turns of people: each has one of something at a time, so nobody fills what all share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from store.refused import Refused
from store.threads import Threads

T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Turns:
    """One call of each person at a time. `most`: how many calls of one person there are, with those that wait; None for
    no bound. A person without a call takes no memory."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._lines: dict[str, _Line] = {}

    @contextlib.asynccontextmanager
    async def turn(self, person: str) -> AsyncIterator[None]:
        """Waits for the person's turn, in the order of coming, and holds it. Raises Refused("rate_limited") at once
        where the line is full."""
        line = self._lines.setdefault(person, _Line())
        if self._most is not None and line.length >= self._most:
            raise Refused("rate_limited", "Too many of these are already in progress.", retry_after=1)
        line.length += 1
        try:
            async with line.lock:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[person]


class SharedThreads:
    """Threads that have one call of each person at a time, whether running or in their queue."""

    def __init__(self, threads: Threads, each: int) -> None:
        self._threads = threads
        self._turns = Turns(each)

    async def run(self, person: str, work: Callable[..., T], *args: object) -> T:
        """What the call returns or raises. Raises Refused("rate_limited") where `each` calls of the person are there
        already, Refused("temporarily_unavailable") when the queue is full."""
        async with self._turns.turn(person):
            return await self._threads.run(work, *args)
