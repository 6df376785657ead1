"""The official Python SDK, unmodified, has the URL of its metadata document as client id."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client import Client
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store.apps.client_ids import inner_id
from store.wiring import Store
from tests.support.http.documented_app import URL, Publisher
from tests.support.http.driver import NAME, Service
from tests.support.http.mcp_app import LEGACY, MODERN, Assistant, mcp_site
from tests.support.http.receiver import answering

ERAS = pytest.mark.parametrize("mode", [pytest.param("auto", id=MODERN), pytest.param("legacy", id=LEGACY)])
pytestmark = [pytest.mark.gen_test(timeout=60)]


@pytest.fixture
def publisher(io_loop: IOLoop, tmp_path: Path) -> Iterator[Publisher]:
    made = io_loop.run_sync(lambda: Publisher.make(tmp_path))
    made.publishes(client_name="Assistant", redirect_uris=["http://localhost/callback"])
    yield made
    io_loop.run_sync(made.domain.receiver.close)


@pytest.fixture
def site(memory_store: Store, base_url: str, publisher: Publisher) -> Site:
    """A server with both ways to register: the SDK prefers documents."""
    memory_store.apps.documents = True
    facts = {"client_documents": publisher.documents, "dynamic_registration": "open"}
    return mcp_site(memory_store, base_url, **facts)


async def name_of(client: Client) -> str:
    """Who the person is, as the tool says it."""
    answer = await client.call_tool("who_am_i", {})
    assert answer.structured_content is not None
    return str(answer.structured_content["name"])


@ERAS
async def test_an_assistant_is_known_by_its_document(
    service: Service, publisher: Publisher, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = Assistant(service, None, await service.signed_in())
    assistant.document = URL
    async with assistant.connected(mode) as client:
        assert await name_of(client) == NAME
        before, now = assistant.storage.tokens, time.time
        monkeypatch.setattr(time, "time", lambda: now() + 3700)
        # Its document is over by now, and its site is down: the refresh works on.
        publisher.answers(answering(503))
        assert await name_of(client) == NAME
        after = assistant.storage.tokens
        assert before is not None
        assert after is not None
        assert before.access_token != after.access_token
    assert [one["client_id"] for one in assistant.asked] == [URL]
    assert publisher.fetched == 2
    kept = await service.store.apps.find(URL)
    assert kept is not None
    assert (kept.client_id, kept.origin) == (inner_id(URL), "document")
    assert [app.origin for app in await service.store.apps.list()].count("dynamic") == 0
