"""The three streams that a program is started with."""

from __future__ import annotations

import os
import sys


def reopen() -> None:
    """Has those that were closed say nothing and take everything. In the order of their numbers, or what the program
    opens next would get one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # open as long as the process is there
            setattr(sys, name, stream)
