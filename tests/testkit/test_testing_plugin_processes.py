"""The pytest plugin and the processes of its service: workers of a test run, and the end of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dev.lab.engines import wait_until
from tests.testkit.test_testing_plugin import PLUGINS, suite

__all__ = ["suite"]  # a fixture

pytestmark = pytest.mark.slow


pytest_plugins = "pytester"


def test_a_service_that_logs_in_json_is_there_as_soon(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import httpx
        from latchkey.testing import LatchkeyProcess

        def test_its_address_is_read():
            with LatchkeyProcess(["--log-format", "json"], patience=10) as process:
                assert httpx.get(process.url + "/healthz").json() == {"status": "ok"}
                assert process.log().startswith("{")
        """
    )
    suite.runpytest_subprocess(*PLUGINS).assert_outcomes(passed=1)


def test_each_worker_has_a_service_and_one_that_was_ended_is_started_again(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def latchkey_options():
            return ["--log-level", "warning"]
        """
    )
    suite.makepyfile(
        """
        import os
        import pytest
        import signal

        @pytest.mark.parametrize("n", range(6))
        def test_one(latchkey, n):
            latchkey.person(email="the-same@example.com")
            print("at", latchkey.url, "of", os.environ["PYTEST_XDIST_WORKER"])

        def test_the_end(latchkey, _latchkey_started):
            process, _ = _latchkey_started.fresh()
            assert process.log() == ""
            process.process.kill()
            process.process.wait()

        def test_the_next(latchkey):
            latchkey.person()
        """
    )
    result = suite.runpytest_subprocess(*PLUGINS, "-p", "xdist", "-n", "2", "-rA")
    result.assert_outcomes(passed=8)
    served = set(re.findall(r"at (http://localhost:\d+) of (gw\d)", result.stdout.str()))
    assert {worker for _, worker in served} == {"gw0", "gw1"}
    assert len({url for url, _ in served}) >= 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_service_ends_with_the_test_run(suite: pytest.Pytester, number: signal.Signals) -> None:
    file = suite.makepyfile(
        """
        import time

        def test_long(latchkey, _latchkey_started):
            process, _ = _latchkey_started.fresh()
            print("pid", process._folder, process.process.pid, flush=True)
            time.sleep(60)
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(suite.path / "installed")}
    command = [sys.executable, "-m", "pytest", "-s", "-q", *PLUGINS, "-p", "no:cacheprovider", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        line = next(line for line in run.stdout if "pid" in line)
        folder, child = Path(line.split()[-2]), int(line.split()[-1])
        assert folder.is_dir()
        os.kill(child, 0)
        run.send_signal(number)
        run.wait(20)
    deadline = time.monotonic() + 20
    wait_until(lambda: _gone(child), deadline - time.monotonic())
    assert _gone(child)
    assert not folder.exists()


def _gone(process: int) -> bool:
    """Whether a process is gone, or only waits for who might ask how it ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"
