"""Fixtures for apps of metadata documents: a site that publishes one, and a server that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store.clock import wall
from store.wiring import Store
from tests.support.http.documented_app import Publisher
from tests.support.processes.engines import FakeClock


@pytest.fixture
def publisher(io_loop: IOLoop, tmp_path: Path) -> Iterator[Publisher]:
    made = io_loop.run_sync(lambda: Publisher.make(tmp_path))
    made.publishes()
    yield made
    io_loop.run_sync(made.domain.receiver.close)


@pytest.fixture
def later(clock: FakeClock) -> Iterator[Callable[[float], None]]:
    """Lets seconds pass, for the store and for the server."""

    def pass_by(seconds: float) -> None:
        clock.advance(seconds)
        wall.ahead += seconds

    yield pass_by
    wall.ahead = 0.0


@pytest.fixture
def site(memory_store: Store, base_url: str, publisher: Publisher) -> Site:
    """A server that reads documents."""
    memory_store.apps.documents = True
    return Site(memory_store, base_url, client_documents=publisher.documents)
