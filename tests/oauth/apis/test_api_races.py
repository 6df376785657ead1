"""Concurrent requests for different resources, on two server processes and a real store; and what a request costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tornado.ioloop import IOLoop

from store.wiring import Store
from tests.oauth.test_concurrency import CROWD, answers
from tests.support.http.api_shop import ORDERS, Shop
from tests.support.http.driver import App, Service, json_of
from tests.support.processes.processes import Pair, at_once, driven, pair

within_a_minute = pytest.mark.gen_test(timeout=60)
SCOPE = "profile write"


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """The two servers of this module."""
    with pair("--trusted-proxies", "127.0.0.1") as made:
        yield made


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A new person and a new app on both servers."""
    with driven(io_loop, two) as made:
        yield made


async def opened(service: Service, two: Pair, **fields: Any) -> tuple[Shop, str]:
    """A shop, and a code for both resources."""
    shop = await Shop.open(service, f"shop-{service.web.client_id}", **fields)
    browser = await service.signed_in(two.email)
    return shop, await service.code(shop.app, browser, scope=SCOPE, resource=ORDERS.identifier)


def resource(app: App, number: int) -> str | None:
    """Three ways to name a resource, in turn; each server is its own resource."""
    own = f"http://localhost:{urlsplit(app.base_url).port}"
    return (own, ORDERS.identifier, None)[number % 3]


async def live(shop: Shop, tokens: dict[str, Any]) -> bool:
    """Whether an access token works at its own resource."""
    return bool((await shop.to_app(tokens["access_token"]))["active"])


@within_a_minute
@pytest.mark.trap(1)
async def test_one_of_100_exchanges_for_any_resource_succeeds(service: Service, two: Pair) -> None:
    shop, code = await opened(service, two)
    apps = two.split(shop.app) * CROWD
    responses = await at_once(apps[n].exchange(code, resource=resource(apps[n], n)) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (400, "invalid_grant"): CROWD - 1}
    won = json_of(next(one for one in responses if one.code == 200))
    assert not await live(shop, won), "the others were replays of a used code"


@within_a_minute
@pytest.mark.trap(1)
async def test_one_of_100_refreshes_for_any_resource_succeeds(service: Service, two: Pair) -> None:
    shop, code = await opened(service, two)
    tokens = json_of(await shop.app.exchange(code))
    apps = two.split(shop.app) * CROWD
    responses = await at_once(
        apps[n].refresh(tokens["refresh_token"], resource=resource(apps[n], n)) for n in range(CROWD)
    )
    assert answers(responses) == {(200, ""): 1, (400, "invalid_grant"): CROWD - 1}
    won = json_of(next(one for one in responses if one.code == 200))
    assert not await live(shop, won)
    assert not await live(shop, tokens)


@within_a_minute
@pytest.mark.trap(8)
async def test_within_the_retry_time_there_is_one_token_for_one_resource(service: Service, two: Pair) -> None:
    shop, code = await opened(service, two, refresh_retry_seconds=30)
    tokens = json_of(await shop.app.exchange(code))
    apps = two.split(shop.app) * CROWD
    responses = await at_once(
        apps[n].refresh(tokens["refresh_token"], resource=resource(apps[n], n // 2 % 2)) for n in range(60)
    )
    assert answers(responses) == {(200, ""): 30, (400, "invalid_target"): 30}
    given = {(json_of(one)["access_token"], json_of(one)["scope"]) for one in responses if one.code == 200}
    assert len(given) == 1
    refreshed = next(json_of(one) for one in responses if one.code == 200)
    assert await live(shop, refreshed), "nobody was taken for a thief"


@within_a_minute
@pytest.mark.trap(3)
async def test_a_refresh_racing_a_disconnection_leaves_no_live_token_at_the_api(service: Service, two: Pair) -> None:
    shop, _ = await opened(service, two)
    browser = await service.signed_in(two.email)
    action = f"/account/apps/{shop.app.client_id}/revoke"
    for _ in range(10):
        code = await service.code(shop.app, browser, scope=SCOPE, resource=ORDERS.identifier)
        tokens = json_of(await shop.app.exchange(code))
        page = await browser.get("/account/apps")
        refreshing = asyncio.ensure_future(shop.app.refresh(tokens["refresh_token"]))
        await browser.submit(page, action)
        response = await refreshing
        for each in [tokens, *([json_of(response)] if response.code == 200 else [])]:
            assert not await live(shop, each)


async def commands(store: Store, what: str) -> int:
    """How often the store's server ran a kind of command."""
    found: Any = await store.client.info("commandstats")
    return sum(int(row["calls"]) for name, row in found.items() if name.startswith(f"cmdstat_{what}"))


@within_a_minute
async def test_a_token_request_is_one_script_and_introspection_too(service: Service, two: Pair) -> None:
    shop, code = await opened(service, two)
    await shop.app.exchange(code, resource="https://nobody.example")  # everything is cached now
    tokens: dict[str, Any] = {}

    async def exchanged() -> None:
        tokens.update(json_of(await shop.app.exchange(code)))

    async def refreshed() -> None:
        tokens.update(await shop.refresh(tokens))

    async def refused() -> None:
        assert (await shop.app.refresh(tokens["refresh_token"], resource="https://nobody.example")).code == 400

    async def asked() -> None:
        assert (await shop.at(ORDERS, tokens["access_token"]))["active"]

    await exchanged()
    await asked()
    for call in (refreshed, refused, asked):
        counted = []
        for _ in range(5):
            before = await commands(service.store, "evalsha")
            await call()
            counted.append(await commands(service.store, "evalsha") - before)
        # Portions of windows are taken in the background.
        assert min(counted) == 1, call.__name__
