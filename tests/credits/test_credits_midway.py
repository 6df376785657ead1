"""Calls in progress, on every engine, while a token, an app, a person or an answer disappears."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from store import keys
from store.credits.calls import Charge
from store.credits.prices import TokenCounts
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import ACCESS_TOKEN
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.credit_spender import REPLY, SPENDING, Spender, a_world, recount
from tests.support.store.lost_answers import losing
from tests.support.store.world import World, every_key, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)


@within_a_minute
@pytest.mark.spec("2.4.credits-spend")
async def test_spending_needs_its_scope(store: Store) -> None:
    world = await a_world(store)
    await store.credits.grant(world.user, 100)
    narrow = await Spender.make(world, scopes=("profile", "credits:read"))
    assert await refusal_of(narrow.ask(1)) == "insufficient_scope"
    assert await refusal_of(store.calls.check(narrow.caller, "credits:spend")) == "insufficient_scope"
    wide = await Spender.make(world)
    await world.code(("profile", "credits:spend"), ticked=("profile",))
    assert await refusal_of(wide.ask(1)) == "insufficient_scope", "the grant was narrowed since"
    assert (await recount(store, world.user)).held == 0


@within_a_minute
async def test_a_disabled_person_pays_for_the_call_in_progress_and_can_start_no_other(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold, other = await app.hold(40), await app.hold(10)
    await store.operator.set_status(world.email, "disabled")
    assert await refusal_of(app.ask(1)) == "invalid_token"
    assert await app.settle(hold, 30) == Charge(30, 60)
    await store.calls.release(other)
    assert (await recount(store, world.user)).amounts == (100, -30)


@within_a_minute
async def test_a_call_is_settled_even_if_its_token_ended(memory_store: Store, clock: FakeClock) -> None:
    store, world = memory_store, await a_world(memory_store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(40, lasts=ACCESS_TOKEN + 120_000)
    clock.advance(ACCESS_TOKEN / 1000 + 60)
    assert await refusal_of(app.ask(1)) == "invalid_token"
    assert await app.settle(hold, 30) == Charge(30, 70)


@within_a_minute
async def test_a_call_is_settled_after_the_app_is_disconnected(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold, other = await app.hold(40), await app.hold(10)
    await world.revoke_app()
    ends = await store.client.pexpiretime(keys.grant(world.user, world.app.client_id))
    assert await refusal_of(app.ask(1)) == "invalid_token"
    assert await app.settle(hold, 30) == Charge(30, 60)
    await store.calls.release(other)
    assert await store.client.pexpiretime(keys.grant(world.user, world.app.client_id)) == ends, "the grace window stays"
    (grant,) = (await store.grants.list(world.session)).grants
    assert grant.spent == 30


@within_a_minute
async def test_a_call_of_an_app_deleted_mid_call_is_charged_without_reviving_the_app(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold, released = await app.hold(40, key="k"), await app.hold(10, key="l")
    await store.apps.delete(world.app.client_id)
    before = set(await every_key(store.client))
    assert await app.settle(hold, 30) == Charge(30, 60)
    await store.calls.release(released)
    booked = {keys.credits(world.user)["used"].encode(), keys.settled(world.user, hold.hold_id).encode()}
    assert set(await every_key(store.client)) - before == booked, "the person's own records"
    assert not await store.client.exists(keys.grant(world.user, world.app.client_id))
    listed = (await store.grants.list(world.session)).grants
    assert listed == []
    assert (await store.credits.show(world.user)).entries[0].client == world.app.client_id
    assert (await recount(store, world.user)).amounts == (100, -30)


@within_a_minute
async def test_settling_does_not_revive_a_deleted_person(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    holds = [await app.hold(10, key=str(number)) for number in range(3)]
    await app.settle(holds[2], 10, 0, REPLY)
    await store.operator.delete(world.email)
    before = set(await every_key(store.client))
    assert await store.calls.settle(holds[0], TokenCounts(10, 0), REPLY) is None
    assert await store.calls.settle(holds[2], TokenCounts(10, 0), REPLY) is None
    await store.calls.release(holds[1])
    assert await refusal_of(app.ask(1)) == "invalid_token"
    assert set(await every_key(store.client)) - before == set()
    left = [key for key in set(await every_key(store.client)) if key.startswith(keys.prefix(world.user).encode())]
    assert {key.split(b":")[2] for key in left} == {b"idem", b"settled", b"family", b"access"}
    for key in left:
        assert await store.client.pttl(key) > 0, "what is left ends by itself"


@within_a_minute
async def test_settling_does_not_revive_rows_during_a_deletion(store: Store) -> None:
    """Between two steps of the deletion, remaining rows are not written either."""
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(10, key="k")
    for number in range(3):
        await app.spend(10, key=f"kept-{number}")
        await app.settle(await app.hold(1, key=f"reply-{number}"), 1, 0, REPLY)
    step = {
        "member": keys.member(world.user),
        "prefix": keys.prefix(world.user),
        "shard": keys.shard_prefix(world.user),
    }
    assert (await store.scripts.run("delete_user", keys.account_deletion(world.user), steps=1, **step)).word == "more"
    names = keys.credits(world.user).values()
    before = [await store.client.dump(name) for name in names]
    assert await store.calls.settle(hold, TokenCounts(10, 0), REPLY) is None
    assert await refusal_of(store.credits.grant(world.user, 5)) == "not_found"
    assert [await store.client.dump(name) for name in names] == before
    await store.calls.release(hold)
    await store.people.delete(world.user)
    assert not await store.client.exists(*names)
    left = set(await every_key(store.client))
    assert not [key for key in left if key.startswith(keys.reply_prefix(world.user).encode())]


@within_a_minute
@pytest.mark.trap(32)
async def test_a_settlement_with_a_lost_answer_charges_once(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        app = await spender_on(world)
        hold = await app.hold(40, key="k")
        armed.arm("settle_hold")
        assert await app.settle(hold, 30, 0, REPLY) == Charge(30, 70)
        hold = await app.hold(40, key="l")
        armed.arm("settle_hold", times=2)
        with pytest.raises(StoreUnavailable):
            await app.settle(hold, 20, 0, REPLY)
        assert await app.settle(hold, 40, 0, REPLY) == Charge(20, 50)
        assert (await recount(world.store, world.user)).amounts == (100, -30, -20)


@within_a_minute
@pytest.mark.trap(32)
@pytest.mark.trap(29)
async def test_a_hold_with_a_lost_answer_is_placed_once_and_expires(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        app = await spender_on(world)
        armed.arm("place_hold")
        with pytest.raises(StoreUnavailable):
            await app.ask(40, lasts=40)
        assert list((await recount(world.store, world.user)).holds.values()) in ([40], [])
        while (await app.balance()).held:
            await asyncio.sleep(0.005)
        hold = await app.hold(100)
        armed.arm("release_hold")
        await world.store.calls.release(hold)
        assert (await recount(world.store, world.user)).amounts == (100,)
        assert (await app.balance()).spendable == 100


@pytest.fixture
def valkey_store(valkey_engine: Engine, open_store: OpenStore) -> Store:
    """A store on Valkey."""
    return open_store(valkey_engine.url)


@within_a_minute
async def test_a_full_store_books_nothing_partially(valkey_engine: Engine, valkey_store: Store) -> None:
    store, world = valkey_store, await a_world(valkey_store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold, _ = await app.hold(40, key="k"), await app.hold(10, lasts=1)
    await app.settle(await app.hold(1, key="l"), 1, 0, REPLY)
    estimate = app.estimate(10, key="m")
    with valkey_engine.client() as direct:
        direct.config_set("maxmemory", "1")
        try:
            for call in (
                store.calls.hold(app.caller, "credits:spend", estimate),
                store.calls.settle(hold, TokenCounts(30, 0), REPLY),
                store.credits.grant(world.user, 5, key="n"),
            ):
                with contextlib.suppress(StoreUnavailable):
                    await call
        finally:
            direct.config_set("maxmemory", "0")
    # A script is refused whole, or, where it had dropped what ended before it wrote, goes through whole.
    counted = await recount(store, world.user)
    assert counted.paid == 99 + (5 if 5 in counted.amounts else 0) - (30 if -30 in counted.amounts else 0)
    charge = await app.settle(hold, 30, 0, REPLY)
    assert charge.charged == 30
    assert (await recount(store, world.user)).amounts.count(-30) == 1


async def spender_on(world: World) -> Spender:
    """An app that may spend a hundred micro-dollars of the person's."""
    app, _ = await world.register(f"{world.app.client_id}-spends", scopes=SPENDING)
    await world.store.credits.grant(world.user, 100)
    return await Spender.make(world, app)
