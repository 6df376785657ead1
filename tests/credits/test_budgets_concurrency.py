"""Budgets under real concurrency: several stores on one Valkey, like separate processes."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from store.credits.calls import Hold
from store.credits.prices import TokenCounts
from store.oauth.budgets import Budget
from store.wiring import Store
from tests.credits.test_credits_concurrency import everywhere, outcomes, place
from tests.support.processes.processes import at_once
from tests.support.store import budgeted as budgets
from tests.support.store.budgeted import budgeted, decided, tokens_of, used
from tests.support.store.checked_store import checked, findings
from tests.support.store.credit_spender import DOLLAR, FREE, Spender, recount
from tests.support.store.world import World, refusal_of

CROWD = 100
within_a_minute = pytest.mark.gen_test(timeout=60)
stores = budgets.stores


@within_a_minute
@pytest.mark.trap(61)
@pytest.mark.parametrize("kind", ["credits total", "credits month", "llm-inference total"])
async def test_of_100_concurrent_calls_on_a_budget_for_three_three_are_made(stores: list[Store], kind: str) -> None:
    name, period = kind.split()
    world, app = await budgeted(stores[0], Budget(name, 3 * 70 + 69, period))
    second = await tokens_of(world, Budget("llm-inference", DOLLAR), scopes=("credits:spend",))
    apps = [*everywhere(app, stores), *everywhere(Spender(stores[0], world.caller(second.access_token)), stores)]
    if name == "llm-inference":
        await decided(world, Budget(name, 3 * 70 + 69))
    answers = await at_once(place(apps[n % 8], 70) for n in range(CROWD))
    assert outcomes(answers) == {"hold": 3, "budget_exhausted": CROWD - 3}
    held = [hold for hold in answers if isinstance(hold, Hold)]
    await at_once(stores[n].calls.settle(hold, TokenCounts(70, 0)) for n, hold in enumerate(held))
    assert (await used(world))[name] == 3 * 70
    answers = await at_once(place(apps[n % 8], 70) for n in range(CROWD))
    assert outcomes(answers) == {"budget_exhausted": CROWD}


async def a_history(world: World, apps: list[Spender], seed: int, steps: int) -> None:
    """One caller among many: calls and decisions in any order."""
    order, holds = random.Random(seed), list[Hold]()
    for _ in range(steps):
        app = order.choice(apps)
        step = order.choice([*["hold"] * 16, *["settle"] * 8, "release", "decide"])
        if step == "hold":
            placed = await place(app, order.choice([20, 40, 60]), lasts=order.choice([1, *[600_000] * 9]))
            holds += [placed] if isinstance(placed, Hold) else []
        elif step == "decide":
            kind = order.choice([("credits", "total"), ("credits", "month"), ("llm-inference", "total")])
            await refusal_of(decided(world, Budget(kind[0], order.choice([60, 200]), kind[1])))
        elif holds:
            hold = holds.pop(order.randrange(len(holds)))
            if step == "settle":
                await app.store.calls.settle(hold, TokenCounts(order.choice([1, 40, 60]), 0))
            else:
                await app.store.calls.release(hold)


def test_after_any_concurrent_history_each_budget_counts_its_charges_and_no_more(
    io_loop: IOLoop, stores: list[Store]
) -> None:
    """What is used never exceeds an amount that was not lowered, and fsck adds the ledger up to the same."""

    @settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        async def live() -> None:
            world, app = await budgeted(stores[0], Budget("credits", 200), Budget("llm-inference", 200), paid=10**6)
            apps = everywhere(app, stores)
            await at_once(a_history(world, apps, seed + number, 16) for number in range(6))
            await app.hold(1, price=FREE)  # so that the list does not expire while it is read
            await recount(stores[0], world.user)
            (grant,) = (await stores[0].grants.list(world.session)).grants
            for budget in grant.budgets:
                assert budget.period == "month" or budget.used <= max(200, budget.limit)
            report = await checked(stores[0])
            assert findings(report) == []

        io_loop.run_sync(live, timeout=60)

    run()
