"""Events about the end of a disconnected person's data: 30 days later, in any order of actions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from store import keys
from store.lifetimes import GRACE
from store.wiring import Store
from tests.support.calls.webhooks import wanted
from tests.support.processes.engines import FakeClock
from tests.support.store.app_events import (
    DELETED,
    OVER,
    REVOKED,
    SECONDS,
    Events,
    due,
    keeping,
    posted_events,
    posted_ids,
)
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.spec("3.1.grace-over")
async def test_an_event_reports_the_end_of_data_after_30_days(clock: FakeClock, memory_store: Store) -> None:
    world = await keeping(memory_store)
    await world.revoke_app()
    (ends,) = (await due(world)).values()
    clock.advance(SECONDS - 60)
    await memory_store.outbox.sweep(wanted)
    assert await posted_events(world) == [REVOKED]
    clock.advance(61)
    for _ in range(3):
        await memory_store.outbox.sweep(wanted)
    assert await posted_events(world) == [REVOKED, OVER]
    newest = (await memory_store.deliveries.list(world.app.client_id))[0]
    assert (newest.type, newest.occurred_at) == ("data.deleted", ends)
    assert await due(world) == {}
    assert not await memory_store.client.exists(*keys.outbox_keys(world.user[:3]).values())


@pytest.mark.spec("3.1.grace-kept")
@pytest.mark.parametrize("returns", ["by consent", "by mint"])
async def test_reconnecting_leaves_the_due_list(clock: FakeClock, memory_store: Store, returns: str) -> None:
    world = await keeping(memory_store)
    await world.revoke_app()
    world.session = await world.sign_in()
    if returns == "by consent":
        await world.code(("profile",))
    else:
        await memory_store.tokens.mint(world.user, world.app, ("profile",))
    assert await due(world) == {}
    clock.advance(2 * SECONDS)
    await memory_store.outbox.sweep(wanted)
    assert OVER not in await posted_events(world)


async def test_data_kept_longer_is_reported_later(clock: FakeClock, memory_store: Store) -> None:
    """As after a repair that lets the data live: since an event says that it is gone, it must be."""
    world = await keeping(memory_store)
    await world.revoke_app()
    for key in keys.hosted(world.user, world.app.client_id).values():
        await memory_store.client.pexpire(key, GRACE + 60_000)
    clock.advance(SECONDS + 30)
    await memory_store.outbox.sweep(wanted)
    assert len(await due(world)) == 1
    assert await posted_events(world) == [REVOKED]
    clock.advance(31)
    await memory_store.outbox.sweep(wanted)
    assert await posted_events(world) == [REVOKED, OVER]


async def test_without_data_no_end_is_reported(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1")
    await keeper.delete("notes/n1")
    await world.revoke_app()
    assert await due(world) == {}
    clock.advance(SECONDS + 1)
    await memory_store.outbox.sweep(wanted)
    assert await posted_events(world) == [REVOKED]


async def test_a_sweep_covers_every_shard_in_several_steps(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.webhooks.outbox.PAIRS_AT_ONCE", 2)
    worlds = [await keeping(memory_store) for _ in range(6)]
    shard = worlds[0].user[:3]
    for world in worlds:
        await world.revoke_app()
    # Of five that are long gone, in one shard.
    gone = {f"{number:029x}:an-app": 1 for number in range(5)}
    await memory_store.client.zadd(keys.outbox_keys(shard)["due"], gone)
    clock.advance(SECONDS + 1)
    assert await memory_store.outbox.sweep(wanted) == 6 + 6 + 5
    for world in worlds:
        assert await posted_events(world) == [REVOKED, OVER]


async def test_in_every_order_each_event_is_sent_once(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script is atomic, so the orders of whole scripts are all the interleavings there are."""
    for order in itertools.permutations(("disconnect", "consent", "30 days", "sweep", "delete all")):
        if order.index("consent") < order.index("disconnect"):
            continue  # to who is connected, another consent does nothing
        world = await keeping(memory_store)
        monkeypatch.setattr(keys, "SHARDS", (world.user[:3],))  # a sweep over all of them takes fakeredis its time
        expected: Events = []
        found: list[tuple[str, tuple[str, str]]] = []
        connected, kept, listed, over = True, True, False, False
        for step in order:
            if step == "disconnect":
                await world.revoke_app()
                connected, listed = False, kept
                expected.append(REVOKED)
            elif step == "consent":
                await world.code()
                expected += [OVER] if listed and over else []
                connected, listed = True, False
            elif step == "30 days":
                clock.advance(SECONDS + 1)
                world.session = await world.sign_in()
                if not connected:
                    over = True
                kept = kept and not (listed and over)
            elif step == "sweep":
                await memory_store.outbox.sweep(wanted)
                expected += [OVER] if listed and over else []
                listed = listed and not over
            else:
                there = connected or not over
                await reauth_if_needed(world)
                refused = await refusal_of(
                    memory_store.person_documents.delete_all(world.session, world.app.client_id, VISITOR)
                )
                assert refused == (None if there else "not_found"), order
                if there and kept:
                    expected.append(DELETED)
                    kept = listed = False
            found += [one for one in await posted_ids(world) if one not in found]
            assert [event for _, event in found] == expected, order
        await memory_store.people.delete(world.user)
        expected += [OVER] if listed and over else []
        expected += [("user.deleted", "")] if connected or not over else []
        for _ in range(2):
            found += [one for one in await posted_ids(world) if one not in found]
            assert [event for _, event in found] == expected, order
            await memory_store.outbox.sweep(wanted)
        assert await due(world) == {}


async def test_simultaneous_events_stay_separate_and_a_grace_end_is_one_event(store: Store) -> None:
    world = await keeping(store)
    one: dict[Any, Any] = {
        "type": "tokens.revoked",
        "client": world.app.client_id,
        "member": keys.member(world.user),
        "at": "1",
    }
    for reason in ("token_revoked", "token_revoked", "refresh_token_replayed"):
        await store.client.xadd(keys.outbox(world.user), {**one, "reason": reason})
    for _ in range(2):
        await store.client.xadd(keys.outbox(world.user), {**one, "type": "data.deleted", "reason": "grace_over"})
    assert [reason for _, reason in await posted_events(world)] == [
        *("token_revoked", "token_revoked", "refresh_token_replayed", "grace_over")
    ]
