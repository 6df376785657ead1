"""A call at one server shows on a page that another server has open; a server that stops lets its pages go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tornado.ioloop import IOLoop

from tests.support.http.driver import Browser, Service
from tests.support.processes import two_servers
from tests.support.processes.live_page import LivePage
from tests.support.processes.processes import Pair
from tests.support.processes.two_servers import STORES, pair_on
from tests.support.store.ai_spender import Spender, mint, question

pytestmark = pytest.mark.gen_test(timeout=30)
service = two_servers.service


@pytest.fixture(scope="module", params=STORES)
def two(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module."""
    with pair_on(request) as made:
        yield made


async def spends(service: Service, two: Pair) -> tuple[Spender, Browser, Browser]:
    """An app with credits, and browsers of its person at each server."""
    token = await mint(service, service.web, "credits:spend", "data:read")
    await service.store.credits.grant(service.ada, 10**6)
    spender = Spender(service, service.web, service.ada, token, service.base_url)
    here = await service.signed_in(two.email)
    return spender, here, replace(here, base_url=two.servers[1].here)


async def test_a_call_at_one_server_shows_at_the_other_within_two_seconds(service: Service, two: Pair) -> None:
    spender, here, there = await spends(service, two)
    client = spender.app.client_id
    async with LivePage.opening(two.servers[1].here) as visit:
        page = await visit(there)
        assert await page.event() == "apps"
        assert (await spender.ask(question(model="latchkey-echo"))).code == 200
        await page.until(client, "1 AI call today", 2)
        await spender.get("/data/notes")
        await page.until(client, "1 read in the last minute", 2)
        await here.submit(await here.get("/account/apps"), f"/account/apps/{client}/pause")
        await page.until(client, '"paused": true', 2)
        assert (await spender.ask(question(model="latchkey-echo"))).code == 403
        await here.submit(await here.get("/account"), "/signout")
        assert (await page.ends(2))[-1] == "end"
        assert (await visit(there)).status == 401


async def test_a_server_that_stops_ends_its_pages_at_once(service: Service, two: Pair) -> None:
    _, _, there = await spends(service, two)
    server = two.servers[1]
    async with LivePage.opening(server.here) as visit:
        page = await visit(there)
        assert await page.event() == "apps"
        began = IOLoop.current().time()
        server.process.terminate()
        assert (await page.ends(5))[-1] == "end"
        while server.process.poll() is None:
            await asyncio.sleep(0.02)
        assert IOLoop.current().time() - began < 8, "it did not wait for the page"
