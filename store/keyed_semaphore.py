"""Semaphores whose places are shared fairly among waiters."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from store.phrases import Phrase
from store.refused import Refused

PART = 4


def share(most: int, taken: int, own: int, part: int = PART) -> int:
    """How many of `most` places one key may hold, when it holds `own` of the `taken` ones: a part of the places that
    the others leave, at least one. So only many keys together can fill all places."""
    return max(1, (most - taken + own) // part)


class FairSemaphore:
    """A semaphore of `most` places, shared fairly by key. The next place goes to the key that holds the fewest; among
    equals, to the key that has waited longest. A key never holds more than its `share`, so places stay free for keys
    that hold none."""

    def __init__(self, most: int, part: int = PART) -> None:
        self._most = most
        self._part = part
        self._taken_by: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._taken = 0

    @contextlib.asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Waits for a place and holds it while the block runs."""
        await self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    async def acquire(self, key: str) -> None:
        """Waits for a place; `release` gives it back."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(key)
            else:
                self._drop(key, turn)
            raise

    def release(self, key: str) -> None:
        """Gives a place back."""
        self._taken -= 1
        self._taken_by[key] -= 1
        if not self._taken_by[key]:
            del self._taken_by[key]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._taken < self._most:
            ready = [key for key in self._waiting if self._taken_by[key] < self._share(key)]
            if not ready:
                return
            key = min(ready, key=lambda one: self._taken_by[one])
            turn = self._waiting[key][0]
            self._drop(key, turn)
            if turn.cancelled():
                continue  # its task has not run since
            self._taken += 1
            self._taken_by[key] += 1
            turn.set_result(None)

    def _drop(self, key: str, turn: asyncio.Future[None]) -> None:
        """Takes a turn from its key's line, and moves the line behind those of the other keys."""
        waiting = self._waiting.pop(key, deque())
        with contextlib.suppress(ValueError):
            waiting.remove(turn)
        if waiting:
            self._waiting[key] = waiting

    def _share(self, key: str) -> int:
        return share(self._most, self._taken, self._taken_by[key], self._part)


@dataclass(slots=True)
class _Line:
    semaphore: FairSemaphore
    length: int = field(default=0)


class KeyedSemaphore:
    """A semaphore of `most` places per key, shared fairly by person; an idle key takes no memory. One person gets at
    most a `part`: 1 is all, 4 a quarter. `queue`: how many may want one key at once, holders of a place included; None
    for no bound."""

    def __init__(self, most: int = 1, part: int = 1, *, queue: int | None = None) -> None:
        self._most = most
        self._part = part
        self._queue = queue
        self._lines: dict[str, _Line] = {}

    @contextlib.asynccontextmanager
    async def place(self, key: str, person: str = "") -> AsyncIterator[None]:
        """Waits for a place and holds it while the block runs. Raises Refused("rate_limited") at once if the queue is
        full."""
        line = self._lines.setdefault(key, _Line(FairSemaphore(self._most, self._part)))
        if self._queue is not None and line.length >= self._queue:
            raise Refused("rate_limited", Phrase("Too many of these are already in progress."), retry_after=1)
        line.length += 1
        try:
            async with line.semaphore.place(person):
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[key]
