"""Processor cores: one for the measured server alone; another for store, load generator and model stub."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from dev.bench.measure import Unexpected


class Cores(NamedTuple):
    """The numbers of two cores, in the numbering of `taskset`."""

    server: int
    load: int

    @classmethod
    def choose(cls) -> Cores:
        """The first two cores available to this process. Raises Unexpected if there is only one."""
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise Unexpected("a measurement needs two cores: one for the server, one for the load")
        return cls(usable[0], usable[1])


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """The command that runs on one core."""
    return ["taskset", "-c", str(core), *command]


def pin(pid: int, core: int) -> None:
    """Moves a running process to one core, with all its threads."""
    subprocess.run(["taskset", "-a", "-c", "-p", str(core), str(pid)], check=True, stdout=subprocess.DEVNULL)
