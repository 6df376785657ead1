"""Deletions that wait: nobody gets in meanwhile, each runs once, and a restart loses none."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from store import keys
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.planned_deletions import INTERRUPTED
from store.clock import wall
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.errors import StoreUnavailable
from store.operations import Suspension
from store.refused import Suspended
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.lost_answers import losing, store_on
from tests.support.store.world import PASSWORD, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)
DAY = 86400


async def gone(world: World) -> bool:
    """Whether the store has no key of the person."""
    left = await world.store.client.exists(*keys.person(world.user).values(), keys.email(world.email))
    listed = await world.store.client.zscore(keys.DELETIONS, world.user)
    return not left and listed is None


async def due(world: World) -> None:
    """Makes the planned deletion due."""
    await world.store.client.hset(keys.person(world.user)["user"], "delete_at", 1)
    await world.store.client.zadd(keys.DELETIONS, {world.user: 1})


async def test_a_planned_deletion_shuts_the_person_out_and_runs_when_due(memory_store: Store, clock: FakeClock) -> None:
    world = await World.make(memory_store)
    token = (await world.tokens()).access_token
    at = await memory_store.planned_deletions.plan(world.user, 7, "Asked for by post")
    person = await memory_store.operator.find(world.user)
    assert (person.status, person.delete_at) == ("disabled", at)
    with pytest.raises(Suspended) as shut_out:
        await memory_store.people.verify(world.email, PASSWORD)
    assert "Asked for by post" in shut_out.value.description
    assert not await world.lives(token)
    clock.advance(7 * DAY - 60)
    await memory_store.people.finish_deletions(INTERRUPTED)
    assert (await memory_store.operator.find(world.user)).delete_at == at, "a minute early"
    clock.advance(61)
    await memory_store.people.finish_deletions(INTERRUPTED)
    assert await gone(world)


async def test_a_suspension_that_was_over_does_not_return_with_a_cancelled_deletion(
    memory_store: Store, clock: FakeClock
) -> None:
    """Nobody had noted its end: the person had not come since."""
    world = await World.make(memory_store)
    ends = wall.utc() + timedelta(hours=1)
    await memory_store.operator.suspend(world.user, Suspension("Too many invitations", until=ends))
    clock.advance(2 * 3600)
    await memory_store.planned_deletions.plan(world.user, 7, "Asked for by post")
    person = await memory_store.operator.find(world.user)
    assert person.suspension
    assert (person.status, person.suspension.reason) == ("disabled", "Asked for by post")
    await memory_store.planned_deletions.cancel(world.user)
    person = await memory_store.operator.find(world.user)
    assert (person.status, person.suspension) == ("active", None)


async def test_a_suspension_with_an_end_has_it_again_after_a_cancelled_deletion(
    memory_store: Store, clock: FakeClock
) -> None:
    world = await World.make(memory_store)
    ends = (wall.utc() + timedelta(hours=1)).replace(microsecond=0)
    await memory_store.operator.suspend(world.user, Suspension("Too many invitations", until=ends))
    for _ in range(2):  # a new plan replaces an older one
        await memory_store.planned_deletions.plan(world.user, 7)
    clock.advance(2 * 3600)
    with pytest.raises(Suspended):
        await memory_store.people.verify(world.email, PASSWORD)
    await memory_store.planned_deletions.cancel(world.user)
    assert await memory_store.people.verify(world.email, PASSWORD), "the end has passed"


async def test_a_cancelled_deletion_never_runs(memory_store: Store, clock: FakeClock) -> None:
    world = await World.make(memory_store)
    await memory_store.planned_deletions.plan(world.user, 1, "A mistake")
    await memory_store.planned_deletions.cancel(world.user)
    person = await memory_store.operator.find(world.user)
    assert (person.status, person.delete_at, person.suspension) == ("active", None, None)
    clock.advance(2 * DAY)
    await memory_store.people.finish_deletions()
    assert await memory_store.people.verify(world.email, PASSWORD)
    assert await memory_store.client.zscore(keys.DELETIONS, world.user) is None
    assert await refusal_of(memory_store.planned_deletions.cancel(world.user)) == "invalid_request"


async def test_somebody_suspended_before_stays_suspended_after_a_cancelled_deletion(
    memory_store: Store, clock: FakeClock
) -> None:
    world = await World.make(memory_store)
    await memory_store.operator.suspend(world.user, Suspension("Unpaid", "Ticket 1"))
    await memory_store.planned_deletions.plan(world.user, 2, "Never paid")
    for change in ("active", "disabled"):
        assert await refusal_of(memory_store.operator.set_status(world.user, change)) == "invalid_request"
    await memory_store.planned_deletions.cancel(world.user)
    person = await memory_store.operator.find(world.user)
    assert (person.status, person.suspension) == ("disabled", Suspension("Unpaid", "Ticket 1"))


async def test_the_end_of_an_earlier_suspension_lets_nobody_in_who_is_to_be_deleted(
    memory_store: Store, clock: FakeClock
) -> None:
    world = await World.make(memory_store)
    at = await memory_store.planned_deletions.plan(world.user, 1)
    await memory_store.planned_deletions.cancel(world.user)
    await memory_store.operator.suspend(world.user, Suspension("Unpaid", "", at))
    await memory_store.planned_deletions.plan(world.user, 9)
    clock.advance(3 * DAY)
    with pytest.raises(Suspended):
        await memory_store.people.verify(world.email, PASSWORD)


async def test_a_later_plan_replaces_an_earlier_one(memory_store: Store, clock: FakeClock) -> None:
    world = await World.make(memory_store)
    await memory_store.planned_deletions.plan(world.user, 9)
    await memory_store.planned_deletions.plan(world.user, 2)
    later = await memory_store.planned_deletions.plan(world.user, 5)
    await memory_store.client.zadd(keys.DELETIONS, {world.user: 1})  # the list is behind the row
    await memory_store.people.finish_deletions(INTERRUPTED)
    assert await memory_store.client.zscore(keys.DELETIONS, world.user) == later.timestamp()
    clock.advance(5 * DAY + 1)
    await memory_store.people.finish_deletions(INTERRUPTED)
    assert await gone(world)


@pytest.mark.parametrize(("days", "reason"), [(0, ""), (91, ""), (-1, ""), (7, "x" * 501), (7, "a\nb")])
async def test_a_wrong_plan_changes_nothing(memory_store: Store, days: int, reason: str) -> None:
    world = await World.make(memory_store)
    with pytest.raises(ValueError, match=r"days|Reason"):
        await memory_store.planned_deletions.plan(world.user, days, reason)
    assert (await memory_store.operator.find(world.user)).status == "active"
    assert await memory_store.client.zscore(keys.DELETIONS, world.user) is None


async def test_nobody_with_an_unknown_id_is_planned(memory_store: Store) -> None:
    assert await refusal_of(memory_store.planned_deletions.plan("0" * 32, 7)) == "not_found"
    assert await refusal_of(memory_store.planned_deletions.cancel("0" * 32)) == "not_found"


async def test_several_servers_delete_each_person_once(valkey_engine: Engine, keys: Keys) -> None:
    with valkey_engine.client() as direct:
        direct.flushall()
    stores = [store_on(await connect(valkey_engine.url), keys) for _ in range(4)]
    began: Counter[str] = Counter()

    def hear(event: AuditEvent) -> None:
        if event.event in ("planned_deletion_began", "account_deleted"):
            began[f"{event.event} {event.person}"] += 1

    try:
        worlds = [await World.make(stores[0]) for _ in range(12)]
        for world in worlds:
            await stores[0].planned_deletions.plan(world.user, 7)
            await due(world)
        for one in stores:
            one.security.tell = hear
        await asyncio.gather(*(one.people.finish_deletions(INTERRUPTED) for one in stores))
        assert [await gone(world) for world in worlds] == [True] * len(worlds)
        began_by = {name: times for name, times in began.items() if name.startswith("planned")}
        assert began_by == {f"planned_deletion_began {world.user}": 1 for world in worlds}
    finally:
        for one in stores:
            await one.close()


@pytest.mark.parametrize("script", ["claim_deletion", "begin_leaving", "delete_user"])
async def test_a_restart_loses_no_deletion(valkey_engine: Engine, keys: Keys, script: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        await world.store.planned_deletions.plan(world.user, 7)
        await due(world)
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await world.store.people.finish_deletions(INTERRUPTED)
        armed.times = 0
        await world.store.people.finish_deletions()
        assert await gone(world)


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_a_plan_whose_answer_is_lost_is_a_plan_or_none(valkey_engine: Engine, keys: Keys, lost: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        armed.lose_request = lost == "request"
        armed.arm("plan_deletion")
        with pytest.raises(StoreUnavailable):
            await world.store.planned_deletions.plan(world.user, 7)
        person = await world.store.operator.find(world.user)
        assert (person.status, person.delete_at is None) == (
            ("active", True) if lost == "request" else ("disabled", False)
        )
