"""Fixtures for tests against two server processes on one store.

A module takes them by assignment. One whose servers need options has a fixture `two` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado.ioloop import IOLoop

from tests.support.http.driver import Service
from tests.support.processes.processes import Pair, driven, pair


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """The two servers of this module."""
    with pair() as made:
        yield made


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A new person and a new app on both servers."""
    with driven(io_loop, two) as made:
        yield made
