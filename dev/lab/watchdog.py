"""Ends the stores and servers of a test run that was killed.

A killed process runs no clean-up, and its stores live on. So each test process starts one watchdog, a process that
reads from a pipe. The pipe closes however the test process ends.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import psutil

NAMES = ("valkey", "redis", "python")
"""How the names of the processes begin that tests start. Another one, such as a shell, only happens to be there."""
_KEEP, _REMOVE = "keep ", "remove "
_SECONDS = 15.0


def watch(directory: Path, *, remove: bool = False) -> None:
    """Has the stores and servers in `directory` killed if they outlive this process. `remove`: it is removed too."""
    pipe = _pipe()
    pipe.write(f"{_REMOVE if remove else _KEEP}{directory.resolve()}\n")
    pipe.flush()


@functools.cache
def _pipe() -> IO[str]:
    """Starts the watchdog, once per process. Its own session keeps Ctrl-C and a killed group away from it."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # whoever reads the output of the tests must not wait for it
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.returncode = 0  # it ends after this process, so nobody waits for it
    return process.stdin


def runs_in(process: psutil.Process, directories: Sequence[str]) -> bool:
    """Whether the process works in one of the directories, or names one in its command line."""
    with contextlib.suppress(psutil.Error):
        if process.name().startswith(NAMES):
            places = [process.cwd(), *process.cmdline()]
            return any(place == one or place.startswith(f"{one}/") for place in places for one in directories)
    return False


def main() -> None:
    """Reads directories until the pipe closes. Kills what is left in them, also what another one started meanwhile."""
    lines = [line.rstrip("\n") for line in sys.stdin]
    removed = [line.removeprefix(_REMOVE) for line in lines if line.startswith(_REMOVE)]
    directories = [*removed, *(line.removeprefix(_KEEP) for line in lines if line.startswith(_KEEP))]
    directories = [one for one in directories if Path(one).exists()]
    quiet, deadline = 0, time.monotonic() + _SECONDS
    while directories and quiet < 2 and time.monotonic() < deadline:
        left = [one for one in psutil.process_iter() if runs_in(one, directories)]
        quiet = 0 if left else quiet + 1
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.kill()
        time.sleep(0.2)
    for directory in removed:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
