"""Servers as processes: pinned to a core, awaited, measured, and ended together with their children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep

import psutil

from dev.bench.cores import pinned
from dev.bench.measure import HOST, ROOT, Unexpected

START_SECONDS = 120.0
_END_SECONDS = 10.0


class Process:
    """A process with its children, listening at `port` (0 where that does not matter)."""

    def __init__(self, pid: int, port: int = 0) -> None:
        self.pid = pid
        self.port = port
        self._root = psutil.Process(pid)

    def cpu(self) -> float:
        """Seconds of processor time used so far, including children."""
        total = 0.0
        for one in (self._root, *self._root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                total += times.user + times.system
        return total

    def memory(self) -> int:
        """Bytes of memory of the process and its children."""
        return sum(int(one.memory_full_info().uss) for one in (self._root, *self._root.children(recursive=True)))


@contextlib.contextmanager
def started(
    command: Sequence[str],
    log: Path,
    *,
    port: int,
    core: int | None,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """A server that listens at `port` on loopback, on one core or on any. The server and its children end with the
    block. Raises Unexpected, with the end of its log, if it never listens."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    with log.open("ab") as sink:
        popen = subprocess.Popen(
            command if core is None else pinned(core, command),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**inherited, **(environment or {})},
            start_new_session=True,
        )
    try:
        _await_port(popen, port, log)
        yield Process(popen.pid, port)
    finally:
        _end(popen)


def _await_port(popen: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        if popen.poll() is not None or monotonic() > deadline:
            raise Unexpected(f"it does not listen: {log.read_text('utf-8', 'replace')[-2000:]}")
        sleep(0.05)


def _end(popen: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(_END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
