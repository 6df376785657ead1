"""SIGHUP has two senders: a terminal that closes, and an operator who asks for a reload."""

from __future__ import annotations

import os
import signal
from types import FrameType


class Hangup:
    """Tells the two senders apart. When its terminal closes, the process ends as usual."""

    def __init__(self) -> None:
        # Under `nohup` the process outlives its terminal.
        self._ends = signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and _has_terminal()
        self.asked = False
        """Whether a reload was requested before the process could do it."""

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGHUP until the process installs its own handler. Raises KeyboardInterrupt if the terminal is
        gone."""
        if self.is_meant():
            raise KeyboardInterrupt
        self.asked = True

    def is_meant(self) -> bool:
        """Whether SIGHUP means that the terminal is gone."""
        return self._ends and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
