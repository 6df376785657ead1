"""Documents on a real store, with several server processes' worth of stores."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store import keys
from store.apps.client_ids import inner_id
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.http.documented_app import URL, Publisher
from tests.support.http.receiver import answering


@pytest.fixture
def servers(open_store: OpenStore, engine_url: str) -> list[Site]:
    """Servers on one store, which in memory they share."""
    made: list[Site] = []
    for _ in range(3):
        store: Store = made[0].store if made and engine_url == "memory" else open_store(engine_url)
        store.apps.documents = True
        made.append(Site(store, "http://localhost:8080"))
    return made


@pytest.fixture
def publisher(io_loop: IOLoop, tmp_path: Path) -> Iterator[Publisher]:
    made = io_loop.run_sync(lambda: Publisher.make(tmp_path))
    yield made
    io_loop.run_sync(made.domain.receiver.close)


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_servers_that_need_a_document_together_fetch_it_once(servers: list[Site], publisher: Publisher) -> None:
    publisher.publishes()
    readers = [type(publisher.documents)(publisher.domain.fetcher) for _ in servers]
    asks = [
        reader.current(site.store, URL, site.asker(f"192.0.2.{number}"))
        for number, (site, reader) in enumerate(zip(servers * 4, readers * 4, strict=True))
    ]
    found = await asyncio.gather(*asks)
    assert {app.client_id for app in found} == {inner_id(URL)}
    assert publisher.fetched == 1


@pytest.mark.gen_test
async def test_a_failure_counts_for_all_servers(servers: list[Site], publisher: Publisher) -> None:
    publisher.answers(answering(404))
    for site in servers:
        reader = type(publisher.documents)(publisher.domain.fetcher)
        with pytest.raises(Exception, match="invalid_client_metadata"):
            await reader.current(site.store, URL, site.asker("192.0.2.1"))
        assert 0 < await site.store.client.pttl(keys.fetching(inner_id(URL))) <= 10_000
    assert publisher.fetched == 1
