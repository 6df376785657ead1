"""A test run that is killed leaves no store and no server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from dev.lab.engines import wait_until
from tests.support.processes.store_owners import end_stores

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = """
import json, sys
from pathlib import Path
from dev.lab.engines import valkey
from dev.lab.watchdog import watch
from store.engine.embedded import EmbeddedStore
from tests.support.processes.processes import QUICK, Server

here = Path(sys.argv[1])
watch(here)
engine, embedded = valkey(), EmbeddedStore.start(here / "data", "server")
server = Server(*QUICK, fresh=True).ready()
directories = [str(engine.directory), str(server.directory)]
with engine.client() as client:
    store = client.info("server")["process_id"]
print(json.dumps([[store, embedded.pid, server.process.pid], directories]), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_killed_run_takes_its_stores_and_servers_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stdout is not None
        pids, directories = json.loads(run.stdout.readline())
        assert all(psutil.pid_exists(pid) for pid in pids)
        os.killpg(run.pid, signal.SIGKILL)
    try:
        wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
        wait_until(lambda: not any(Path(directory).exists() for directory in directories))
        assert (tmp_path / "data").exists()
    finally:
        end_stores(tmp_path)
