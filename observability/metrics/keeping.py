"""Measures at intervals: the lag of the event loop, and present levels."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from observability.metrics import rows as of
from observability.metrics.measures import Measures
from observability.metrics.rows import RowFamily

LOOK_SECONDS = 0.1
LEVELS = 10
"""Levels are read at every tenth measurement of the lag: once a second."""
_MEMORY = Path("/proc/self/statm")


async def keep(measures: Measures, levels: Mapping[RowFamily, Callable[[], float]]) -> None:
    """Counts the noted events repeatedly until cancelled. `levels` are functions that return present values."""
    loop = asyncio.get_running_loop()
    before = measures.reading(of.CPU)  # of the process that this one replaces
    look = 0
    try:
        while True:
            if look % LEVELS == 0:
                for family, level in levels.items():
                    measures.level(family, level())
                measures.level(of.CPU, before + time.process_time())
                measures.level(of.RESIDENT, resident())
                measures.level(of.TICKED, time.time())
            look += 1
            due = loop.time() + LOOK_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
            measures.lagged(max(0.0, loop.time() - due))
            measures.fold()
    finally:
        measures.fold()


def resident() -> int:
    """This process's memory in bytes. If the system doesn't report the present value, the peak."""
    try:
        return int(_MEMORY.read_text("ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
