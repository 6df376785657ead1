"""Holds on every engine: capped exactly by the balance, ended exactly once, expired automatically."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from store import keys
from store.credits.calls import Charge, ReplayedCall
from store.credits.credits import Balance
from store.credits.prices import Price, TokenCounts
from store.lifetimes import AI, AI_MODELS
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.credit_spender import DOLLAR, FREE, PER, REPLY, Spender, a_world, affordable, cost, recount
from tests.support.store.world import refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)

# Prices and tokens as far as they go; small ones too, so that roundings and remainders meet.
prices = st.one_of(st.integers(0, 10**9), st.integers(0, 20), st.sampled_from([0, 1, PER, 999_999, 10**9]))
inputs = st.one_of(st.integers(0, 4 * 10**6), st.integers(0, 50))
outputs = st.one_of(st.integers(0, 10**6), st.integers(0, 50))
brisk = settings(max_examples=150, deadline=None)


async def set_paid(spender: Spender, paid: int) -> None:
    """Gives a person this many credits, bypassing the ledger."""
    names = keys.credits(spender.caller.user)
    await spender.store.client.delete(*names.values())
    await spender.store.client.hset(names["balance"], "paid", paid)


async def arithmetic(spender: Spender, paid: int, price: Price, tokens: tuple[int, int, int], used: Any) -> None:
    """One call: hold and settlement as whole numbers have it."""
    input_tokens, output_tokens, least = tokens
    await set_paid(spender, paid)
    output = affordable(paid, price, input_tokens, output_tokens)
    whole = output == output_tokens
    asking = spender.ask(input_tokens, output_tokens, price=price, least_output=least)
    if output is None or (output < least and not whole):
        assert await refusal_of(asking) == "insufficient_credits"
        assert not await spender.store.client.exists(keys.credits(spender.caller.user)["holds"])
        return
    hold: Any = await asking
    amount = cost(price, input_tokens, output)
    assert (hold.output_tokens, hold.amount) == (output, amount)
    assert await spender.balance() == Balance(paid, amount)
    charge = await spender.settle(hold, *used)
    assert charge.charged == min(amount, cost(price, *used))
    assert await spender.balance() == Balance(paid - charge.charged, 0)
    assert charge.remaining == paid - charge.charged


@pytest.fixture
def spender(io_loop: IOLoop, store: Store) -> Spender:
    """An app that may spend, on each engine in turn."""

    async def make() -> Spender:
        return await Spender.make(await a_world(store))

    made: Spender = io_loop.run_sync(make)
    return made


def test_a_hold_is_capped_to_exactly_the_available_credits(io_loop: IOLoop, spender: Spender) -> None:
    @brisk
    @given(prices, prices, inputs, outputs, st.integers(0, 3), st.data())
    @example(10**9, 10**9, 4 * 10**6, 10**6, 1, None)
    @example(1, 3, 1, 1, 1, None)
    def check(input_price: int, output_price: int, i: int, o: int, least: int, data: st.DataObject | None) -> None:
        price, whole = Price("p", input_price, output_price), cost(Price("p", input_price, output_price), i, o)
        balances, actual = [whole, max(0, whole - 1)], [[i, o], [i, max(0, o - 1)], [10**30, 10**30]]
        if data is not None:
            near = st.integers(0, o).map(lambda some: cost(price, i, some))
            around = st.one_of(near, near.map(lambda room: max(0, room - 1)), st.integers(0, 10**15))
            balances = [data.draw(around, label="paid")]
            actual = [data.draw(st.sampled_from([*actual, [i // 2, o // 2], [0, 1]]), label="used")]
        for paid in balances:
            for used in actual:
                io_loop.run_sync(partial(arithmetic, spender, paid, price, (i, o, least), used))

    check()


@within_a_minute
async def test_a_hold_never_exceeds_the_balance_even_without_output(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 9)
    assert await refusal_of(app.ask(10, 5, least_output=0)) == "insufficient_credits"
    hold = await app.hold(9, 5, least_output=0)
    assert (hold.output_tokens, hold.amount) == (0, 9)
    assert (await recount(store, world.user)).held == 9


@within_a_minute
async def test_output_below_the_minimum_is_refused(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 19)
    assert await refusal_of(app.ask(10, 50, least_output=10)) == "insufficient_credits"
    assert (await app.hold(10, 50, least_output=9)).output_tokens == 9
    assert await refusal_of(app.ask(0, 1)) == "insufficient_credits", "all is held"


@within_a_minute
async def test_a_model_without_a_price_is_free(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    hold = await app.hold(100, 100, price=FREE)
    assert (hold.output_tokens, hold.amount) == (100, 0)
    assert await app.settle(hold, 90, 80) == Charge(0, 0)
    assert await app.settle(hold, 90, 80) == Charge(0, 0)
    entry = (await store.credits.show(world.user)).entries[0]
    assert (entry.kind, entry.amount, entry.input_tokens, entry.output_tokens) == ("charge", 0, 90, 80)
    assert (await recount(store, world.user)).amounts == (0,)
    await store.credits.grant(world.user, 50)
    assert await app.settle(await app.hold(1, 1, price=FREE), 1, 1) == Charge(0, 50)
    half_free = Price("p", PER, 0)
    assert (await app.hold(50, 10**6, price=half_free)).output_tokens == 10**6
    assert await refusal_of(app.ask(1, 10**6, price=half_free)) == "insufficient_credits"


@within_a_minute
async def test_a_charge_never_exceeds_its_hold(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    for used in ((10**40, 10**40), (0, 10**40), (31, 30)):
        hold = await app.hold(10, 20)
        before = (await app.balance()).paid
        if before < 30:
            break
        assert await app.settle(hold, *used) == Charge(30, before - 30)
    assert (await recount(store, world.user)).amounts == (100, -30, -30, -30)


@within_a_minute
@pytest.mark.parametrize("used", [(-1, 0), (0, -1), (-(10**40), 10), (-5, -5)])
async def test_a_negative_report_counts_as_zero(store: Store, used: tuple[int, int]) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    charge = await app.settle(await app.hold(10, 20), *used)
    assert charge.charged == max(0, used[0]) + max(0, used[1])
    assert (await app.balance()) == Balance(100 - charge.charged, 0)
    await recount(store, world.user)


@within_a_minute
@pytest.mark.trap(31)
async def test_a_hold_is_settled_once(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(40)
    first = await app.settle(hold, 25)
    assert first == Charge(25, 75)
    assert await app.settle(hold, 40) == first, "what it was settled to, not what it is settled to now"
    assert await app.settle(hold, 0) == first
    await store.calls.release(hold)
    assert await app.settle(hold, 40) == first
    assert (await recount(store, world.user)).amounts == (100, -25)


@within_a_minute
async def test_settled_holds_leave_nothing_that_later_calls_read(store: Store) -> None:
    world = await a_world(store)
    app, holds = await Spender.make(world), keys.credits(world.user)["holds"]
    await store.credits.grant(world.user, 100)
    settled = [await app.hold(2, lasts=60_000) for _ in range(3)]
    for hold in settled:
        await app.settle(hold, 1)
    assert not await store.client.exists(holds)
    for hold in settled:
        assert 50_000 < await store.client.pttl(keys.settled(world.user, hold.hold_id)) <= 60_000
    assert (await recount(store, world.user)).marks == {hold.hold_id: 1 for hold in settled}


@within_a_minute
@pytest.mark.trap(31)
async def test_a_mark_of_an_earlier_release_still_counts(store: Store) -> None:
    world = await a_world(store)
    app, holds = await Spender.make(world), keys.credits(world.user)["holds"]
    await store.credits.grant(world.user, 100)
    old, hold = await app.hold(40), await app.hold(7)
    row: Any = await store.client.hget(holds, old.hold_id)
    await store.client.hset(holds, old.hold_id, b"s25" + row.removeprefix(b"40"))
    assert await app.settle(old, 40) == Charge(25, 93), "charged once, by the earlier release"
    await store.calls.release(old)
    assert await app.settle(old, 40) == Charge(25, 93)
    assert await app.settle(hold, 7) == Charge(7, 93)
    assert (await store.credits.show(world.user)).holds == ()


@within_a_minute
@pytest.mark.trap(31)
async def test_a_released_hold_cannot_be_settled(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(40)
    await store.calls.release(hold)
    await store.calls.release(hold)
    assert await store.calls.settle(hold, TokenCounts(40, 0)) is None
    counted = await recount(store, world.user)
    assert (counted.amounts, counted.held, counted.marks) == ((100,), 0, {})


@within_a_minute
async def test_a_call_that_used_nothing_is_free_and_leaves_no_entry(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(40)
    assert await app.settle(hold, 0) == Charge(0, 100)
    assert await app.settle(hold, 40) == Charge(0, 100)
    assert (await recount(store, world.user)).amounts == (100,)


@within_a_minute
@pytest.mark.trap(29)
async def test_a_hold_expires(memory_store: Store, clock: FakeClock) -> None:
    store, world = memory_store, await a_world(memory_store)
    app, holds = await Spender.make(world), keys.credits(world.user)["holds"]
    await store.credits.grant(world.user, 100)
    short, long = await app.hold(40, lasts=60_000), await app.hold(50, lasts=120_000)
    clock.advance(61)
    assert await app.balance() == Balance(100, 50), "the next script that looks drops it"
    assert await store.client.hkeys(holds) == [long.hold_id.encode()]
    assert await store.calls.settle(short, TokenCounts(40, 0)) is None
    await store.calls.release(short)
    assert await app.balance() == Balance(100, 50)
    assert await app.settle(long, 50) == Charge(50, 50)
    clock.advance(60)
    assert not await store.client.exists(holds), "no script looked"
    assert await store.calls.settle(long, TokenCounts(50, 0)) is None
    assert (await recount(store, world.user)).amounts == (100, -50)


@within_a_minute
@pytest.mark.trap(29)
async def test_an_expired_hold_cannot_be_settled(memory_store: Store, clock: FakeClock) -> None:
    store, world = memory_store, await a_world(memory_store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    short, _ = await app.hold(40, key="k", lasts=60_000), await app.hold(50, lasts=120_000)
    clock.advance(61)
    assert await store.calls.settle(short, TokenCounts(40, 0), REPLY) is None
    await store.calls.release(short)
    again = await app.hold(50, key="k")
    assert await store.calls.settle(short, TokenCounts(40, 0), REPLY) is None
    await store.calls.release(short)
    assert await refusal_of(app.ask(50, key="k")) == "idempotency_in_progress", "the late ones touch no other call"
    assert (await app.settle(again, 50)).charged == 50
    assert (await recount(store, world.user)).amounts == (100, -50)


@within_a_minute
@pytest.mark.trap(29)
async def test_holds_expire_without_any_access(store: Store) -> None:
    world = await a_world(store)
    app, holds = await Spender.make(world), keys.credits(world.user)["holds"]
    await store.credits.grant(world.user, 100)
    await app.hold(60, lasts=40)
    await app.hold(40, lasts=20)
    while await store.client.exists(holds):
        await asyncio.sleep(0.005)
    assert (await app.hold(100)).amount == 100


@within_a_minute
async def test_the_holds_key_expires_with_the_last_hold(store: Store) -> None:
    world = await a_world(store)
    app, holds = await Spender.make(world), keys.credits(world.user)["holds"]
    await store.credits.grant(world.user, 100)
    for lasts, ends in ((600_000, 600_000), (60_000, 600_000), (900_000, 900_000)):
        hold = await app.hold(1, lasts=lasts)
        assert ends - 10_000 < await store.client.pttl(holds) <= ends
    await app.settle(hold, 1)
    assert 890_000 < await store.client.pttl(holds) <= 900_000


@within_a_minute
async def test_stepping_the_clock_back_revives_no_hold(memory_store: Store, clock: FakeClock) -> None:
    store, world = memory_store, await a_world(memory_store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    ended, stands = await app.hold(40, lasts=60_000), await app.hold(50, lasts=600_000)
    clock.advance(61)
    assert await app.balance() == Balance(100, 50)
    clock.back(30)
    assert await app.balance() == Balance(100, 50)
    assert await store.calls.settle(ended, TokenCounts(40, 0)) is None
    assert (await app.settle(stands, 50)).charged == 50
    assert (await recount(store, world.user)).amounts == (100, -50)


@within_a_minute
@pytest.mark.spec("8.1.ai")
async def test_calls_are_counted_across_apps_and_model_lists_separately(store: Store) -> None:
    world, other = await a_world(store), await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    apps = [await Spender.make(world), await Spender.make(world, other.app)]
    for number in range(AI.limit):
        caller = apps[number % 2].caller
        hold: Any = await store.calls.hold(caller, "credits:spend", apps[0].estimate(1))
        assert (hold.window.limit, hold.window.remaining) == (20, 19 - number)
    for app in apps:
        with pytest.raises(Refused, match="rate_limited") as refused:
            await store.calls.hold(app.caller, "credits:spend", app.estimate(1))
        assert refused.value.retry_after
    window = await store.calls.check(apps[0].caller, "credits:spend")
    assert (window.limit, window.remaining) == (AI_MODELS.limit, AI_MODELS.limit - 1)
    assert (await recount(store, world.user)).held == 20


@within_a_minute
async def test_concurrent_calls_are_limited_per_person_across_apps(store: Store) -> None:
    world, other = await a_world(store), await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    apps = [await Spender.make(world), await Spender.make(world, other.app)]
    store.calls.most_each = 3
    holds = [await apps[number % 2].hold(1, key=f"k{number}") for number in range(3)]
    for app in apps:
        with pytest.raises(Refused, match="rate_limited") as refused:
            await app.ask(1, key="free")
        assert refused.value.retry_after
        assert refused.value.window is not None
    assert (await recount(store, world.user)).held == 3
    await apps[0].settle(holds[0], 1, 0, REPLY)
    last = await apps[1].hold(0, price=FREE, key="free")
    assert isinstance(await apps[0].ask(1, key="k0"), ReplayedCall), "who asks again has nothing under way"
    assert await refusal_of(apps[0].ask(1)) == "rate_limited"
    await store.calls.release(last)
    assert (await apps[0].hold(1)).amount == 1


@within_a_minute
async def test_a_killed_processs_call_counts_until_its_hold_expires(memory_store: Store, clock: FakeClock) -> None:
    world = await a_world(memory_store)
    await memory_store.credits.grant(world.user, 100)
    app = await Spender.make(world)
    memory_store.calls.most_each = 1
    await app.hold(1, lasts=60_000)
    assert await refusal_of(app.ask(1)) == "rate_limited"
    clock.advance(61)
    assert (await app.hold(1)).amount == 1


@within_a_minute
async def test_a_refused_call_counts_in_the_window(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    with pytest.raises(Refused, match="insufficient_credits") as refused:
        await app.ask(1)
    assert refused.value.window is not None
    assert (refused.value.window.limit, refused.value.window.remaining) == (20, 19)
