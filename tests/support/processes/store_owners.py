"""Processes that own an embedded store, and an outside view of the store."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from store.engine.datadir import Files, is_store

ROOT = Path(__file__).parent.parent.parent.parent

# A process that owns a store until its standard input ends, and then stops it.
OWNER = """
import os, sys
from pathlib import Path
from store.engine.embedded import EmbeddedStore
store = EmbeddedStore.start(Path(sys.argv[1]), sys.argv[2])
print(store.pid, flush=True)
{then}
sys.stdin.read()
store.stop()
"""


@contextlib.contextmanager
def owner(data_dir: Path, kind: str = "server", then: str = "") -> Iterator[subprocess.Popen[str]]:
    """A child process in its own process group that owns the store and has printed the store's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then=then), str(data_dir), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def printed(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def put(path: str, key: str, value: str) -> None:
    with redis.Redis(unix_socket_path=path) as client:
        client.set(key, value)


def get(path: str, key: str) -> str | None:
    with redis.Redis(unix_socket_path=path, decode_responses=True) as client:
        value: str | None = client.get(key)
        return value


def dies(pid: int, files: Files) -> bool:
    deadline = time.monotonic() + 5
    while is_store(pid, files) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_store(pid, files)


def end_stores(directory: Path) -> None:
    """Kill stores under `directory` that a failed test left running."""
    for pid_file in directory.rglob("store.pid"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(pid_file.read_text())
            if is_store(pid, Files(pid_file.parent.resolve())):
                os.kill(pid, signal.SIGKILL)
