"""A server that tests of apps control, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.processes.processes import QUICK, Server

ADA = "ada@example.com"
MEMORY = ("--redis-url=memory", *QUICK)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that plays Ada."""
    with Server(*MEMORY, f"--auto-consent={ADA}") as running:
        yield running.ready()


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    """A client of it; there is nothing in its store."""
    with httpx.Client(base_url=server.url) as client:
        assert client.post("/testing/reset", json={}).status_code == 200
        yield client
