"""SIGHUP has two senders: a terminal that closes, and an operator who asks for a reload."""

from __future__ import annotations

import os
import signal
from types import FrameType

from runtime.early_stop import EarlyStop


class Hangup:
    """Tells the two senders apart. When its terminal closes, the process ends as usual."""

    def __init__(self, early: EarlyStop | None = None) -> None:
        # Under `nohup` the process outlives its terminal.
        self._ends = signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and _has_terminal()
        self._early = early or EarlyStop()
        self.asked = False
        """Whether a reload was requested before the process could do it."""

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGHUP until the process installs its own handler. Stops the start if the terminal is gone."""
        if self.is_meant():
            self._early.note(number, frame)
        else:
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
