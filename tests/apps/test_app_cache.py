"""The cache of registrations: the store calls that it saves, and how soon a change is visible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from store import keys as spell
from store.apps import cache as module
from store.apps.apps import Apps
from store.apps.cache import CACHE_SECONDS
from store.apps.registration import Registration
from store.errors import StoreUnavailable
from store.wiring import Store
from tests.support.processes.engines import Engine, Ticking, valkey
from tests.support.store.lost_answers import OpenNew
from tests.support.store.world import CALLBACK

ANY = Registration("an-app", "An App", (CALLBACK,), ("profile",))


@pytest.fixture
def cached(memory_store: Store, ticking: Ticking) -> Apps:
    """The registrations of another process on the same store, without announcements."""
    return Apps(memory_store.client, memory_store.scripts, ticking)


@pytest.mark.trap(35)
@pytest.mark.gen_test
@pytest.mark.parametrize("change", ["disabled", "deleted", "secret rotated out"])
async def test_without_announcements_a_change_shows_within_five_seconds(
    memory_store: Store, cached: Apps, ticking: Ticking, change: str
) -> None:
    _, secret = await memory_store.apps.create(ANY)
    assert secret is not None
    assert await cached.active("an-app") is not None
    if change == "disabled":
        await memory_store.apps.update("an-app", status="disabled")
    elif change == "deleted":
        await memory_store.apps.delete("an-app")
    else:
        await memory_store.apps.rotate_secret("an-app", drop_old=True)
    ticking.now += CACHE_SECONDS - 0.01
    assert await cached.active("an-app") is not None
    ticking.now += 0.01
    found = await cached.active("an-app")
    assert found is None or not found.secret_matches(secret)


@pytest.mark.gen_test
async def test_unknown_ids_are_cached_too(memory_store: Store, cached: Apps, ticking: Ticking) -> None:
    assert await cached.find("an-app") is None
    await memory_store.apps.create(ANY)
    assert await cached.find("an-app") is None, "remembered"
    ticking.now += CACHE_SECONDS
    assert await cached.find("an-app") is not None


@pytest.mark.gen_test
async def test_the_cache_is_bounded(cached: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_SIZE", 10)
    for number in range(25):
        await cached.find(f"unknown-{number}")
    assert list(cached.cache.kept) == [f"unknown-{number}" for number in range(15, 25)]
    assert cached.cache.loading == {}


@pytest.mark.gen_test
async def test_concurrent_misses_share_one_read(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        await store.apps.create(ANY)
        store.apps.forget()
        await store.client.config_resetstat()
        found = await asyncio.gather(*[store.apps.find("an-app") for _ in range(100)])
        assert len({id(registration) for registration in found}) == 1
        assert (await store.client.info("commandstats"))["cmdstat_get"]["calls"] == 1


@pytest.mark.gen_test
async def test_concurrent_reads_of_apps_share_a_connection(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        assert await store.apps.find("unknown") is None
        before = await store.client.info("stats")
        assert await asyncio.gather(*[store.apps.find(f"unknown-{number}") for number in range(100)]) == [None] * 100
        after = await store.client.info("stats")
        assert after["total_connections_received"] == before["total_connections_received"]


@pytest.mark.gen_test
async def test_a_cancelled_waiter_does_not_cancel_the_others(cached: Apps, memory_store: Store) -> None:
    await memory_store.apps.create(ANY)
    waiting = [asyncio.ensure_future(cached.find("an-app")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    assert await waiting[1] == await waiting[2]
    assert await waiting[1] is not None


@pytest.mark.gen_test
async def test_a_change_during_a_read_is_not_masked_by_the_stale_result(cached: Apps, memory_store: Store) -> None:
    await memory_store.apps.create(ANY)
    reading = asyncio.ensure_future(cached.find("an-app"))
    await asyncio.sleep(0)
    cached.forget("an-app")
    await reading
    assert "an-app" not in cached.cache.kept


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what another connection brings; fails after 5 s."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("waited for 5 s")


async def subscribed(store: Store, number: int = 1) -> None:
    for _ in range(1000):
        if dict(await store.client.pubsub_numsub(spell.APPS_CHANNEL)).get(spell.APPS_CHANNEL.encode()) == number:
            return
        await asyncio.sleep(0.005)
    pytest.fail("nobody subscribed")


@pytest.mark.trap(35)
@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_change_on_one_process_is_announced_to_the_others(
    request: pytest.FixtureRequest, kind: str, open_new: OpenNew
) -> None:
    url = request.getfixturevalue(f"{kind}_engine").url
    async with open_new(url) as one, open_new(url) as other:
        await one.client.flushall()
        await one.apps.create(ANY)
        await one.apps.create(replace(ANY, client_id="bystander"))
        async with other.announcements.following():
            await subscribed(one)
            assert await other.apps.active("an-app") is not None
            assert await other.apps.find("bystander") is not None
            await one.apps.update("an-app", status="disabled")
            await until(lambda: "an-app" not in other.apps.cache.kept)
            assert await other.apps.active("an-app") is None
            assert "bystander" in other.apps.cache.kept


@pytest.mark.trap(35)
@pytest.mark.gen_test(timeout=60)
async def test_a_dropped_subscription_clears_the_cache(open_new: OpenNew) -> None:
    with valkey(append_only=True) as engine:
        async with open_new(engine.url) as one, open_new(engine.url) as other:
            await one.apps.create(ANY)
            async with other.announcements.following():
                await subscribed(one)
                assert await other.apps.active("an-app") is not None
                assert "an-app" in other.apps.cache.kept
                engine.stop()
                await until(lambda: not other.apps.cache.kept)
                with pytest.raises(StoreUnavailable):
                    await other.apps.find("an-app")
                engine.start()
                await one.apps.update("an-app", status="disabled")
                assert await other.apps.active("an-app") is None
                await subscribed(one)
                await one.apps.update("an-app", status="active")
                await until(lambda: "an-app" not in other.apps.cache.kept)
                assert await other.apps.active("an-app") is not None, "it follows again by itself"
