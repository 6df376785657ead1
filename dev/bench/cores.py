"""Who runs where: the measured server alone on one core; store, load generator and model stub on another one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from dev.bench.measure import Unexpected


class Cores(NamedTuple):
    """Numbers of two cores, as `taskset` counts them."""

    server: int
    load: int

    @classmethod
    def choose(cls) -> Cores:
        """The first two cores that this process may use. Raises Unexpected where there is only one."""
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise Unexpected("a measurement needs two cores: one for the server, one for the load")
        return cls(usable[0], usable[1])


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """The command, to run on one core."""
    return ["taskset", "-c", str(core), *command]


def pin(pid: int, core: int) -> None:
    """Moves a running process to one core, with all its threads."""
    subprocess.run(["taskset", "-a", "-c", "-p", str(core), str(pid)], check=True, stdout=subprocess.DEVNULL)
