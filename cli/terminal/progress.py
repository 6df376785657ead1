"""A progress bar at a terminal; silent elsewhere."""

from __future__ import annotations

import os
import shutil
import time
from types import TracebackType
from typing import Self, TextIO

WIDTH = 24
REDRAWN_EVERY = 0.1
"""Seconds."""


class ProgressBar:
    """Redraws one line, and erases it at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next = 0.0

    def show(self, share: float, words: str) -> None:
        """Draws the bar up to `share`, from 0 to 1, and the words, unless it was just drawn."""
        full = round(min(share, 1.0) * WIDTH)
        self.tell(f"[{'#' * full}{'.' * (WIDTH - full)}] {int(100 * min(share, 1.0)):3}%  {words}")

    def count(self, done: int, of: int) -> None:
        """Draws the bar for `done` out of `of`."""
        self.show(done / max(of, 1), f"{done:,} of {of:,}")

    def tell(self, line: str) -> None:
        """Draws only words, if the total is unknown."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + REDRAWN_EVERY
        # A line that wraps could not be erased.
        self._stream.write("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1])
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
