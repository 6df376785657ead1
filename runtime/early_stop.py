"""SIGTERM and Ctrl-C while the server starts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class EarlyStop:
    """Notes a request to stop until the event loop or the supervisor handles signals.

    The start looks between its steps. An exception in the middle of a step could leave a store behind, or a task that
    nobody awaits.
    """

    def __init__(self) -> None:
        self.asked = False
        """Whether the server shall stop."""
        self._cancellable: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None

    def take(self) -> None:
        """Handles SIGTERM and SIGINT from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.note)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal that means to stop."""
        self.asked = True
        if self._cancellable:
            self._cancellable[0].call_soon_threadsafe(self._cancel)

    def check(self) -> None:
        """Raises KeyboardInterrupt if the server shall stop."""
        if self.asked:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[None]:
        """During the block, a signal cancels the current task."""
        task = asyncio.current_task()
        assert task
        self._cancellable = asyncio.get_running_loop(), task
        if self.asked:
            self._cancel()
        try:
            yield
        finally:
            self._cancellable = None

    def _cancel(self) -> None:
        if self._cancellable:
            self._cancellable[1].cancel()
