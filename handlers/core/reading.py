"""Reads long bodies in a thread; one person's bodies do not delay another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from handlers.core.concurrency import ConcurrencyLimit
from store.keyed_semaphore import KeyedSemaphore
from store.refused import Refused
from store.results import Window
from store.threads import Threads

T = TypeVar("T")

LONG_BODY = 2**14
"""Bytes of a body that is read at once. For a longer body, token and window are checked first, in an extra round trip:
an unread body has an unknown cost."""
MOST, EACH = 256, 8
"""Long bodies that a process has at once, of all people and of one."""


class Readers:
    """One thread. Each person has one body in it or its queue; that person's other bodies wait for their turn."""

    def __init__(self, most: int = MOST, each: int = EACH) -> None:
        self.limit = ConcurrencyLimit(most, each, shrinks=True)
        self._threads = Threads("latchkey-read", workers=1, queue=most)
        self._people = KeyedSemaphore(1)

    @property
    def queued(self) -> int:
        """How many bodies the thread reads or has in its queue."""
        return self._threads.taken

    async def run(self, person: str, window: Window, work: Callable[[], T], gone: Callable[[], bool] = bool) -> T:
        """What the call returns or raises. Nothing is read for somebody who is `gone` when it is their turn. Raises
        Refused("temporarily_unavailable" or "rate_limited")."""

        def read() -> T:
            if gone():
                raise Refused("invalid_request", "The connection was closed.")  # no sign of an overload
            return work()

        with self.limit.place(person, window=window):
            async with self._people.place(person):
                return await self._threads.run(read)
