"""The fast HTTP server passes Tornado's own tests of its server."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tests.support.processes.processes import ROOT

pytestmark = pytest.mark.slow

LOOPS = ["asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else [])]


@pytest.mark.parametrize("loop", LOOPS)
def test_tornados_own_tests_pass(loop: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.processes.tornado_suite", *(["uvloop"] if loop == "uvloop" else [])],
        cwd=ROOT,
        env={**os.environ, "ASYNC_TEST_TIMEOUT": "60"},  # seconds; 5 of themselves, which a busy machine may take
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert ran
    assert int(ran[1]) > 400
