"""The programs with client libraries, started once for a file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.ai.clients.driving import Client, Program, programs


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[str], Program]]:
    """A program by its name."""
    with programs() as by_name:
        yield by_name


@pytest.fixture
def program(started: Callable[[str], Program], client: Client) -> Program:
    """The program that has the client of a test."""
    program = started(client.program)
    assert client.name in program.clients
    return program
