"""Top-ups and the ledger in the store, on every engine: an amount is booked once, and the sum proves the balance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store.credits.credits import MAX_AMOUNT, MAX_PAID, Account, Balance
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import CREDIT_KEY, DAY
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.credit_spender import DOLLAR, Spender, a_world, booked, recount
from tests.support.store.lost_answers import losing
from tests.support.store.world import VISITOR, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.spec("2.4.credits-read")
async def test_an_app_sees_what_is_spendable(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    assert await app.balance() == Balance(0, 0)
    await store.credits.grant(world.user, DOLLAR)
    assert await app.balance() == Balance(DOLLAR, 0)
    hold = await app.hold(300_000)
    assert await app.balance() == Balance(DOLLAR, 300_000)
    assert (await app.balance()).spendable == 700_000
    await app.settle(hold, 100_000)
    assert await app.balance() == Balance(900_000, 0)
    assert (await recount(store, world.user)).amounts == (DOLLAR, -100_000)


@pytest.mark.spec("2.4.credits-read")
async def test_the_balance_needs_its_scope_and_a_live_token(store: Store) -> None:
    world = await a_world(store)
    narrow = await Spender.make(world, scopes=("credits:spend",))
    assert await refusal_of(narrow.balance()) == "insufficient_scope"
    app = await Spender.make(world)
    await store.operator.set_status(world.email, "disabled")
    assert await refusal_of(app.balance()) == "invalid_token"
    await store.operator.set_status(world.email, "active")
    await world.sign_in()
    assert await app.balance() == Balance(0, 0)


async def test_a_top_up_is_booked_with_its_reason_and_in_the_activity(store: Store) -> None:
    world = await a_world(store)
    granted = await store.credits.grant(world.user, 5 * DOLLAR, reason="Invoice 17")
    assert (granted.balance, granted.replayed) == (Balance(5 * DOLLAR, 0), False)
    taken = await store.credits.grant(world.user, -2 * DOLLAR, reason="Refunded")
    assert (taken.balance, taken.replayed) == (Balance(3 * DOLLAR, 0), False)
    newest, oldest = (await store.credits.show(world.user)).entries
    assert (newest.kind, newest.amount, newest.paid, newest.reason) == ("grant", -2 * DOLLAR, 3 * DOLLAR, "Refunded")
    first = (oldest.kind, oldest.amount, oldest.paid, oldest.reason)
    assert first == ("grant", 5 * DOLLAR, 5 * DOLLAR, "Invoice 17")
    assert abs(datetime.now(UTC) - oldest.at) < timedelta(minutes=1)
    assert (await world.events())[-2:] == ["credit_added", "credit_taken"]
    assert (await recount(store, world.user)).paid == 3 * DOLLAR


async def test_a_top_up_with_a_key_is_booked_once(store: Store) -> None:
    world, other = await a_world(store), await a_world(store)
    first = await store.credits.grant(world.user, DOLLAR, reason="Card", key="payment-1")
    again = await store.credits.grant(world.user, DOLLAR, reason="Card", key="payment-1")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.balance == Balance(DOLLAR, 0)
    assert not (await store.credits.grant(world.user, DOLLAR, reason="Card", key="payment-2")).replayed
    assert not (await store.credits.grant(other.user, DOLLAR, reason="Card", key="payment-1")).replayed
    assert (await recount(store, world.user)).amounts == (DOLLAR, DOLLAR)
    assert (await recount(store, other.user)).amounts == (DOLLAR,)
    assert (await world.events()).count("credit_added") == 2


@pytest.mark.parametrize(
    ("amount", "reason"), [pytest.param(2, "Card", id="another amount"), pytest.param(1, "Cash", id="another reason")]
)
async def test_a_key_is_bound_to_one_top_up(store: Store, amount: int, reason: str) -> None:
    world = await a_world(store)
    await store.credits.grant(world.user, 1, reason="Card", key="payment-1")
    refused = await refusal_of(store.credits.grant(world.user, amount, reason=reason, key="payment-1"))
    assert refused == "idempotency_mismatch"
    assert (await recount(store, world.user)).amounts == (1,)


async def test_a_refused_top_up_may_be_retried_with_its_key(store: Store) -> None:
    world = await a_world(store)
    assert await refusal_of(store.credits.grant(world.user, -1, key="k")) == "insufficient_credits"
    await store.credits.grant(world.user, 1)
    assert not (await store.credits.grant(world.user, -1, key="k")).replayed
    assert (await recount(store, world.user)).amounts == (1, -1)


async def test_a_key_of_a_top_up_counts_for_90_days(memory_store: Store, clock: FakeClock) -> None:
    store, world = memory_store, await a_world(memory_store)
    await store.credits.grant(world.user, 1, key="k")
    clock.advance(CREDIT_KEY / 1000 - 5)
    assert (await store.credits.grant(world.user, 1, key="k")).replayed
    clock.advance(10)
    assert not (await store.credits.grant(world.user, 1, key="k")).replayed
    assert CREDIT_KEY == 90 * DAY


@pytest.mark.parametrize(
    ("amount", "reason", "key"),
    [
        pytest.param(0, "", "k", id="nothing"),
        pytest.param(MAX_AMOUNT + 1, "", "k", id="too much at once"),
        pytest.param(-MAX_AMOUNT - 1, "", "k", id="too much taken at once"),
        pytest.param(1, "x" * 201, "k", id="a long reason"),
        pytest.param(1, "two\nlines", "k", id="a reason of two lines"),
        pytest.param(1, "\ud800", "k", id="a reason that is no text"),
        pytest.param(1, "", "", id="an empty key"),
        pytest.param(1, "", "k" * 256, id="a long key"),
        pytest.param(1, "", "a\0b", id="a key with a NUL"),
    ],
)
async def test_an_invalid_top_up_is_refused(store: Store, amount: int, reason: str, key: str) -> None:
    world = await a_world(store)
    assert await refusal_of(store.credits.grant(world.user, amount, reason=reason, key=key)) == "invalid_request"
    assert (await recount(store, world.user)).amounts == ()


async def test_the_balance_has_a_maximum(store: Store) -> None:
    world = await a_world(store)
    for _ in range(MAX_PAID // MAX_AMOUNT):
        await store.credits.grant(world.user, MAX_AMOUNT)
    assert await refusal_of(store.credits.grant(world.user, 1)) == "invalid_request"
    app = await Spender.make(world)
    assert (await app.balance()).spendable == MAX_PAID
    assert (await app.spend(1)).remaining == MAX_PAID - 1, "to the last micro-dollar"
    assert (await store.credits.grant(world.user, 1)).balance.paid == MAX_PAID
    assert (await recount(store, world.user)).paid == MAX_PAID


async def test_what_is_held_cannot_be_taken(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 100)
    hold = await app.hold(60)
    assert await refusal_of(store.credits.grant(world.user, -41)) == "insufficient_credits"
    assert (await store.credits.grant(world.user, -40)).balance == Balance(60, 60)
    assert (await app.settle(hold, 60)).remaining == 0
    assert (await recount(store, world.user)).amounts == (100, -40, -60)


async def test_initial_credits_are_given_once(store: Store) -> None:
    world, other = await a_world(store), await a_world(store)
    assert not (await store.credits.begin(world.user, 70, reason="Welcome")).replayed
    again = await store.credits.begin(world.user, 70, reason="Welcome")
    assert (again.replayed, again.balance) == (True, Balance(70, 0))
    app = await Spender.make(world)
    await app.spend(70)
    assert (await store.credits.begin(world.user, 70, reason="Welcome")).balance == Balance(0, 0)
    await store.credits.grant(other.user, 5)
    assert (await store.credits.begin(other.user, 70, reason="Welcome")).balance == Balance(5, 0)
    assert (await recount(store, world.user)).amounts == (70, -70)
    assert (await recount(store, other.user)).amounts == (5,)


async def test_credits_of_an_unknown_person_are_an_error(store: Store) -> None:
    world = await a_world(store)
    await store.operator.delete(world.email)
    before = await every_key(store.client)
    assert await refusal_of(store.credits.grant(world.user, 1)) == "not_found"
    assert await refusal_of(store.credits.begin(world.user, 1, reason="Welcome")) == "not_found"
    assert await refusal_of(store.credits.show(world.user)) == "not_found"
    after = await every_key(store.client)
    assert set(after) == set(before)


async def test_a_disabled_person_can_be_given_credits(store: Store) -> None:
    world = await a_world(store)
    await store.operator.set_status(world.email, "disabled")
    assert (await store.credits.grant(world.user, 5)).balance == Balance(5, 0)


@pytest.mark.trap(32)
async def test_a_top_up_with_a_lost_answer_is_booked_once(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        armed.arm("grant_credit")
        assert (await world.store.credits.grant(world.user, 7)).balance == Balance(7, 0)
        armed.arm("grant_credit")
        assert (await world.store.credits.begin(world.user, 7, reason="Welcome")).balance == Balance(7, 0)
        armed.arm("grant_credit", times=2)
        with pytest.raises(StoreUnavailable):
            await world.store.credits.grant(world.user, 5, key="k")
        assert (await world.store.credits.grant(world.user, 5, key="k")).replayed
        assert (await recount(world.store, world.user)).amounts == (7, 5)


@pytest.mark.spec("2.4.credits-spend")
async def test_a_charge_has_its_details(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 1000)
    hold = await app.hold(30, 500)
    await app.settle(hold, 25, 100)
    entry = (await store.credits.show(world.user)).entries[0]
    assert (entry.kind, entry.amount, entry.paid, entry.reason) == ("charge", -125, 875, "")
    assert (entry.client, entry.model, entry.hold) == (world.app.client_id, "echo", hold.hold_id)
    assert (entry.input_tokens, entry.output_tokens, entry.price_version) == (25, 100, "2026-01")


async def test_a_person_sees_their_own_credits(store: Store) -> None:
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, 1000)
    await app.spend(1)
    hold = await app.hold(9)
    profile, account = await store.credits.of(world.session)
    assert profile.email == world.email
    assert account == await store.credits.show(world.user)
    assert (account.paid, account.held, account.spendable, account.opening) == (999, 9, 990, 0)
    (held,) = account.holds
    assert (held.client, held.amount) == (world.app.client_id, 9)
    assert timedelta(minutes=9) < held.ends_at - datetime.now(UTC) <= timedelta(minutes=10)
    assert account.opening_at is None
    await app.store.calls.release(hold)
    assert (await store.credits.show(world.user)).holds == ()


async def pages(store: Store, user: str, most: int) -> list[Account]:
    """The ledger, page by page."""
    found = [await store.credits.show(user, most=most)]
    while found[-1].entries:
        found.append(await store.credits.show(user, before=found[-1].entries[-1].entry_id, most=most))
    return found


async def test_ledger_pages_neither_skip_nor_repeat(store: Store) -> None:
    world = await a_world(store)
    for amount in range(1, 8):
        await store.credits.grant(world.user, amount)
    for most in (1, 3, 7, 100):
        found = await pages(store, world.user, most)
        assert [entry.amount for page in found for entry in page.entries] == [7, 6, 5, 4, 3, 2, 1]
        assert all(len(page.entries) <= most and page.paid == 28 for page in found)
    newest = (await store.credits.show(world.user)).entries[0]
    _, after = await store.credits.of(world.session, before=newest.entry_id, most=2)
    assert [entry.amount for entry in after.entries] == [6, 5]


@pytest.mark.parametrize(
    "before", ["x", "-", "+", "(1-1", "1-1 COUNT", "1--1", "9" * 40, "1-" + "9" * 40, "1-1\n", "½-1"]
)
async def test_an_invalid_ledger_cursor_is_refused(store: Store, before: str) -> None:
    world = await a_world(store)
    await store.credits.grant(world.user, 1)
    assert await refusal_of(store.credits.show(world.user, before=before)) == "invalid_request"
    assert await refusal_of(store.credits.of(world.session, before=before)) == "invalid_request"


@pytest.mark.trap(31)
async def test_entries_beyond_the_newest_are_folded(store: Store) -> None:
    world = await a_world(store)
    short = booked(store, entries=5)
    app = await Spender.make(world)
    app.store = short
    await short.credits.grant(world.user, 1000)
    for amount in range(1, 8):
        await app.spend(amount)
    counted = await recount(store, world.user)
    assert (counted.opening, counted.amounts) == (1000 - 1 - 2, (-3, -4, -5, -6, -7))
    shown = await store.credits.show(world.user)
    assert shown.opening_at is not None
    assert shown.opening_at <= shown.entries[-1].at
    await short.credits.grant(world.user, 1, key="k")
    counted = await recount(store, world.user)
    assert (counted.opening, counted.amounts) == (1000 - 1 - 2 - 3, (-4, -5, -6, -7, 1))
    assert (await short.credits.grant(world.user, 1, key="k")).replayed


@pytest.mark.trap(31)
async def test_a_long_ledger_is_folded_a_hundred_entries_at_a_time(store: Store) -> None:
    world = await a_world(store)
    for amount in range(1, 251):
        await store.credits.grant(world.user, amount)
    short, left = booked(store, entries=10), []
    for _ in range(4):
        await short.credits.grant(world.user, 1)
        left.append(len((await recount(store, world.user)).amounts))
    assert left == [151, 52, 10, 10]
    assert (await recount(store, world.user)).paid == 250 * 251 // 2 + 4


@pytest.mark.trap(31)
async def test_entries_older_than_the_retention_are_folded(memory_store: Store, clock: FakeClock) -> None:
    world = await a_world(memory_store)
    store = booked(memory_store, retention=10 * DAY)
    began = datetime.now(UTC)
    await store.credits.grant(world.user, 100)
    clock.advance(4 * 86400)
    await store.credits.grant(world.user, 20)
    clock.advance(5 * 86400)
    await store.credits.grant(world.user, 3)
    assert (await recount(store, world.user)).amounts == (100, 20, 3)
    clock.advance(2 * 86400)
    app = await Spender.make(world)
    app.store = store
    await app.spend(50)
    counted = await recount(store, world.user)
    assert (counted.opening, counted.amounts) == (100, (20, 3, -50))
    shown = await store.credits.show(world.user)
    assert shown.opening_at is not None
    assert abs(shown.opening_at - began) < timedelta(minutes=1)
    clock.advance(11 * 86400)
    await store.credits.grant(world.user, 1)
    counted = await recount(store, world.user)
    assert (counted.opening, counted.amounts) == (73, (1,))


@pytest.mark.trap(31)
async def test_a_ledger_without_entries_still_adds_up(store: Store) -> None:
    world = await a_world(store)
    bare = booked(store, entries=0)
    await bare.credits.grant(world.user, 9)
    await bare.credits.grant(world.user, -2)
    assert (await recount(store, world.user)).opening == 7


async def test_an_app_lists_the_other_apps_that_are_connected(store: Store) -> None:
    world, other = await a_world(store), await a_world(store)
    app = await Spender.make(world)
    second = await Spender.make(world, other.app, ("profile",))
    connected, window = await store.grants.connected(app.caller, "apps:read")
    assert [(row.client, row.scopes, row.last_used_at) for row in connected] == [
        (other.app.client_id, ("profile",), None)
    ]
    assert (window.limit, window.remaining) == (300, 299)
    await store.identity.read(second.caller, "profile")
    connected, _ = await store.grants.connected(app.caller, "apps:read")
    used = connected[0].last_used_at
    assert used is not None
    assert abs(datetime.now(UTC) - used) < timedelta(minutes=1)
    with pytest.raises(Refused, match="insufficient_scope"):
        await store.grants.connected(second.caller, "apps:read")
    await store.grants.revoke(world.session, other.app.client_id, VISITOR)
    assert (await store.grants.connected(app.caller, "apps:read"))[0] == []
