"""Holds of delegated tokens on every engine: they count at every ancestor, and end with any of them. RFC 8693."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.crypto.seal import new_id
from store.oauth.budgets import Budget
from store.wiring import Store
from tests.credits.test_credits_concurrency import outcomes, place
from tests.support.processes.processes import at_once
from tests.support.store import budgeted as budgets
from tests.support.store.budgeted import TOTAL, budgeted, decided, used
from tests.support.store.checked_store import broken, checked, findings
from tests.support.store.credit_spender import DOLLAR, Spender, booked
from tests.support.store.world import refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)
stores = budgets.stores
HOUR = 3_600_000


async def delegated(parent: Spender, limit: int = 0, models: str = "*") -> Spender:
    """A token that comes from another, with a part of this many micro-dollars; 0: no part of its own."""
    client: Any = parent.store.client
    caller, child = parent.caller, new_id()
    above = keys.token(caller.user, caller.client, caller.family, caller.generation)
    own = keys.token(caller.user, caller.client, child, 0)
    epoch, scope, up = await client.hmget(above["family"], "epoch", "scope", "up")
    chain = f"{caller.family}:{caller.generation}" + (f" {up.decode()}" if up else "")
    row: dict[str, Any] = {"generation": 0, "scope": scope, "epoch": epoch, "up": chain}
    if limit:
        row["budget:credits"] = f"{limit} total 1 0 {models}"
    await client.hset(own["family"], mapping=row)
    await client.pexpire(own["family"], HOUR)
    await client.set(own["access"], "1", px=HOUR)
    return Spender(parent.store, caller._replace(family=child, generation=0))


async def counted(*apps: Spender) -> list[int]:
    """What each delegated token and those below it were charged."""
    client: Any = apps[0].store.client
    rows = [await client.hget(keys.token(*app.caller[:4])["family"], "used") for app in apps]
    return [int(row or 0) for row in rows]


@within_a_minute
async def test_a_hold_counts_at_every_ancestor(store: Store) -> None:
    world, root = await budgeted(store, TOTAL)
    first = await delegated(root, 80)
    second = await delegated(first, 60)
    third = await delegated(second)
    hold = await third.hold(0, 1000)
    assert hold.amount == 60, "the smallest part above it"
    for app, left in ((second, 0), (first, 20), (root, 40)):
        assert await refusal_of(app.ask(0, left + 1, least_output=left + 1)) == "budget_exhausted"
    await third.settle(hold, 0, 50)
    assert await counted(first, second, third) == [50, 50, 50]
    assert await used(world) == {"credits": 50}
    assert (await second.spend(10)).charged == 10
    assert await refusal_of(third.ask(1)) == "budget_exhausted"
    assert await counted(first, second, third) == [60, 60, 50]
    assert (await first.hold(0, 1000)).amount == 20
    assert (await root.hold(0, 1000)).amount == 20, "what is held below it is held of the root's"


@within_a_minute
async def test_a_part_may_be_for_fewer_models(store: Store) -> None:
    _, root = await budgeted(store, TOTAL)
    child = await delegated(await delegated(root, 80, "other"), 60)
    assert await refusal_of(child.ask(1)) == "model_not_allowed"
    await child.spend(1, model="other")


@within_a_minute
async def test_a_token_ends_with_every_token_above_it_in_one_write(store: Store) -> None:
    for ended in range(4):
        _, root = await budgeted(store, TOTAL)
        chain = [root]
        for _ in range(3):
            chain.append(await delegated(chain[-1], 80))
        await chain[3].spend(1)
        client: Any = store.client
        row = keys.token(*chain[ended].caller[:4])
        if ended % 2:
            await client.hset(row["family"], "revoked", "revoked")
        else:
            await client.delete(row["access"])
        found = [await refusal_of(app.ask(1)) for app in chain]
        assert found == [None] * ended + ["invalid_token"] * (4 - ended)


@within_a_minute
async def test_a_new_epoch_of_the_grant_ends_the_whole_tree(store: Store) -> None:
    world, root = await budgeted(store, TOTAL)
    child = await delegated(await delegated(root, 80), 60)
    await world.revoke_app()
    await decided(world, TOTAL)
    assert await refusal_of(child.ask(1)) == "invalid_token"


@within_a_minute
async def test_a_charge_counts_above_a_token_that_has_ended_meanwhile(store: Store) -> None:
    world, root = await budgeted(store, TOTAL)
    first = await delegated(root, 80)
    second = await delegated(first, 60)
    hold = await second.hold(30)
    key, client = keys.token(*second.caller[:4])["family"], store.client
    await client.delete(key)
    await second.settle(hold, 30)
    assert not await client.exists(key), "no row comes back"
    assert await counted(first) == [30]
    assert await used(world) == {"credits": 30}


@within_a_minute
@pytest.mark.trap(62)
async def test_racing_siblings_never_exceed_the_part_of_their_parent(stores: list[Store]) -> None:
    world, root = await budgeted(stores[0], Budget("credits", DOLLAR), paid=2 * DOLLAR)
    parent = await delegated(root, 3 * 70 + 69)
    siblings = [await delegated(parent, 200) for _ in range(5)]
    apps = [Spender(stores[n % 4], app.caller) for n, app in enumerate(siblings * 4)]
    answers = await at_once(place(apps[n % len(apps)], 70) for n in range(100))
    assert outcomes(answers) == {"hold": 3, "budget_exhausted": 97}
    assert await used(world) == {"credits": 0}


@within_a_minute
async def test_a_repair_gives_nothing_of_a_part_back_that_the_ledger_no_longer_proves(store: Store) -> None:
    short = booked(store, entries=2)
    _, root = await budgeted(short, TOTAL)
    child = await delegated(root, 80)
    await child.spend(30)
    whole = await checked(short, repair=True)
    assert findings(whole) == []
    for _ in range(2):
        await child.spend(10)  # the older entries are folded
    assert findings(await checked(short)) == []
    family, client = keys.token(*child.caller[:4])["family"], store.client
    for damaged, mended in ((15, 20), (70, 70), ("a lot", 20)):
        await client.hset(family, "used", damaged)
        assert ("budgets" in broken(await checked(short, repair=True))) == (damaged != mended)
        assert await counted(child) == [mended]
    await client.hdel(family, "used")
    (finding,) = findings(await checked(short))
    await client.delete(family)
    assert finding.mend is not None
    await finding.mend()
    assert not await client.exists(family), "a repair brings no token back"
