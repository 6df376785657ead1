"""An app with a webhook, and what posts to it, for a whole module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado.ioloop import IOLoop

from outbound.webhooks.poster import WebhookSender
from store.wiring import Store
from tests.support.store.webhook_app import Hooked, engine_on


@pytest.fixture
def hooked(io_loop: IOLoop, memory_store: Store) -> Iterator[Hooked]:
    made = io_loop.run_sync(lambda: Hooked.make(memory_store))
    yield made
    io_loop.run_sync(made.receiver.close)


@pytest.fixture
def engine(io_loop: IOLoop, memory_store: Store) -> Iterator[WebhookSender]:
    """Posts while the test runs."""
    made = engine_on(memory_store)

    async def begin() -> None:
        made.start()

    io_loop.run_sync(begin)
    yield made
    io_loop.run_sync(lambda: made.close(1))
