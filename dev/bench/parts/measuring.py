"""The setup of every measurement of a server on its own core."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dev.bench.cores import Cores
from dev.bench.parts.options import end_on_sigterm
from dev.bench.parts.wrk import check_installed


@contextlib.contextmanager
def measuring() -> Iterator[tuple[contextlib.ExitStack, Path, Cores]]:
    """A stack for processes, a directory, and two cores; everything ends with the block or on SIGTERM. Raises
    Unexpected without wrk, or with only one core."""
    check_installed()
    end_on_sigterm()
    cores = Cores.choose()
    with contextlib.ExitStack() as stack:
        # Unix socket paths must be short.
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp"))
        yield stack, Path(directory), cores
