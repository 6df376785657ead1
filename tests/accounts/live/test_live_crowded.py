"""Pages of people with hundreds of apps, and of readers that take nothing, on one store and on a cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from handlers.account import live
from handlers.core.live.watches import LOOK_SECONDS, Watches
from handlers.core.site import Site
from store import keys
from store.accounts.signin.sessions import Session
from store.apps.registration import Registration
from store.wiring import Store
from tests.support.http.driver import Browser, Service
from tests.support.processes import two_servers
from tests.support.processes.live_page import PATH, LivePage
from tests.support.processes.processes import Pair
from tests.support.processes.two_servers import STORES, pair_on
from tests.support.store.world import VISITOR

APPS, SOME = 500, 250
SHARE = 0.05
"""The most of the store's time that an open page of this person may take: a few microseconds for each app."""
crowded_service = two_servers.service


@pytest.fixture(scope="module", params=STORES)
def two(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module."""
    with pair_on(request) as made:
        yield made


async def connect(store: Store, user: str, prefix: str, number: int) -> list[str]:
    """Apps that the person has connected; returns their ids."""
    store.bounds.grants = 2 * number  # an operator allows more than usual
    ids = [f"{prefix}-{one:03}" for one in range(number)]
    for client in ids:
        app = Registration(client, client, ("https://app.example/cb",), ("profile",))
        await store.apps.create(app)
        await store.tokens.mint(user, app, ("profile",))
    return ids


def session_of(store: Store, browser: Browser) -> Session:
    """The session of a signed-in browser."""
    session = store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    return session


def silent(base_url: str, browser: Browser) -> socket.socket:
    """A page that asks for the stream and never reads."""
    host, _, port = base_url.removeprefix("http://").partition(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect((host, int(port)))
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    reader.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n".encode())
    return reader


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """Looks often."""
    made = Site(memory_store, base_url)
    object.__setattr__(made, "watches", Watches(0.02))
    return made


@pytest.fixture
def short_buffers(request: pytest.FixtureRequest) -> None:
    """The system keeps little of what a connection is sent."""
    listening, _ = request.getfixturevalue("_unused_port")
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # its connections take it over


@pytest.mark.gen_test(timeout=30)
async def test_a_reader_that_takes_nothing_is_cut_off_and_holds_up_nobody(
    service: Service, site: Site, short_buffers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SLOW", 0.3)
    browser = await service.signed_in()
    await connect(site.store, service.ada, "app", SOME)
    with silent(service.base_url, browser) as reader:
        async with LivePage.opening(service.base_url) as visit, asyncio.timeout(20):
            while site.watches.places.taken != 1:
                await asyncio.sleep(0.01)
            page = await visit(browser)
            assert await page.event() == "apps"
            assert len(page.all) == SOME
            while site.watches.places.taken != 1:
                await asyncio.sleep(0.01)
            await site.store.grants.pause(session_of(site.store, browser), "app-007", VISITOR)
            await page.until("app-007", '"paused": true')
        reader.settimeout(5)
        got = b""
        while piece := reader.recv(65536):
            got += piece
        assert b"app-000" in got
        assert b"event: end" not in got, "it was cut, not ended"


@pytest.mark.slow
@pytest.mark.gen_test(timeout=90)
async def test_500_connected_apps_show_and_cost_the_store_little(crowded_service: Service, two: Pair) -> None:
    service, store = crowded_service, crowded_service.store
    ids = await connect(store, service.ada, f"{service.web.client_id}-many", APPS)
    here = await service.signed_in(two.email)
    there, session = replace(here, base_url=two.servers[1].here), session_of(store, here)
    async with LivePage.opening(two.servers[1].here) as visit:
        page = await visit(there)
        assert await page.event() == "apps"
        assert set(ids) <= set(page.all)
        for one in (ids[0], ids[-1]):
            await store.grants.pause(session, one, VISITOR)
            await page.until(one, '"paused": true', 20)
        await page.leave()
    seen, looks = None, 20
    before = await spent(store, service.ada)
    for _ in range(looks):
        seen = await store.grants.watch(session, seen)
    assert seen is not None
    each = (await spent(store, service.ada) - before) / looks
    assert each / (LOOK_SECONDS * seen.weight) < SHARE, f"a look takes {1000 * each:.1f} ms"


async def spent(store: Store, user: str) -> float:
    """Seconds that the person's part of the store has worked on scripts."""
    client: Any = store.client
    node = client if not hasattr(client, "get_node_from_key") else client.get_node_from_key(keys.person(user)["user"])
    answer: Any = await client.execute_command(
        "INFO", "commandstats", **({} if node is client else {"target_nodes": node})
    )
    stats = answer if "cmdstat_evalsha" in answer else next(iter(answer.values()))
    return float(stats["cmdstat_evalsha"]["usec"]) / 1e6
