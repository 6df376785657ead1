"""The processor time of an event loop."""

from __future__ import annotations

import asyncio
import time
from asyncio.events import Handle
from collections.abc import Callable
from typing import Any, Self


class Meter:
    """Processor time of the callbacks of an event loop: `total`, and `longest`, the longest single callback since it
    was last set to 0. Use as a context manager, before the loop starts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.total = self.longest = 0.0

    def __enter__(self) -> Self:
        self._run: Callable[[Handle], Any] = Handle._run
        ours, run = self._loop, self._run

        def measured(handle: Handle) -> None:
            if handle._loop is not ours:  # type: ignore[attr-defined]  # of all handles
                return run(handle)
            begun = time.thread_time()
            try:
                run(handle)
            finally:
                spent = time.thread_time() - begun
                self.total += spent
                self.longest = max(self.longest, spent)

        Handle._run = measured  # type: ignore[method-assign, assignment]  # asyncio has no hook for it
        return self

    def __exit__(self, *raised: object) -> None:
        Handle._run = self._run  # type: ignore[method-assign, assignment]  # puts asyncio's own back
