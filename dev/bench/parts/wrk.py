"""The load generator: wrk with its script `load.lua`, on its own core."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dev.bench.cores import pinned
from dev.bench.measure import HOST, Unexpected

SCRIPT = Path(__file__).resolve().parent / "load.lua"


@dataclass(frozen=True, slots=True)
class Burst:
    """The counts of wrk. `p50` and `p99` are in ms; `at` is its position in the file, `busy` its own share of its
    core."""

    requests: int
    seconds: float
    bytes: int
    p50: float
    p99: float
    at: int
    busy: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


class Unanswered(Unexpected):
    """A burst ended before its first answer."""


def check_installed() -> None:
    """Raises Unexpected without wrk."""
    if shutil.which("wrk") is None:
        raise Unexpected("wrk is not installed: on Debian and Ubuntu, apt-get install wrk")


def write_parts(file: Path, parts: Iterable[bytes]) -> None:
    """Writes the input of `load.lua`."""
    file.write_bytes(b"\0".join(parts))


def burst(port: int, kind: str, file: Path, first: int, *, connections: int, seconds: int, core: int) -> Burst:
    """Sends requests for `seconds`, one at a time on each connection. Raises Unexpected for error answers, lost
    answers, and when single-use requests run out; Unanswered if no answer came in this time."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s", "-s", str(SCRIPT)]
    command.append(f"http://{HOST}:{port}/")
    before = _used()
    ran = subprocess.run(
        pinned(core, [*command, "--", kind, str(file), str(first)]), capture_output=True, text=True, check=False
    )
    used = _used() - before
    if ran.returncode:
        raise Unexpected(f"wrk failed: {ran.stderr or ran.stdout}")
    said = json.loads(ran.stdout.splitlines()[-1])
    if said["refused"] or said["broken"]:
        raise Unexpected(f"{said['refused']} of {said['requests']} answers are errors, {said['broken']} are lost")
    if said["ran_out"]:
        raise Unexpected(f"there were too few requests to send: {said['at']}")
    if not said["requests"]:
        raise Unanswered(f"no answer came in {seconds} s")
    return Burst(
        said["requests"], said["seconds"], said["bytes"], said["p50"], said["p99"], said["at"], used / said["seconds"]
    )


def _used() -> float:
    """Seconds of processor time used by children that have ended."""
    seen = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seen.ru_utime + seen.ru_stime
