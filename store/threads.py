"""Threads for work that would hold up the event loop: few of them, with a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from store.keyed_semaphore import KeyedSemaphore
from store.refused import Refused

T = TypeVar("T")


class Threads:
    """At most `workers` calls run at once and `queue` more wait; others are refused."""

    def __init__(self, name: str, *, workers: int, queue: int) -> None:
        self._executor = ThreadPoolExecutor(workers, name)
        self._most = workers + queue
        self.taken = 0
        """How many calls run or wait. Counted on the event loop alone."""

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """What the call returns or raises. Raises Refused("temporarily_unavailable") when the queue is full."""
        if self.taken >= self._most:
            raise _refused()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._executor, work, *args)
        except RuntimeError:  # closed
            raise _refused() from None
        self.taken += 1
        future.add_done_callback(self._leave)
        # The place is taken until the call ends, also when nobody waits for it any more.
        return await asyncio.shield(future)

    def _leave(self, future: asyncio.Future[T]) -> None:
        self.taken -= 1
        if not future.cancelled():
            future.exception()  # nobody may be left who looks at it

    def close(self) -> None:
        """Drops what waits and blocks until the calls that run have ended. Later calls are refused."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class SharedThreads:
    """Threads that have one call of each person at a time, whether running or in their queue."""

    def __init__(self, threads: Threads, each: int) -> None:
        self._threads = threads
        self._people = KeyedSemaphore(queue=each)

    async def run(self, person: str, work: Callable[..., T], *args: object) -> T:
        """What the call returns or raises. Raises Refused("rate_limited") where `each` calls of the person are there
        already, Refused("temporarily_unavailable") when the queue is full."""
        async with self._people.place(person):
            return await self._threads.run(work, *args)


def _refused() -> Refused:
    return Refused("temporarily_unavailable", "The server is busy. Nothing was done: try again.", retry_after=1)
