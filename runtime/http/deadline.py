"""A time limit that moves with every request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls `expired` when the time is up. Moving the deadline costs no new timer: a timer that fires early restarts
    itself."""

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        self._loop = loop
        self._expired: Callable[[], None] | None = expired
        self._handle: asyncio.TimerHandle | None = None
        self._rings = 0.0
        self.at: float | None = None
        """In the loop's time; None if there is no limit."""

    def set(self, seconds: float | None) -> None:
        """Sets the time left; None means no limit."""
        if seconds is None:
            self.at = None
            return
        self.at = self._loop.time() + seconds
        if self._handle is None:
            self._start()
        elif self._rings > self.at:
            self._handle.cancel()
            self._start()

    def cancel(self) -> None:
        """Cancels the deadline for good."""
        self.at = self._expired = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _start(self) -> None:
        assert self.at is not None
        self._rings = self.at
        self._handle = self._loop.call_at(self.at, self._ring)

    def _ring(self) -> None:
        self._handle = None
        if self.at is None:
            return
        # uvloop's clock counts whole milliseconds.
        if self.at > self._loop.time() + 0.001:
            self._start()
        elif self._expired is not None:
            self.at = None
            self._expired()
