"""A signal at any moment of the start ends the server quietly, and no store is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store.engine.datadir import Files, is_store
from store.engine.embedded import EmbeddedStore
from store.errors import StartupError
from tests.support.processes.processes import QUICK, ROOT
from tests.support.processes.store_owners import end_stores

SIGNALLED = """
import os, pkgutil, signal, sys
place, name, when, number = sys.argv[1:5]
target = pkgutil.resolve_name(place)
original = getattr(target, name)

def signalled(*args, **options):
    if when == "before":
        os.kill(os.getpid(), int(number))
    made = original(*args, **options)
    if when == "after":
        os.kill(os.getpid(), int(number))
    return made

setattr(target, name, signalled)
import server
sys.exit(server.main(sys.argv[5:]))
"""
"""A server that sends itself a signal before or after the call of a function."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("workers", "place", "name", "when"),
    [
        pytest.param("1", "server", "start_embedded", "before", id="before the store starts"),
        pytest.param("1", "store.engine.datadir", "record_socket", "after", id="just before the store's process"),
        pytest.param("1", "server", "start_embedded", "after", id="the store runs"),
        pytest.param("1", "runtime.event_loop", "new_event_loop", "after", id="the event loop is made"),
        pytest.param("1", "runtime.processes", "Signals", "before", id="first step of the event loop"),
        pytest.param("2", "runtime.workers", "prepare", "before", id="the supervisor prepares the store"),
        pytest.param("2", "runtime.workers", "for_each_worker", "after", id="before the first worker"),
    ],
)
def test_a_signal_during_the_start_ends_it_quietly(
    tmp_path: Path, number: signal.Signals, workers: str, place: str, name: str, when: str
) -> None:
    options = ["--port", "0", "--data-dir", str(tmp_path / "data"), "--workers", workers, *QUICK]
    command = [sys.executable, "-c", SIGNALLED, place, name, when, str(int(number)), *options]
    given = {key: value for key, value in os.environ.items() if not key.startswith("LATCHKEY_")}
    try:
        ended = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=30)
        files = Files((tmp_path / "data").resolve())
        pid = files.pid.read_text() if files.pid.exists() else ""
        assert not pid or not is_store(int(pid), files), "the store was left"
    finally:
        end_stores(tmp_path)
    assert ended.returncode in (0, 130), ended.stderr
    assert (ended.stdout, ended.stderr) == ("", "")


def test_a_store_that_cannot_be_set_up_is_not_left(data_dir: Path) -> None:
    with pytest.raises(StartupError, match="cannot be used"):
        EmbeddedStore.start(data_dir, "manage", limit=-1)
    files = Files(data_dir.resolve())
    assert not files.pid.exists() or not is_store(int(files.pid.read_text()), files)
    EmbeddedStore.start(data_dir, "manage").stop()
