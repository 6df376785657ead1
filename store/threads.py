"""A few threads, with a bounded queue, for work that would block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from store.keyed_semaphore import KeyedSemaphore
from store.phrases import Phrase
from store.refused import Refused

T = TypeVar("T")


class Threads:
    """Threads that run at most `workers` calls at once; `queue` more wait, and others are refused."""

    def __init__(self, name: str, *, workers: int, queue: int) -> None:
        self._executor = ThreadPoolExecutor(workers, name)
        self._most = workers + queue
        self.taken = 0
        """How many calls run or wait. Only the event loop changes the count."""

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Runs a call and returns or raises its outcome. Raises Refused("temporarily_unavailable") if the queue is
        full."""
        if self.taken >= self._most:
            raise _refused()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._executor, work, *args)
        except RuntimeError:  # closed
            raise _refused() from None
        self.taken += 1
        future.add_done_callback(self._leave)
        # The call keeps its place until it ends, even if nobody waits for it any more.
        return await asyncio.shield(future)

    def _leave(self, future: asyncio.Future[T]) -> None:
        self.taken -= 1
        if not future.cancelled():
            future.exception()  # marks the exception as retrieved: nobody may be left to do it

    def close(self) -> None:
        """Drops waiting calls and blocks until the running ones have ended. Later calls are refused."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class SharedThreads:
    """Threads that take one call of each person at a time, running or in their queue."""

    def __init__(self, threads: Threads, each: int) -> None:
        self._threads = threads
        self._people = KeyedSemaphore(queue=each)

    async def run(self, person: str, work: Callable[..., T], *args: object) -> T:
        """Runs a call and returns or raises its outcome. Raises Refused("rate_limited") if `each` calls of the person
        are in progress, Refused("temporarily_unavailable") if the queue is full."""
        async with self._people.place(person):
            return await self._threads.run(work, *args)


def _refused() -> Refused:
    return Refused(
        "temporarily_unavailable", Phrase("The server is overloaded. Nothing was done. Try again."), retry_after=1
    )
