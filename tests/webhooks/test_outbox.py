"""Events on their way from the outbox to the deliveries: each is moved once, through any failure."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgpack
import pytest

from store import keys
from store.crypto.keyring import Keys
from store.engine.background import watched
from store.errors import StoreUnavailable
from store.webhooks.outbox import Outbox
from store.webhooks.relay_wakeup import RelayWakeup
from store.wiring import Store
from tests.support.calls.webhooks import wanted
from tests.support.processes.engines import Engine
from tests.support.store.app_events import (
    OVER,
    REVOKED,
    delete_all,
    delete_the_account,
    disconnect,
    give_back_by_a_stranger,
    keeping,
    posted_events,
    replay,
    replay_a_code,
)
from tests.support.store.lost_answers import losing
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_events_that_cannot_be_moved_are_moved_later(store: Store) -> None:
    world = await keeping(store)
    await world.revoke_app()

    async def away(client: str, event: str) -> bool:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await store.outbox.relay_shards({world.user[:3]}, away)
    assert await store.outbox.relay_shards({world.user[:3]}, wanted) == 0, "somebody has it"
    store.outbox.idle = 0
    assert await posted_events(world) == [REVOKED]


@pytest.mark.parametrize("script", ["take_events", "enqueue_delivery", "drop_events", "announce_ended"])
async def test_each_event_is_moved_once_despite_lost_answers(valkey_engine: Engine, keys: Keys, script: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        await replay(world)
        await world.revoke_app()
        world.store.outbox.idle = 0
        await world.store.client.zadd(f"{{{world.user[:3]}}}:due", {f"{world.user[3:]}:{world.app.client_id}": 1})
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await world.store.outbox.sweep(wanted)
        armed.times = 0
        await world.store.outbox.sweep(wanted)
        assert sorted(await posted_events(world)) == [
            OVER,
            REVOKED,
            ("tokens.revoked", "refresh_token_replayed"),
        ]


async def test_a_sweep_is_done_by_one_process_at_a_time(store: Store) -> None:
    world, other = await keeping(store), await keeping(store)
    await world.revoke_app()
    assert await store.outbox.relay(wanted) == 1
    await other.revoke_app()
    assert await store.outbox.relay(wanted) == 0
    assert 0 < await store.client.pttl(keys.RELAYED) <= 30_000
    await store.client.delete(keys.RELAYED)
    assert await store.outbox.relay(wanted) == 1


async def test_events_of_this_process_are_relayed_at_once(store: Store) -> None:
    world = await keeping(store)
    await store.client.set(keys.RELAYED, "1")  # so no sweep does it
    moved = asyncio.Event()
    async with store.outbox.relaying(wanted, moved.set):
        for does in (disconnect, replay, replay_a_code, give_back_by_a_stranger, delete_all, delete_the_account):
            moved.clear()
            await does(world)
            async with asyncio.timeout(5):
                await moved.wait()
    assert (await store.deliveries.list(world.app.client_id))[0].type == "user.deleted"


async def test_a_shard_without_events_starts_no_work(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def begin(name: str) -> AbstractContextManager[None]:
        begun.append(name)
        return nullcontext()

    world = await keeping(memory_store)
    monkeypatch.setattr(watched, "begin", begin)
    await world.revoke_app()
    for moved in (1, 0):
        assert await memory_store.outbox.relay_shards([world.user[:3]], wanted) == moved
        assert begun == ["relay webhooks"]


class Hesitant:
    """An app whose subscription becomes known only after a while."""

    def __init__(self) -> None:
        self.asked, self._answers = asyncio.Event(), asyncio.Event()

    async def wants(self, client: str, event: str) -> bool:
        self.asked.set()
        await self._answers.wait()
        return True

    async def is_asked(self) -> None:
        """Waits for it; the answer comes later."""
        await self.asked.wait()
        asyncio.get_running_loop().call_later(0.1, self._answers.set)


async def test_a_sweep_waits_for_another_processs_move(memory_store: Store) -> None:
    world, app = await keeping(memory_store), Hesitant()
    await world.revoke_app()
    relay = asyncio.ensure_future(memory_store.outbox.relay_shards({world.user[:3]}, app.wants))
    await app.is_asked()
    assert await memory_store.outbox.sweep(wanted, [world.user[:3]]) == 0
    assert await memory_store.deliveries.next_due() == 0
    assert await relay == 1


async def test_a_reset_waits_for_moves_in_progress(memory_store: Store) -> None:
    world, app = await keeping(memory_store), Hesitant()
    await world.revoke_app()
    relay = asyncio.ensure_future(memory_store.outbox.relay_shards({world.user[:3]}, app.wants))
    await app.is_asked()
    async with memory_store.outbox.still():
        await memory_store.client.flushall()
    assert await relay == 1
    assert await memory_store.client.keys() == []


async def test_a_reset_drops_pending_hints(memory_store: Store) -> None:
    wakeup = RelayWakeup()
    outbox = Outbox(
        memory_store.client,
        memory_store.scripts,
        memory_store.deliveries,
        memory_store.subjects.in_event,
        wakeup,
    )
    wakeup.add("0" * 32)
    async with outbox.still():
        await memory_store.client.flushall()
    assert await wakeup.take(0) == frozenset()


async def test_the_relay_survives_store_outages_and_broken_apps(
    memory_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    world, moved, failures = await keeping(memory_store), asyncio.Event(), [StoreUnavailable("away"), ValueError("odd")]
    memory_store.outbox.idle = 0

    async def at_last(client: str, event: str) -> bool:
        if failures:
            raise failures.pop(0)
        return True

    async with memory_store.outbox.relaying(at_last, moved.set):
        while not moved.is_set():
            await world.tokens()
            await world.revoke_app()
            await asyncio.sleep(0.1)
    assert failures == []
    assert {record.message for record in caplog.records} >= {"webhook relay paused: away"}


async def test_an_unreadable_entry_delays_no_other(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    world = await keeping(store)
    await store.client.xadd(keys.outbox(world.user), {"nonsense": "1"})
    await world.revoke_app()
    assert await posted_events(world) == [REVOKED]
    assert "is unreadable" in caplog.text


@pytest.mark.parametrize("place", ["outbox", "due"])
async def test_foreign_data_in_a_shard_delays_no_other(
    store: Store, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """If only the due list is broken, the shard's own outbox is still emptied."""
    bad = await keeping(store)
    while (world := await keeping(store)).user[:3] == bad.user[:3]:
        pass
    shards = [bad.user[:3], world.user[:3]]
    await store.client.zadd(keys.outbox_keys(shards[1])["due"], {f"{keys.member(world.user)}:gone": 1})
    for one in (bad, world):
        await one.revoke_app()
    await store.client.set(keys.outbox_keys(shards[0])[place], "nonsense")
    assert await store.outbox.sweep(wanted, shards) == (3 if place == "due" else 2)
    assert f"events in {shards[0]} are delayed: store: ResponseError, WRONGTYPE" in caplog.text
    assert [one.type for one in await store.deliveries.list("gone")] == ["data.deleted"]
    assert await posted_events(world) == [REVOKED]
    await world.tokens()
    await world.revoke_app()
    caplog.clear()
    assert await store.outbox.relay_shards(shards, wanted) == 1
    assert ("WRONGTYPE" in caplog.text) is (place == "outbox")


async def test_an_unreadable_registration_delays_no_other_app(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    hook = "https://web.example/hook"
    world, other = await World.make(store, webhook_url=hook), await World.make(store, webhook_url=hook)
    good, _ = await world.register(f"{world.app.client_id}-good", webhook_url=hook)
    for app in (world.app, good):
        await world.tokens(app=app)
        await store.grants.revoke(world.session, app.client_id, VISITOR)
    await other.tokens()
    await other.revoke_app()
    packed: Any = await store.client.get(keys.app(world.app.client_id))
    await store.client.set(keys.app(world.app.client_id), msgpack.packb({"client_id": world.app.client_id}))
    store.apps.forget()
    assert await store.outbox.relay_shards([world.user[:3], other.user[:3]], store.webhooks.wants) == 2
    assert world.app.client_id in caplog.text
    assert [one.type for one in await store.deliveries.list(good.client_id)] == ["grant.revoked"]
    await store.client.set(keys.app(world.app.client_id), packed)
    store.apps.forget()
    store.outbox.idle = 0
    assert await posted_events(world) == [REVOKED], "it waits until somebody has put that right"


async def test_an_unemptied_outbox_is_bounded(store: Store) -> None:
    world = await keeping(store)
    one: dict[Any, Any] = {"type": "grant.revoked", "client": "an-app", "member": "m", "reason": "x", "at": "1"}
    async with store.client.pipeline(transaction=False) as batch:
        for _ in range(1500):
            batch.xadd(keys.outbox(world.user), one)
        await batch.execute()
    await world.revoke_app()
    assert await store.client.xlen(keys.outbox(world.user)) <= 1100
    entries: Any = await store.client.xrevrange(keys.outbox(world.user), count=1)
    ((_, newest),) = entries
    assert newest[b"type"] == b"grant.revoked"
    assert newest[b"member"] == keys.member(world.user).encode()
