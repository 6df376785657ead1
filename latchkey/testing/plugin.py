"""The pytest plugin: the fixture `latchkey`, and the service's log in reports of failed tests."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from latchkey.testing.process import LatchkeyProcess
from latchkey.testing.service import Latchkey

_LOGGED_BEFORE = pytest.StashKey[tuple[LatchkeyProcess, int]]()


class _Started:
    """The process of this test run, or of this worker of pytest-xdist. A process that has ended is replaced."""

    def __init__(self, options: Sequence[str], folder: Path) -> None:
        self._options, self._folder = options, folder
        self._process: LatchkeyProcess | None = None
        self._used = False

    def fresh(self) -> tuple[LatchkeyProcess, Latchkey]:
        """A running, empty process, and the object that controls it."""
        if self._process is not None and self._used:
            service = Latchkey(self._process.url)
            try:
                service.reset()
                return self._process, service
            except OSError:  # a test ended it
                self.stop()
        if self._process is None:
            self._process = LatchkeyProcess(self._options, folder=self._folder)
        self._used = True
        return self._process, Latchkey(self._process.url)

    def stop(self) -> None:
        """Stops the process."""
        if self._process is not None:
            self._process.stop()
        self._process, self._used = None, False


@pytest.fixture(scope="session")
def latchkey_options() -> Sequence[str]:
    """Flags of `server.py` for the service. Override this in `conftest.py`."""
    return ()


@pytest.fixture(scope="session")
def _latchkey_started(latchkey_options: Sequence[str], pytestconfig: pytest.Config) -> Iterator[_Started]:
    started = _Started(latchkey_options, pytestconfig.rootpath)
    yield started
    started.stop()


@pytest.fixture
def latchkey(request: pytest.FixtureRequest, _latchkey_started: _Started) -> Latchkey:
    """All of Latchkey at `latchkey.url`, in memory and empty: docs/testing.md."""
    process, service = _latchkey_started.fresh()
    request.node.stash[_LOGGED_BEFORE] = process, process.logged()
    return service


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the service's log to the report of a failed test."""
    report = yield
    used = item.stash.get(_LOGGED_BEFORE, None)
    if report.failed and used is not None:
        process, start = used
        report.sections.append(("Latchkey's log", process.log(start)))
    return report
