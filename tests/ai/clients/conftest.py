"""The two programs with client libraries, started once for a file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.ai.clients.driving import Program, programs


@pytest.fixture(scope="module")
def program() -> Iterator[Callable[[str], Program]]:
    """A program by its name."""
    with programs() as started:
        yield started
