"""Measures a start on an existing embedded store and the memory of an idle worker; the same for the test kit's service,
with its store in memory.

python -m dev.bench.starting [--times N] [--json FILE]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import psutil

from dev.bench.measure import running, table
from dev.bench.parts import results
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from latchkey.testing import LatchkeyProcess

WORKERS = (1, 4)
START_SECONDS = 0.5
"""The longest acceptable start."""
_LISTENING = re.compile(r"Latchkey listening on \S+:(\d+)\n")
_SETTLE_SECONDS = 1.0


def start(directory: Path, workers: int) -> tuple[float, list[dict[str, int]]]:
    """Seconds until a server of `workers` processes listens, and each one's memory in bytes: resident, proportional
    share, and unshared."""
    command = ["server.py", "--port", "0", "--data-dir", str(directory / "data"), "--workers", str(workers)]
    began = perf_counter()
    with running(command, _LISTENING, directory / "server.log") as served:
        seconds = perf_counter() - began
        sleep(_SETTLE_SECONDS)  # start-up memory is freed
        children = [one for one in served.process.children() if "server.py" in " ".join(one.cmdline())]
        return seconds, [_memory(one) for one in children or [served.process]]


def start_kit() -> tuple[float, list[dict[str, int]]]:
    """The same for the service that the fixture `latchkey` starts."""
    began = perf_counter()
    with LatchkeyProcess() as served:
        seconds = perf_counter() - began
        sleep(_SETTLE_SECONDS)
        return seconds, [_memory(psutil.Process(served.process.pid))]


def _memory(process: psutil.Process) -> dict[str, int]:
    found = process.memory_full_info()
    return {"resident": found.rss, "share": found.pss, "own": found.uss}


def measure(times: int) -> dict[str, Any]:
    """Starts over one store, each number of workers in turn, and the test kit. The first start creates the store and
    does not count."""
    found: dict[str, Any] = {str(workers): {"seconds": [], "memory": []} for workers in WORKERS}
    kit: dict[str, Any] = {"seconds": [], "memory": []}
    with tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as directory:
        start(Path(directory), 1)
        for _ in range(times):
            for workers in WORKERS:
                _add(found[str(workers)], *start(Path(directory), workers))
            _add(kit, *start_kit())
    return {"starts": found, "kit": kit}


def _add(samples: dict[str, Any], seconds: float, memory: list[dict[str, int]]) -> None:
    samples["seconds"].append(round(seconds, 3))
    samples["memory"] += memory


def start_table(measured: dict[str, Any]) -> str:
    """A row for each number of workers, and for the test kit if measured: medians, and the slowest start."""
    rows = []
    kit = {"test kit, in memory": measured["kit"]} if "kit" in measured else {}
    for workers, found in {**measured["starts"], **kit}.items():
        seconds, memory = found["seconds"], found["memory"]
        sizes = (f"{median(one[kind] for one in memory) / 2**20:.0f}" for kind in ("resident", "share", "own"))
        rows.append((workers, f"{median(seconds):.2f} s", f"{max(seconds):.2f} s", *sizes))
    return table(
        ("workers", "start, median", "slowest", "a worker, resident MiB", "its share", "its own"), rows, words=1
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table in Markdown, and writes all samples as JSON. Raises Unexpected."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.starting", allow_abbrev=False)
    parser.add_argument("--times", type=count, default=10, metavar="N", help="starts of each (default 10)")
    parser.add_argument("--json", type=Path, default=RESULTS / "starting.json", metavar="FILE", help="where samples go")
    options = parser.parse_args(argv)
    end_on_sigterm()
    found = measure(options.times)
    print(start_table(found))
    results.write(options.json, found, times=options.times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
