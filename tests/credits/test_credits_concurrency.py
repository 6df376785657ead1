"""Credits under real concurrency: several stores on one Valkey, like separate processes."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from typing import Any

import pytest

from store import keys
from store.credits import credits
from store.credits.calls import Charge, Hold, ReplayedCall
from store.credits.prices import TokenCounts
from store.crypto.seal import fingerprint
from store.lifetimes import AI, CREDITS_READ, Group
from store.refused import Refused
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.processes.engines import Engine
from tests.support.processes.processes import at_once
from tests.support.store.credit_spender import REPLY, Spender, a_world, booked, recount
from tests.support.store.world import VISITOR, World, every_key, refusal_of

CROWD = 100
within_a_minute = pytest.mark.gen_test(timeout=60)


@pytest.fixture
def stores(valkey_engine: Engine, open_store: OpenStore) -> list[Store]:
    """Four stores on one engine, each with its own connections."""
    return [open_store(valkey_engine.url) for _ in range(4)]


@pytest.fixture
def wide(stores: list[Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows so wide that only credits decide."""
    for store in stores:
        store.rates.ai = Group(AI.name, 1_000_000)
    monkeypatch.setattr(credits, "CREDITS_READ", Group(CREDITS_READ.name, 1_000_000))


def everywhere(app: Spender, stores: list[Store]) -> list[Spender]:
    """The same app on each store."""
    return [Spender(store, app.caller) for store in stores]


async def place(app: Spender, amount: int, **fields: Any) -> Hold | ReplayedCall | str:
    """A direct hold, or the code of its refusal."""
    found: list[Hold | ReplayedCall] = []

    async def ask() -> None:
        found.append(await app.store.calls.hold(app.caller, "credits:spend", app.estimate(amount, **fields)))

    return await refusal_of(ask()) or found[0]


def outcomes(answers: list[Any]) -> Counter[str]:
    """How often each outcome occurred."""
    return Counter(answer if isinstance(answer, str) else type(answer).__name__.lower() for answer in answers)


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(28)
async def test_100_concurrent_calls_with_credits_for_three_get_three_holds(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 3 * 70 + 69)
    for paid in (279, 276, 273, 270):
        answers = await at_once(place(apps[n % 4], 70) for n in range(CROWD))
        assert outcomes(answers) == {"hold": 3, "insufficient_credits": CROWD - 3}
        counted = await recount(stores[1], world.user)
        assert (counted.paid, counted.held) == (paid, 210)
        held = [hold for hold in answers if isinstance(hold, Hold)]
        await at_once(stores[n].calls.settle(hold, TokenCounts(1, 0)) for n, hold in enumerate(held))


@within_a_minute
@pytest.mark.trap(28)
async def test_100_concurrent_calls_within_the_window_of_twenty_get_three_holds(stores: list[Store]) -> None:
    world, other = await a_world(stores[0]), await a_world(stores[0])
    both = [await Spender.make(world), await Spender.make(world, other.app)]
    apps = [*everywhere(both[0], stores), *everywhere(both[1], stores)]
    await stores[0].credits.grant(world.user, 3 * 70)
    found = outcomes(await at_once(place(apps[n % 8], 70) for n in range(CROWD)))
    # Twenty at once over all apps; steps of the window may go by while they are under way.
    assert found["hold"] == 3
    assert found["insufficient_credits"] >= 17
    assert found["rate_limited"] == CROWD - 3 - found["insufficient_credits"]


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(28)
async def test_100_concurrent_calls_never_exceed_the_apps_limit(stores: list[Store]) -> None:
    world, other = await a_world(stores[0]), await a_world(stores[0])
    limited, free = await Spender.make(world), await Spender.make(world, other.app)
    await stores[0].credits.grant(world.user, 100)
    await limited.limit(world, 35)
    apps = [*everywhere(limited, stores), *everywhere(free, stores)]
    answers = await at_once(place(apps[n % 8], 10) for n in range(CROWD))
    held = [hold for hold in answers if isinstance(hold, Hold)]
    assert Counter(hold.client for hold in held) == {limited.caller.client: 3, free.caller.client: 7}
    assert (await recount(stores[0], world.user)).held == 100


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(30)
async def test_100_concurrent_calls_with_one_key_make_one_call(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 1000)
    answers = await at_once(place(apps[n % 4], 5, key="k") for n in range(CROWD))
    assert outcomes(answers) == {"hold": 1, "idempotency_in_progress": CROWD - 1}
    (hold,) = [answer for answer in answers if isinstance(answer, Hold)]
    settled = await at_once(stores[n % 4].calls.settle(hold, TokenCounts(5, 0), REPLY) for n in range(CROWD))
    assert set(settled) == {Charge(5, 995)}
    again = await at_once(place(apps[n % 4], 5, key="k") for n in range(CROWD))
    assert {(one.stored, one.charge) for one in again if isinstance(one, ReplayedCall)} == {(REPLY, Charge(5, 995))}
    assert outcomes(again) == {"replayedcall": CROWD}
    assert (await recount(stores[0], world.user)).amounts == (1000, -5)


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(31)
async def test_concurrent_settlements_and_releases_end_each_hold_once(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 1000)
    order, total = random.Random(3), 0
    for _ in range(5):
        hold = await apps[0].hold(50, key="k")

        async def end(n: int, hold: Hold = hold) -> Charge | None:
            if order.random() < 0.2:
                await stores[n % 4].calls.release(hold)
                return None
            return await stores[n % 4].calls.settle(hold, TokenCounts(n + 1, 0))

        charges = {charge for charge in await at_once(end(n) for n in range(20)) if charge}
        assert len(charges) <= 1, "one answer, whoever asked"
        total += sum(charge.charged for charge in charges)
        counted = await recount(stores[0], world.user)
        assert (counted.paid, counted.held) == (1000 - total, 0)
        record = keys.idempotency(world.user, world.app.client_id, fingerprint("k"))["idem"]
        assert await stores[0].client.exists(record) == bool(charges)
        await stores[0].client.delete(record)


@within_a_minute
@pytest.mark.trap(31)
async def test_100_concurrent_top_ups_with_one_key_are_booked_once(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    granted = await at_once(stores[n % 4].credits.grant(world.user, 7, key="k") for n in range(CROWD))
    assert Counter(one.replayed for one in granted) == {False: 1, True: CROWD - 1}
    begun = await at_once(stores[n % 4].credits.begin(world.user, 9, reason="Welcome") for n in range(CROWD))
    assert all(one.replayed for one in begun)
    other = await a_world(stores[0])
    begun = await at_once(stores[n % 4].credits.begin(other.user, 9, reason="Welcome") for n in range(CROWD))
    assert Counter(one.replayed for one in begun) == {False: 1, True: CROWD - 1}
    assert (await recount(stores[0], world.user)).amounts == (7,)
    assert (await recount(stores[0], other.user)).amounts == (9,)


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(28)
async def test_concurrent_holds_and_deductions_never_exceed_the_balance(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 100)

    async def take(n: int) -> str:
        return await refusal_of(stores[n % 4].credits.grant(world.user, -30)) or "taken"

    found = outcomes(await at_once(take(n) if n % 2 else place(apps[n % 4], 30) for n in range(CROWD)))
    assert found["taken"] + found["hold"] == 3
    counted = await recount(stores[0], world.user)
    assert (counted.paid, counted.held) == (100 - 30 * found["taken"], 30 * found["hold"])


async def a_history(world: World, apps: list[Spender], seed: int, steps: int) -> tuple[int, int]:
    """One caller among many: any calls in any order. Returns the credits added and charged by the answers."""
    order, added, charged, holds = random.Random(seed), 0, 0, list[Hold]()
    for _ in range(steps):
        app = order.choice(apps)
        step = order.choice(["add", "limit", "hold", "hold", "hold", "settle", "settle", "release", "look"])
        if step == "add":
            amount, key = order.choice([-40, -20, 20, 40]), order.choice([None, "a", f"s{seed}"])
            with contextlib.suppress(Refused):
                granted = await app.store.credits.grant(world.user, amount, key=key)
                added += 0 if granted.replayed else amount
        elif step == "limit":
            await app.limit(world, order.choice([None, 50, 300]))
        elif step == "hold":
            key = order.choice([None, None, f"k{order.randint(0, 9)}"])
            answer = await place(app, order.randint(0, 20), output_tokens=order.choice([0, 5, 100]), key=key)
            holds += [answer] if isinstance(answer, Hold) else []
        elif step == "look":
            balance, _ = await app.store.credits.balance(app.caller, "credits:read")
            assert balance.spendable >= 0
            assert balance.held >= 0
        elif holds:
            hold = holds.pop(order.randrange(len(holds)))
            if step == "release":
                await app.store.calls.release(hold)
                continue
            charge = await app.store.calls.settle(hold, TokenCounts(order.randint(0, 30), order.randint(0, 60)), REPLY)
            assert charge is not None
            assert 0 <= charge.charged <= hold.amount
            charged += charge.charged
    for hold in holds:
        await apps[0].store.calls.release(hold)
    return added, charged


@within_a_minute
@pytest.mark.usefixtures("wide")
@pytest.mark.trap(31)
@pytest.mark.parametrize("entries", [pytest.param(10_000, id="the whole ledger"), pytest.param(7, id="folded")])
async def test_concurrent_histories_leave_a_consistent_ledger(stores: list[Store], entries: int) -> None:
    stores = [booked(store, entries=entries) for store in stores]
    world, other = await a_world(stores[0]), await a_world(stores[0])
    both = [await Spender.make(world), await Spender.make(world, other.app)]
    apps = [*everywhere(both[0], stores), *everywhere(both[1], stores)]
    balance = charged = 0
    seeds = itertools.count()
    while charged <= 500:  # how much the limits let through depends on who comes first
        await stores[0].credits.grant(world.user, 500)
        totals = await at_once(a_history(world, apps, next(seeds), 25) for _ in range(30))
        balance += 500 + sum(added - charge for added, charge in totals)
        charged += sum(charge for _, charge in totals)
        counted = await recount(stores[0], world.user)
        assert (counted.paid, counted.held) == (balance, 0)
    grants = (await stores[0].grants.list(world.session)).grants
    assert sum(grant.spent for grant in grants) == charged
    shown = await stores[0].credits.show(world.user, most=10_000)
    charges = [entry for entry in shown.entries if entry.kind == "charge"]
    assert len({entry.hold for entry in charges}) == len(charges), "each hold is charged once"
    if entries == 7:
        assert len(counted.amounts) == 7
    else:
        assert -sum(entry.amount for entry in charges) == charged


@within_a_minute
@pytest.mark.usefixtures("wide")
async def test_a_deletion_during_100_calls_leaves_nothing_behind(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 1000)
    holds = [await apps[0].hold(1, key=f"k{n}") for n in range(CROWD)]

    async def use(n: int) -> None:
        await place(apps[n % 4], 1, key=f"more{n}")
        await apps[n % 4].store.calls.settle(holds[n], TokenCounts(1, 0), REPLY)
        await refusal_of(stores[n % 4].credits.grant(world.user, 1))
        await stores[n % 4].calls.release(holds[-n])

    await at_once(use(n) if n != CROWD // 2 else stores[3].people.delete(world.user) for n in range(CROWD))
    found = await every_key(stores[0].client, f"{keys.prefix(world.user)}*")
    assert {key.split(b":")[2] for key in found} <= {b"idem", b"settled", b"limit", b"family", b"access"}
    assert all([await stores[0].client.pttl(key) > 0 for key in found])


@within_a_minute
@pytest.mark.usefixtures("wide")
async def test_no_call_succeeds_after_an_acknowledged_revocation(stores: list[Store]) -> None:
    world = await a_world(stores[0])
    apps = everywhere(await Spender.make(world), stores)
    await stores[0].credits.grant(world.user, 10_000)
    revoked = False

    async def later(row: int) -> list[tuple[bool, str]]:
        found = []
        for _ in range(10):
            after, answer = revoked, await place(apps[row % 4], 1)
            found.append((after, answer if isinstance(answer, str) else "held"))
        return found

    async def revoke() -> list[tuple[bool, str]]:
        nonlocal revoked
        await stores[3].grants.revoke(world.session, world.app.client_id, VISITOR)
        revoked = True
        return []

    found = [each for row in await at_once(revoke() if n == 4 else later(n) for n in range(12)) for each in row]
    assert {word for after, word in found if after} <= {"invalid_token"}
    assert (await recount(stores[0], world.user)).held == sum(word == "held" for _, word in found)
