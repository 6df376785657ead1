"""Storage totals of an owner's apps: roughly right, off the write path, and recounted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.documents.hosting import HOUR, Hosting, OwnerLimits
from store.lifetimes import DAY
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.document_app import Keeper
from tests.support.store.world import World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=30)


async def an_owner(store: Store, **limits: int) -> tuple[str, Keeper, Keeper]:
    """A person with two apps, each connected by another person; sets the store's limits."""
    store.hosting.limits = OwnerLimits(**limits)
    owner, keepers = (await World.make(store)).user, []
    for number in range(2):
        world = await World.make(store)
        app, _ = await world.register(f"{world.app.client_id}-{number}")
        await store.client.zadd(keys.person(owner)["apps"], {app.client_id: number})
        keeper = await Keeper.make(world, app)
        keepers.append(replace(keeper, caller=keeper.caller._replace(owner=owner)))
    one, two = keepers
    return owner, one, two


async def test_storage_in_an_owners_apps_is_bounded(store: Store) -> None:
    owner, one, other = await an_owner(store, bytes=100)
    await one.put("a/1", b"x" * 60)
    await other.put("a/1", b"x" * 50)
    await store.hosting.flush()
    assert store.hosting.is_full(owner)
    for keeper, name in ((one, "a/1"), (other, "a/2")):
        with pytest.raises(Refused, match="quota_exceeded") as refused:
            await keeper.put(name, b"x" * 61)
        assert refused.value.description == "All apps of this app's owner together keep as much as they may."
    assert await refusal_of(one.put("a/1", b"y" * 60)) is None, "of the same size"
    assert await refusal_of(one.get("a/1")) is None
    await other.delete("a/1")
    await store.hosting.flush()
    assert await refusal_of(other.put("a/1", b"x" * 30)) is None


async def test_documents_in_an_owners_apps_are_bounded(store: Store) -> None:
    owner, one, other = await an_owner(store, documents=2, bytes=0)
    await one.put("a/1")
    await other.put("a/1")
    await store.hosting.flush()
    assert await refusal_of(one.put("a/2")) == "quota_exceeded"
    assert await refusal_of(one.put("a/1", b"longer than before")) == "quota_exceeded"
    assert store.hosting.is_full(owner)


async def test_a_limit_survives_the_deletion_of_its_owner(store: Store) -> None:
    owner, one, other = await an_owner(store, bytes=100)
    await one.put("a/1", b"x" * 60)
    await store.hosting.flush()
    await store.people.delete(owner)
    await other.put("a/1", b"x" * 50)
    await store.hosting.flush()
    for keeper, name in ((one, "a/1"), (other, "a/2")):
        assert await refusal_of(keeper.put(name, b"x" * 61)) == "quota_exceeded"
    await store.hosting.flush()
    assert await refusal_of(one.put("a/1", b"x" * 61)) == "quota_exceeded"
    assert await refusal_of(one.put("a/1", b"y" * 60)) is None, "of the same size"
    await other.delete("a/1")
    given = replace(one, caller=one.caller._replace(owner=(await World.make(store)).user))
    assert await refusal_of(given.put("a/1", b"x" * 61)) is None, "the operator gave the app to somebody"
    store.hosting.limits = OwnerLimits(0, 0)
    assert await refusal_of(one.put("a/2")) is None, "there is no limit"


async def test_demo_apps_have_no_owner_and_no_limit(memory_store: Store) -> None:
    _, one, _ = await an_owner(memory_store, bytes=1)
    demo = replace(one, caller=one.caller._replace(owner="demo"))
    await demo.put("a/1", b"x" * 60)
    await memory_store.hosting.flush()
    assert await refusal_of(demo.put("a/2")) is None


async def test_the_operators_apps_have_no_owner_limit(store: Store) -> None:
    _, one, _ = await an_owner(store, bytes=1)
    free = replace(one, caller=one.caller._replace(owner=""))
    await free.put("a/1", b"x" * 60)
    await store.hosting.flush()
    assert await refusal_of(free.put("a/2", b"x" * 60)) is None


async def test_a_recount_finds_unreported_documents(store: Store) -> None:
    owner, one, other = await an_owner(store, bytes=1000)
    await one.fill(700, content=b"x")
    await other.fill(300, content=b"x")
    await store.hosting.recount(owner)
    assert store.hosting.is_full(owner)
    said: Any = await store.client.hget(keys.person(owner)["user"], "hosted")
    assert said.split()[:2] == [b"1000", b"1000"]
    await store.client.delete(*other.keys().values())  # as a grace window ends
    await store.hosting.flush()
    assert store.hosting.is_full(owner)
    await store.hosting.recount(owner)
    assert not store.hosting.is_full(owner)


async def test_a_recount_keeps_concurrent_writes(store: Store) -> None:
    owner, one, other = await an_owner(store, documents=3, bytes=0)
    await one.put("a/1")
    await store.hosting.flush()

    async def shards_of(client: str) -> Sequence[str]:
        if client == other.caller.client:  # the apps of `one` are counted by then
            await one.put("a/2")
            await store.hosting.flush()
            await one.put("a/3")
            await store.hosting.flush()
        return sorted({one.caller.user[:3], other.caller.user[:3]})

    counting = Hosting(store.client, store.scripts, store.hosting.limits, shards_of)
    await counting.recount(owner)
    assert counting.is_full(owner)
    said: Any = await store.client.hget(keys.person(owner)["user"], "hosted")
    assert said.split()[0] == b"3"


async def test_of_two_concurrent_recounts_the_first_wins(memory_store: Store, clock: FakeClock) -> None:
    owner, one, other = await an_owner(memory_store, documents=3, bytes=0)
    await one.fill(2, content=b"x")
    await memory_store.hosting.flush()

    async def shards_of(client: str) -> Sequence[str]:
        if client == other.caller.client:
            clock.advance(1)
            await memory_store.hosting.recount(owner)
        return sorted({one.caller.user[:3], other.caller.user[:3]})

    counting = Hosting(memory_store.client, memory_store.scripts, memory_store.hosting.limits, shards_of)
    await counting.recount(owner)
    said: Any = await memory_store.client.hget(keys.person(owner)["user"], "hosted")
    assert said.split()[0] == b"2"


async def test_a_large_change_is_reported_at_once_and_triggers_a_recount(memory_store: Store) -> None:
    owner, one, other = await an_owner(memory_store, bytes=100)
    await other.fill(99, content=b"x")
    async with memory_store.hosting.flushing():
        await one.put("a/1", b"xx")
        async with asyncio.timeout(5):
            while not memory_store.hosting.is_full(owner):
                await asyncio.sleep(0)
    assert await refusal_of(one.put("a/2")) == "quota_exceeded"


async def test_one_process_recounts_daily_and_hourly_over_the_limit(memory_store: Store, clock: FakeClock) -> None:
    clock.stop()
    owner, _, _ = await an_owner(memory_store, bytes=100)
    known = {"user": keys.person(owner)["user"]}

    async def due(again: int) -> bool:
        args: dict[str, Any] = {"documents": 0, "bytes": 0, "again": again, "counted": "", "since": ""}
        return (await memory_store.scripts.run("add_hosted", known, **args)).text("due") == "1"

    assert [await due(DAY), await due(DAY)] == [True, False]
    clock.advance(HOUR / 1000)
    assert [await due(DAY), await due(HOUR), await due(HOUR)] == [False, True, False]
    clock.advance(DAY / 1000)
    assert await due(DAY)
