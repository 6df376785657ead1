"""Daily spending limits on every engine: of a person over all apps, and of an app over all people."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import keys as spell
from store.credits.calls import Hold
from store.credits.daily import slice_of
from store.credits.prices import TokenCounts
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import AI, Group
from store.refused import Refused
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.processes.engines import Engine, FakeClock
from tests.support.processes.processes import at_once
from tests.support.store.credit_spender import DOLLAR, FREE, SPENDING, Spender, a_world, recount
from tests.support.store.lost_answers import losing
from tests.support.store.world import World, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)


def limited(store: Store, *, person: int = 0, app: int = 0) -> None:
    """Sets the daily limits, in micro-dollars."""
    store.calls.daily.per_person, store.calls.daily.per_app = person, app


async def refused(app: Spender, *tokens: int, **fields: Any) -> Refused:
    """The refusal of a call."""
    with pytest.raises(Refused) as refusal:
        await app.ask(*tokens, **fields)
    return refusal.value


async def till_midnight(store: Store) -> float:
    """Seconds until the day ends (UTC), by the store's clock."""
    seconds, micros = await store.client.time()
    now = datetime.fromtimestamp(int(seconds), UTC)
    end = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
    return end.timestamp() - int(seconds) - int(micros) / 1e6


async def crowd(store: Store, number: int, paid: int = DOLLAR) -> list[Spender]:
    """Several people with one app, most of them in shards of their own."""
    first = await a_world(store)
    spenders = []
    for _ in range(number):
        world = await World.make(store)
        await store.credits.grant(world.user, paid)
        spenders.append(await Spender.make(world, first.app, SPENDING))
    return spenders


async def spent_by(spenders: list[Spender]) -> int:
    """The charges and open holds of these people, from the raw rows."""
    total = 0
    for one in spenders:
        counted = await recount(one.store, one.caller.user)
        total += counted.held - sum(amount for amount in counted.amounts if amount < 0)
    return total


@within_a_minute
async def test_a_person_spends_no_more_than_the_daily_limit_over_all_apps(store: Store) -> None:
    limited(store, person=100)
    world, other = await a_world(store), await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    first, second = await Spender.make(world), await Spender.make(world, other.app)
    await first.spend(30)
    hold = await second.hold(0, 1000)
    assert (hold.output_tokens, hold.amount) == (70, 70), "cut to the limit"
    refusal = await refused(first, 0, 1)
    assert (refusal.code, refusal.retry_after) == ("person_spend_limit", 2), "a call in progress may give back some"
    await second.settle(hold, 0, 60)
    assert (await first.hold(0, 1000)).amount == 10
    refusal = await refused(first, 20, 1)
    assert refusal.code == "person_spend_limit"
    left = await till_midnight(store)
    assert refusal.retry_after is not None
    assert left - 2 <= refusal.retry_after <= left + 2, "only tomorrow"
    assert (await first.hold(5, 5, price=FREE)).amount == 0
    limited(store, person=101)
    assert (await second.hold(0, 9)).amount == 1
    limited(store)
    assert (await second.hold(0, 9)).amount == 9


@within_a_minute
async def test_one_app_may_have_a_limit_of_its_own(memory_store: Store) -> None:
    store = memory_store
    limited(store, app=50)
    world, other = await a_world(store), await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    app, usual = await Spender.make(world), await Spender.make(world, other.app)
    await store.apps.update(world.app.client_id, spend_per_day=100)
    await app.spend(60)
    assert (await app.hold(0, 1000)).amount == 40
    assert (await refused(app, 0, 1)).code == "app_spend_limit"
    assert (await usual.hold(0, 1000)).amount == 50
    await store.apps.update(world.app.client_id, spend_per_day=0)
    assert (await refused(app, 0, 1)).code == "app_spend_limit", "the limit of the server counts again"


@within_a_minute
async def test_a_released_and_an_expired_hold_give_the_limits_back(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    clock.stop()
    clock.advance(await till_midnight(store) + 60)
    for limits in ({"person": 100}, {"app": 100}):
        limited(store, **limits)
        world = await a_world(store)
        await store.credits.grant(world.user, DOLLAR)
        app = await Spender.make(world)
        released, left = await app.hold(60), await app.hold(40)
        assert await refusal_of(app.ask(1)) in ("person_spend_limit", "app_spend_limit")
        await store.calls.release(released)
        assert (await app.hold(0, 90)).amount == 60
        await app.settle(left, 15)
        again = await app.hold(0, 90, lasts=5_000)
        assert again.amount == 25
        clock.advance(5.1)
        assert await store.calls.settle(again, TokenCounts(25, 0)) is None, "its hold is over"
        assert (await app.hold(0, 90)).amount == 25


@within_a_minute
@pytest.mark.parametrize("limits", [{"person": 100}, {"app": 100}], ids=["of a person", "of an app"])
async def test_each_day_starts_at_zero_and_none_starts_twice(
    memory_store: Store, clock: FakeClock, limits: dict[str, int]
) -> None:
    clock.stop()
    clock.advance(await till_midnight(memory_store) - 10)
    limited(memory_store, **limits)
    world = await a_world(memory_store)
    await memory_store.credits.grant(world.user, DOLLAR)
    app = await Spender.make(world)
    await app.spend(70)
    late = await app.hold(30)
    refusal = await refused(app, 1)
    assert refusal.retry_after == 2
    clock.advance(10)
    if "person" in limits:
        assert (await app.hold(0, 1000)).amount == 70, "what is held counts on either day"
        await app.settle(late, 30)
    else:
        await app.settle(late, 30)
        assert (await app.hold(0, 1000)).amount == 100, "a call counts for the day on which it began"
    clock.back(3)
    assert (await refused(app, 1)).code in ("person_spend_limit", "app_spend_limit"), "yesterday is over"


@within_a_minute
async def test_an_app_spends_no_more_than_its_daily_limit_over_all_people(store: Store) -> None:
    spenders = await crowd(store, 6, paid=40 * DOLLAR)
    limited(store, app=10 * DOLLAR)
    for one in spenders:
        await one.spend(DOLLAR)
    hold = await spenders[0].hold(0, 30 * DOLLAR)
    assert hold.amount == 4 * DOLLAR, "cut to what is left of the limit"
    refusals = [await refused(one, DOLLAR) for one in spenders]
    assert {refusal.code for refusal in refusals} == {"app_spend_limit"}
    assert refusals[0].description == "This app has reached its spending limit for today (UTC)."
    # What the call does not use stays with the people of that shard.
    await spenders[0].settle(hold, DOLLAR)
    assert (await spenders[0].hold(3 * DOLLAR)).amount == 3 * DOLLAR
    assert await spent_by(spenders) == 10 * DOLLAR
    other = await a_world(store)
    free = await Spender.make(other)
    await store.credits.grant(other.user, DOLLAR)
    assert (await free.hold(DOLLAR)).amount == DOLLAR, "another app has its own limit"


@within_a_minute
async def test_a_lease_costs_calls_only_when_it_is_used_up(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (app,) = await crowd(memory_store, 1, paid=40 * DOLLAR)
    ran: list[str] = []
    run = memory_store.scripts.run

    async def noted(script: str, *more: Any, **arguments: Any) -> Any:
        ran.append(script)
        return await run(script, *more, **arguments)

    monkeypatch.setattr(memory_store.scripts, "run", noted)
    await app.spend(10)
    assert ran == ["place_hold", "settle_hold"], "nothing more without a limit"
    limited(memory_store, app=500 * DOLLAR)
    for expected in (["place_hold", "lease_spending", "place_hold", "settle_hold"], ["place_hold", "settle_hold"]):
        ran.clear()
        await app.spend(DOLLAR)
        assert ran == expected
    row: Any = await memory_store.client.hgetall(spell.lease(app.caller.user, app.caller.client)["lease"])
    assert int(row[b"leased"]) == 5 * DOLLAR, "a hundredth at once"
    limited(memory_store, app=3 * DOLLAR)
    await app.spend(3 * DOLLAR)
    assert await refusal_of(app.ask(DOLLAR)) == "app_spend_limit"
    ran.clear()
    assert await refusal_of(app.ask(DOLLAR)) == "app_spend_limit"
    assert ran == ["place_hold"], "nobody asks again at once"


@within_a_minute
async def test_a_lost_slice_makes_the_limit_refuse_early(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        limited(world.store, app=2 * DOLLAR)
        app = await Spender.make(world, (await a_world(world.store)).app, SPENDING)
        await world.store.credits.grant(world.user, 10 * DOLLAR)
        armed.arm("lease_spending")
        with pytest.raises(StoreUnavailable):
            await app.ask(DOLLAR)
        assert (await recount(world.store, world.user)).held == 0
        assert (await app.hold(0, 3 * DOLLAR)).amount == DOLLAR
        assert await refusal_of(app.ask(1)) == "app_spend_limit"


def test_a_slice_is_a_hundredth_of_the_limit_and_at_least_a_dollar() -> None:
    assert [slice_of(limit) for limit in (5, 100 * DOLLAR, 1000 * DOLLAR)] == [
        *(DOLLAR, DOLLAR, 10 * DOLLAR),
    ]


@pytest.fixture
def stores(engine_url: str, open_store: OpenStore) -> list[Store]:
    """Stores with their own connections on each engine in turn, like separate processes; one on fakeredis."""
    return [open_store(engine_url) for _ in range(1 if engine_url == "memory" else 4)]


async def rush(stores: list[Store], spenders: list[Spender], calls: int, seed: int) -> Counter[str]:
    """That many calls at once, spread over people and stores; each costs up to a dollar, and some are released."""
    numbers = itertools.count(seed)

    async def one() -> str:
        number = next(numbers)
        mine, store = spenders[number % len(spenders)], stores[number % len(stores)]
        app = Spender(store, mine.caller)
        try:
            held = await store.calls.hold(app.caller, "credits:spend", app.estimate(0, 100_000 * (number % 10 + 1)))
        except Refused as refusal:
            return refusal.code
        assert isinstance(held, Hold)
        if number % 7 == 0:
            await store.calls.release(held)
        elif number % 3:
            await app.settle(held, 0, held.amount // (number % 4 + 1))
        return "held"

    return Counter(await at_once(one() for _ in range(calls)))


@within_a_minute
@pytest.mark.trap(28)
@pytest.mark.parametrize("limits", [{"person": 3 * DOLLAR}, {"app": 12 * DOLLAR}], ids=["of a person", "of an app"])
async def test_hundreds_of_calls_at_once_never_exceed_a_daily_limit(
    stores: list[Store], limits: dict[str, int]
) -> None:
    spenders = await crowd(stores[0], 5, paid=100 * DOLLAR)
    for store in stores:
        store.rates.ai = Group(AI.name, 1_000_000)
        limited(store, **limits)
    found: Counter[str] = Counter()
    for seed in range(0, 300, 100):
        found += await rush(stores, spenders, 100, seed)
        total = await spent_by(spenders)
        assert total <= limits.get("app", total)
        for one in spenders:
            assert await spent_by([one]) <= limits.get("person", total)
    assert found[f"{next(iter(limits))}_spend_limit"] > 0
    assert found["held"] + found[f"{next(iter(limits))}_spend_limit"] == 300
    # What was not used is there for the next call of the same shard.
    assert await spent_by(spenders) > limits.get("app", 5 * limits.get("person", 0)) - 5 * DOLLAR
