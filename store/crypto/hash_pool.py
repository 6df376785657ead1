"""A few threads that hash passwords, so memory and waiting are bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")


class HasherBusy(Exception):
    """Too many hashes are waiting; nothing was done, and a later retry may work."""


class HashPool:
    """Runs hashes in `workers` threads; at most `queue` more wait, others get HasherBusy. A quarter of the places is
    reserved for `known` callers."""

    def __init__(self, workers: int, queue: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._free = workers + queue
        self._kept = self._free // 4

    async def run(self, work: Callable[[], _Result], known: bool) -> _Result:
        """The result of the work. Raises HasherBusy."""
        with self._lock:
            if self._free <= (0 if known else self._kept):
                raise HasherBusy("too many passwords are being checked")
            self._free -= 1
        try:
            future = self._executor.submit(work)
        except RuntimeError:
            self._release()
            raise HasherBusy("the password hasher is closed") from None
        # Not when the caller stops waiting: a thread that still runs still uses its memory.
        future.add_done_callback(lambda _: self._release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Gives up what waits, ends the threads; blocks for the hashes that run. Later calls get HasherBusy."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _release(self) -> None:
        with self._lock:
            self._free += 1
