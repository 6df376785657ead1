"""SIGHUP as two senders mean it: a terminal that goes away, and whoever asks for the settings to be read anew."""

from __future__ import annotations

import os
import signal
from types import FrameType


class Hangup:
    """Tells the SIGHUP of a terminal that is gone, which ends the process as ever, from one that asks for a reload."""

    def __init__(self) -> None:
        # `nohup` has the process go on without its terminal.
        self._ends = signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and _has_terminal()
        self.asked = False
        """Whether a reload was asked for before there was anybody to do it."""

    def note(self, number: int, frame: FrameType | None) -> None:
        """Takes a SIGHUP until somebody else does. Raises KeyboardInterrupt where the terminal is gone."""
        if self.is_meant():
            raise KeyboardInterrupt
        self.asked = True

    def is_meant(self) -> bool:
        """Whether the terminal is gone."""
        return self._ends and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
