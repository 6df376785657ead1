"""Limits on what all apps together store for a person, checked by the writing script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runtime.wiring import document_quotas
from settings.declared import Settings
from store import keys
from store.documents.documents import Quotas
from store.lifetimes import DAY, GRACE
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=30)


async def two_apps(store: Store, **quotas: int) -> tuple[World, Keeper, Keeper]:
    """A person with two apps; sets the store's quotas."""
    store.documents.quotas = Quotas(**quotas)
    world = await World.make(store)
    other, _ = await world.register(f"{world.app.client_id}-other")
    return world, await Keeper.make(world), await Keeper.make(world, other)


async def is_exact(*keepers: Keeper) -> bool:
    """Whether the total in the person's row equals a recount."""
    store, user = keepers[0].store, keepers[0].caller.user
    said = await store.client.hget(keys.person(user)["user"], "stored")
    found = [await keeper.recount() for keeper in keepers]
    total = [sum(one.documents for one in found), sum(one.bytes for one in found)]
    return said is not None and [int(part) for part in said.split()[:2]] == total


async def test_total_bytes_across_apps_are_bounded(store: Store) -> None:
    _, one, other = await two_apps(store, person_bytes=100)
    await one.put("a/1", b"x" * 60)
    await other.put("a/1", b"x" * 40)
    before = await other.dump()
    with pytest.raises(Refused, match="quota_exceeded") as refused:
        await other.put("a/2", b"x")
    assert refused.value.description == "All apps together keep as many bytes for this person as they may."
    assert refused.value.window is not None
    assert await other.dump() == before
    assert await refusal_of(other.put("a/1", b"y" * 40)) is None, "of the same size"
    assert await refusal_of(one.put("a/1", b"x" * 59)) is None, "smaller"
    assert await refusal_of(other.put("a/2", b"x")) is None
    assert await refusal_of(one.get("a/1")) is None
    await one.delete("a/1")
    assert await refusal_of(other.put("a/3", b"x" * 59)) is None
    assert await is_exact(one, other)


async def test_total_documents_across_apps_are_bounded(store: Store) -> None:
    _, one, other = await two_apps(store, person_documents=2)
    await one.put("a/1")
    await other.put("a/1")
    with pytest.raises(Refused) as refused:
        await one.put("a/2")
    assert refused.value.description == "All apps together keep as many documents for this person as they may."
    assert await refusal_of(one.put("a/1", b"longer than before")) is None
    await other.delete("a/1")
    assert await refusal_of(one.put("a/2")) is None
    assert await is_exact(one, other)


async def test_people_do_not_share_totals(store: Store) -> None:
    _, one, _ = await two_apps(store, person_documents=1)
    _, other, _ = await two_apps(store, person_documents=1)
    await one.put("a/1")
    assert await refusal_of(other.put("a/1")) is None


async def by_the_person(world: World, keeper: Keeper) -> None:
    await reauth_if_needed(world)
    await world.store.person_documents.delete_all(world.session, keeper.caller.client, VISITOR)


async def one_by_the_person(world: World, keeper: Keeper) -> None:
    await reauth_if_needed(world)
    await world.store.person_documents.delete(world.session, keeper.caller.client, "a", "1", VISITOR)


async def with_its_app(world: World, keeper: Keeper) -> None:
    await world.store.apps.delete(keeper.caller.client)


@pytest.mark.parametrize("frees", [by_the_person, one_by_the_person, with_its_app])
async def test_every_deletion_of_documents_frees_room(
    store: Store, frees: Callable[[World, Keeper], Awaitable[None]]
) -> None:
    world, one, other = await two_apps(store, person_bytes=10)
    await one.put("a/1", b"x" * 10)
    assert await refusal_of(other.put("a/1")) == "quota_exceeded"
    await frees(world, one)
    assert await refusal_of(other.put("a/1", b"x" * 10)) is None
    assert await is_exact(other)


async def test_documents_in_their_grace_window_count_until_they_end(memory_store: Store, clock: FakeClock) -> None:
    clock.stop()
    world, one, other = await two_apps(memory_store, person_bytes=10)
    await one.put("a/1", b"x" * 9)
    until = await world.store.grants.revoke(world.session, one.caller.client, VISITOR)
    assert await refusal_of(other.put("a/1", b"xx")) == "quota_exceeded"
    await other.put("a/1", b"x")
    for _ in range(GRACE // DAY - 1):  # its total was counted on each of those days
        clock.advance(DAY / 1000)
        other = await Keeper.make(world, await world.store.apps.find(other.caller.client))
        assert await refusal_of(other.put("a/2", b"x")) == "quota_exceeded"
    clock.advance(until.timestamp() - clock.time() - 0.002)
    other = await Keeper.make(world, await world.store.apps.find(other.caller.client))
    assert await refusal_of(other.put("a/2", b"x")) == "quota_exceeded"
    clock.advance(0.004)
    assert await refusal_of(other.put("a/2", b"x" * 9)) is None


async def test_documents_from_the_previous_release_count(store: Store) -> None:
    world, one, other = await two_apps(store, person_bytes=10)
    await one.put("a/1", b"x" * 9)
    await store.client.hdel(keys.person(world.user)["user"], "stored")
    assert await refusal_of(other.put("a/1", b"xx")) == "quota_exceeded"
    assert await refusal_of(other.put("a/1", b"x")) is None
    assert await is_exact(one, other)


async def test_concurrent_writes_never_exceed_the_total(store: Store) -> None:
    _, one, other = await two_apps(store, person_documents=10)
    answers = await asyncio.gather(
        *(refusal_of(keeper.put(f"a/{number}")) for number in range(12) for keeper in (one, other))
    )
    assert sorted(map(str, answers)) == ["None"] * 10 + ["quota_exceeded"] * 14
    assert await is_exact(one, other)


def test_a_persons_default_quota_is_four_times_an_apps() -> None:
    quotas = document_quotas(Settings(storage_limit=5000, document_limit=6, person_document_limit=7))
    assert (quotas.person_bytes, quotas.person_documents) == (20_000, 7)
    assert document_quotas(Settings()) == Quotas()
