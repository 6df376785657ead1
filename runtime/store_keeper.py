"""Starts the embedded store again when it ends by itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from store.engine.embedded import EmbeddedStore
from store.errors import StartupError

log = logging.getLogger("latchkey.store")

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
SETTLED: Final = 60.0
"""A store that ran for so many seconds starts again at once after its next end."""


class StoreKeeper:
    """Starts a store again after growing pauses, in seconds. `stopping`: whether the server is about to end."""

    def __init__(self, embedded: EmbeddedStore, stopping: Callable[[], bool]) -> None:
        self._embedded = embedded
        self._stopping = stopping
        self._started = float("-inf")
        self._ends = 0

    def due(self) -> bool:
        """Whether the store has ended and may be started now; cheap."""
        if self._stopping() or not self._embedded.gone():
            return False
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._ends - 1)) if self._ends else 0.0
        return time.monotonic() >= self._started + pause

    def start(self) -> None:
        """Starts the store. Blocks until it has loaded its data, or until the server is about to end."""
        self._ends = self._ends + 1 if time.monotonic() < self._started + SETTLED else 1
        log.error("the embedded store ended; starting it again. Its log is in the data directory")
        try:
            self._embedded.start_again(check=self._check)
            log.warning("the embedded store runs again")
        except (StartupError, OSError) as error:
            log.critical("the embedded store could not be started again: %s", error)
        except _Stopping:
            pass
        self._started = time.monotonic()

    def _check(self) -> None:
        if self._stopping():
            raise _Stopping


class _Stopping(Exception):
    """The server is about to end, and needs no store any more."""
