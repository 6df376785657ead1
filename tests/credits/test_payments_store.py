"""Payments for credits: purchases and reversals in any order, each booked once, never a cent wrong."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import keys
from store.credits.payments import MOST_DISPUTES, Movement, What
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.fsck.invariants import Finding
from store.lifetimes import CHECKOUT
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked, findings
from tests.support.store.credit_spender import DOLLAR, Spender, a_world, recount
from tests.support.store.world import World, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)
RING = Keys(KeyRing.parse(KeyRing.generate(1)))
PAYMENT = "pi_3PfA"


def moved(world: World, what: What, dollars: int, at: int = 100, dispute: str = "", payment: str = PAYMENT) -> Movement:
    """A movement of whole dollars."""
    return Movement(world.user, payment, what, dollars * DOLLAR, at, dispute)


async def ledger_of(world: World) -> list[tuple[str, int, str]]:
    """Kind, dollars and cause of each entry, oldest first; every check of the books is right."""
    await recount(world.store, world.user)
    assert await problems(world) == []
    entries = (await world.store.credits.show(world.user)).entries
    return [(entry.kind, entry.amount // DOLLAR, entry.cause) for entry in reversed(entries)]


async def problems(world: World) -> list[Finding]:
    """What a check of the store finds about the person's credits."""
    found = findings(await checked(world.store))
    return [one for one in found if one.key in keys.credits(world.user).values()]


@within_a_minute
async def test_a_purchase_is_booked_once(store: Store) -> None:
    world = await a_world(store)
    booked = await store.payments.book(moved(world, "paid", 20))
    assert (booked.paid, booked.bought, booked.taken) == (20 * DOLLAR, 20 * DOLLAR, 0)
    assert booked.warned.addresses == (world.email,)
    again = await store.payments.book(moved(world, "paid", 20))
    assert (again.paid, again.bought, again.taken, again.warned.addresses) == (20 * DOLLAR, 0, 0, ())
    # What the provider says of the same payment later changes nothing.
    assert (await store.payments.book(moved(world, "paid", 90))).bought == 0
    (entry,) = (await store.credits.show(world.user)).entries
    assert (entry.kind, entry.amount, entry.payment, entry.cause) == ("purchase", 20 * DOLLAR, PAYMENT, "")
    assert (await world.events())[-1] == "credit_bought"
    assert await problems(world) == []


@within_a_minute
async def test_a_refund_in_parts_takes_back_each_part(store: Store) -> None:
    world = await a_world(store)
    await store.payments.book(moved(world, "paid", 20))
    assert (await store.payments.book(moved(world, "refunded", 5, 101))).taken == 5 * DOLLAR
    assert (await store.payments.book(moved(world, "refunded", 12, 102))).taken == 7 * DOLLAR
    assert (await store.payments.book(moved(world, "refunded", 5, 101))).taken == 0, "an older sum is no news"
    assert (await store.payments.book(moved(world, "refunded", 12, 103))).taken == 0
    assert (await store.payments.book(moved(world, "refunded", 20, 103))).taken == 8 * DOLLAR
    assert await ledger_of(world) == [
        ("purchase", 20, ""),
        ("reversal", -5, "refund"),
        ("reversal", -7, "refund"),
        ("reversal", -8, "refund"),
    ]
    assert (await world.events())[-1] == "credit_reversed"


@within_a_minute
async def test_a_failed_refund_gives_back(store: Store) -> None:
    world = await a_world(store)
    await store.payments.book(moved(world, "paid", 20))
    await store.payments.book(moved(world, "refunded", 20, 101))
    assert (await store.payments.book(moved(world, "refunded", 0, 105))).taken == -20 * DOLLAR
    assert (await ledger_of(world))[-1] == ("reversal", 20, "refund")


@within_a_minute
async def test_a_refund_waits_for_its_purchase_and_touches_no_other_credits(store: Store) -> None:
    world = await a_world(store)
    await store.credits.grant(world.user, 3 * DOLLAR)
    booked = await store.payments.book(moved(world, "refunded", 8, 105))
    assert (booked.paid, booked.taken, booked.warned.addresses) == (3 * DOLLAR, 0, ())
    booked = await store.payments.book(moved(world, "paid", 20, 100))
    assert (booked.paid, booked.bought, booked.taken) == (15 * DOLLAR, 20 * DOLLAR, 8 * DOLLAR)
    assert (await ledger_of(world))[1:] == [("purchase", 20, ""), ("reversal", -8, "refund")]


@within_a_minute
async def test_a_dispute_takes_back_and_a_won_one_gives_back(store: Store) -> None:
    world = await a_world(store)
    await store.payments.book(moved(world, "paid", 20))
    assert (await store.payments.book(moved(world, "withdrawn", 20, 101, "dp_1"))).taken == 20 * DOLLAR
    assert (await store.payments.book(moved(world, "returned", 20, 150, "dp_1"))).taken == -20 * DOLLAR
    assert (await store.payments.book(moved(world, "withdrawn", 20, 101, "dp_1"))).taken == 0, "this came too late"
    assert (await store.payments.book(moved(world, "withdrawn", 20, 160, "dp_2"))).taken == 20 * DOLLAR
    assert (await store.payments.book(moved(world, "refunded", 20, 170))).taken == 0, "never more than was paid"
    assert (await world.events())[-2:] == ["credit_returned", "credit_reversed"]
    assert await ledger_of(world) == [
        ("purchase", 20, ""),
        ("reversal", -20, "dispute"),
        ("reversal", 20, "dispute"),
        ("reversal", -20, "dispute"),
    ]


@within_a_minute
async def test_a_reversal_of_spent_credits_goes_below_zero_and_the_next_purchase_fills_the_gap(store: Store) -> None:
    world = await a_world(store)
    await store.payments.book(moved(world, "paid", 5))
    app = await Spender.make(world)
    held, _ = await app.hold(1000, 1000), await app.spend(2 * DOLLAR)
    assert (await store.payments.book(moved(world, "refunded", 5, 101))).paid == -2 * DOLLAR
    balance = await app.balance()
    assert (balance.paid, balance.held, balance.spendable) == (-2 * DOLLAR, held.amount, 0)
    assert await refusal_of(app.ask(1)) == "insufficient_credits"
    charge = await app.settle(held, 10, 10)
    assert charge.remaining == 0, "what is left is never below zero"
    assert charge.charged == 20, "a call in progress still pays what it used"
    assert (await store.credits.show(world.user)).spendable == 0
    assert await problems(world) == []
    await store.payments.book(moved(world, "paid", 2, 200, payment="pi_next"))
    assert await refusal_of(app.ask(1)) == "insufficient_credits", "the gap and the call are not yet covered"
    await store.payments.book(moved(world, "paid", 3, 201, payment="pi_last"))
    assert (await app.balance()).spendable == 3 * DOLLAR - charge.charged
    await app.spend(100)


LIFE: tuple[tuple[What, int, int, str], ...] = (
    ("paid", 20, 100, ""),
    ("refunded", 3, 101, ""),
    ("refunded", 9, 101, ""),
    ("refunded", 4, 140, ""),
    ("withdrawn", 6, 110, "dp_1"),
    ("returned", 6, 120, "dp_1"),
    ("withdrawn", 8, 130, "dp_2"),
    ("withdrawn", 11, 150, "dp_3"),
    ("returned", 11, 150, "dp_3"),
)
"""Of 20 dollars 4 are refunded, and 8 withdrawn: 8 are left."""


async def lived(order: Sequence[int]) -> int:
    """What is left of the payment after its events in this order."""
    store = Store(await connect("memory"), RING, PasswordHasher(8192, 1), session_idle=10**9, session_lifetime=10**9)
    store.fsck.settle = 0
    try:
        world = await a_world(store)
        booked = [
            await store.payments.book(moved(world, what, dollars, at, dispute))
            for what, dollars, at, dispute in (LIFE[place] for place in order)
        ]
        counted = await recount(store, world.user)
        assert sum(one.bought - one.taken for one in booked) == counted.paid
        assert await problems(world) == []
        return counted.paid // DOLLAR
    finally:
        await store.close()


@settings(max_examples=40, deadline=None)
@given(st.permutations([*range(len(LIFE))]), st.lists(st.integers(0, len(LIFE) - 1), max_size=6))
def test_the_order_and_repetition_of_events_change_nothing(order: list[int], again: list[int]) -> None:
    assert asyncio.run(lived([*order, *again])) == 8


@within_a_minute
async def test_a_person_without_an_account_is_refused(store: Store) -> None:
    world = await a_world(store)
    stranger = Movement("0" * 32, PAYMENT, "paid", DOLLAR, 100)
    assert await refusal_of(store.payments.book(stranger)) == "not_found"
    assert await store.client.exists(*keys.credits("0" * 32).values()) == 0
    await store.payments.book(moved(world, "paid", 20))
    await store.people.delete(world.user)
    assert await refusal_of(store.payments.book(moved(world, "refunded", 20, 101))) == "not_found"
    assert await store.client.exists(*keys.credits(world.user).values()) == 0


@within_a_minute
async def test_a_suspended_person_gets_what_they_paid_for(store: Store) -> None:
    world = await a_world(store)
    await store.operator.set_status(world.email, "disabled")
    assert (await store.payments.book(moved(world, "paid", 20))).paid == 20 * DOLLAR


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"user": "../" + "0" * 29}, id="a user id with other characters"),
        pytest.param({"payment": "pi 1"}, id="a payment id with a space"),
        pytest.param({"payment": ""}, id="no payment id"),
        pytest.param({"payment": "p" * 101}, id="a payment id without end"),
        pytest.param({"what": "withdrawn", "dispute": "dp:1"}, id="a dispute id with a colon"),
        pytest.param({"amount": 0}, id="nothing paid"),
        pytest.param({"amount": -1}, id="less than nothing"),
        pytest.param({"amount": 2**53}, id="more than a balance holds"),
        pytest.param({"at": -1}, id="before 1970"),
        pytest.param({"at": 2**63}, id="at no time"),
    ],
)
@within_a_minute
async def test_a_movement_that_no_ledger_can_have_is_refused(memory_store: Store, wrong: dict[str, Any]) -> None:
    world = await a_world(memory_store)
    facts: dict[str, Any] = {"user": world.user, "payment": PAYMENT, "what": "paid", "amount": DOLLAR, "at": 1, **wrong}
    assert await refusal_of(memory_store.payments.book(Movement(**facts))) == "invalid_request"
    assert await memory_store.client.exists(*keys.credits(world.user).values()) == 0


@within_a_minute
async def test_disputes_about_one_payment_are_bounded(memory_store: Store) -> None:
    world = await a_world(memory_store)
    for number in range(MOST_DISPUTES):
        await memory_store.payments.book(moved(world, "withdrawn", 1, 100, f"dp_{number}"))
    assert await refusal_of(memory_store.payments.book(moved(world, "withdrawn", 1, 100, "dp_x"))) == "invalid_request"


@within_a_minute
async def test_the_start_of_purchases_is_limited(memory_store: Store, clock: FakeClock) -> None:
    world = await a_world(memory_store)
    for _ in range(CHECKOUT.limit):
        await memory_store.payments.begin(world.session)
    assert await refusal_of(memory_store.payments.begin(world.session)) == "rate_limited"
    clock.advance(CHECKOUT.period / 1000)
    await memory_store.payments.begin(world.session)


@within_a_minute
async def test_movements_at_the_same_time_are_each_booked_once(store: Store) -> None:
    world = await a_world(store)
    movements = [moved(world, "paid", 20), *(moved(world, "refunded", 1 + n, 101 + n) for n in range(5))]
    await asyncio.gather(*(store.payments.book(one) for one in itertools.chain(*[movements] * 5)))
    assert (await recount(store, world.user)).paid == 15 * DOLLAR
    assert [kind for kind, _, _ in await ledger_of(world)].count("purchase") == 1


@within_a_minute
async def test_a_check_finds_a_payment_that_the_ledger_does_not_know(memory_store: Store) -> None:
    world, client = await a_world(memory_store), memory_store.client
    await memory_store.payments.book(moved(world, "paid", 20))
    known = keys.credits(world.user)
    for row, says in (
        (f"{20 * DOLLAR} {5 * DOLLAR} {5 * DOLLAR} 101", "the balance says nothing"),
        (f"{20 * DOLLAR} 0 {5 * DOLLAR} 101", "is due"),
        (f"{25 * DOLLAR} 0 0 0", "differ by"),
        ("20", "is malformed"),
    ):
        await client.hset(known["payments"], PAYMENT, row)
        assert any(says in one.what for one in await problems(world)), row
    await client.delete(known["payments"])
