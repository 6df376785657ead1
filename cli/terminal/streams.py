"""The three standard streams of a process."""

from __future__ import annotations

import os
import sys


def reopen() -> None:
    """Opens closed streams on /dev/null. In the order of their numbers, because the next file that the program opens
    would get a free one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # stays open as long as the process
            setattr(sys, name, stream)
