"""Servers that tests fork end with the tests, also with tests that are killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys

from tests.support.processes.forked import ROOT

STARTS_ONE = """
import os, sys
from tests.support.processes.forked import Forked

env = {**os.environ, "LATCHKEY_REDIS_URL": "memory"}
with open(os.devnull, "r+") as null:
    server = Forked("server.py", ["--port", "0"], stdin=null.fileno(), stdout=1, stderr=null.fileno(), env=env)
    print("started", server.pid, flush=True)
    sys.stdin.read()
"""


def test_a_server_ends_when_its_tests_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout
        while not (line := tests.stdout.readline()).startswith("started"):
            assert line
        server = os.pidfd_open(int(line.split()[1]))
        ready = tests.stdout.readline()  # the server's first line: it handles signals now
        tests.kill()
        ended = select.select([server], [], [], 20)[0]
        if not ended:
            os.kill(int(line.split()[1]), 9)
        os.close(server)
    assert ready
    assert ended
