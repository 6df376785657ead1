"""What every measurement against a server on a core of its own begins with."""

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
    """A stack for what is started, a directory, and two cores; the block's end, or SIGTERM, ends all. Raises Unexpected
    where wrk is missing or there is one core only."""
    check_installed()
    end_on_sigterm()
    cores = Cores.choose()
    with contextlib.ExitStack() as stack:
        # Paths of unix sockets are short.
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp"))
        yield stack, Path(directory), cores
