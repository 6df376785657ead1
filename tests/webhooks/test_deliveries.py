"""Deliveries: stored once, claimed by one, retried when due, and listed and resendable for 30 days."""

from __future__ import annotations

import asyncio
import hashlib
import re

import pytest

from settings.declared import Settings
from store import keys
from store.crypto.keyring import Keys
from store.crypto.seal import new_id
from store.keys import DELIVERIES_DUE, deliveries
from store.lifetimes import DAY
from store.webhooks.deliveries import LARGEST, MOST, SHOWN, Delivery, WebhookEvent, event_id_of, new_event_id
from store.wiring import Store
from testkit.clock import LATEST
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.lost_answers import losing

pytestmark = pytest.mark.gen_test(timeout=60)

APP = "an-app"


def event(client: str = APP) -> WebhookEvent:
    return WebhookEvent(
        new_event_id(), "grant.revoked", client, "a" * 32, 1_700_000_000_000, {"reason": "disconnected_by_person"}
    )


async def kept(store: Store, number: int = 1, client: str = APP) -> list[str]:
    """The ids of waiting deliveries, oldest first."""
    events = [event(client) for _ in range(number)]
    for one in events:
        assert await store.deliveries.enqueue(one)
    return [one.id for one in events]


async def claim(store: Store, most: int = 10) -> dict[str, Delivery]:
    return {one.id: one for one in await store.deliveries.claim(most, 30)}


def row_of(delivery_id: str) -> str:
    """Its key."""
    return keys.delivery(delivery_id)["delivery"]


async def state(store: Store, delivery_id: str) -> tuple[str, int, int]:
    found = await store.deliveries.read(APP, delivery_id)
    assert found is not None
    return found.state, found.attempts, found.tries


async def test_an_event_is_kept_once(store: Store) -> None:
    one = event()
    assert await store.deliveries.enqueue(one)
    await claim(store)
    assert not await store.deliveries.enqueue(one)
    assert await claim(store) == {}
    (found,) = await store.deliveries.list(APP)
    assert (found.id, found.type, found.client_id, found.sub) == (one.id, one.type, one.client_id, one.sub)
    assert (found.occurred_at, found.details) == (one.occurred_at, one.details)


async def test_a_delivery_is_claimed_by_one_process(store: Store) -> None:
    ids = await kept(store, 40)
    found = await asyncio.gather(*(store.deliveries.claim(3, 30) for _ in range(20)))
    claimed = [one.id for some in found for one in some]
    assert sorted(claimed) == sorted(ids)
    assert {one.attempts for some in found for one in some} == {1}


@pytest.mark.parametrize(
    ("command", "field", "value"),
    [
        pytest.param("HDEL", "details", (), id="a field is missing"),
        pytest.param("HDEL", "client", (), id="nobody knows whose it is"),
        pytest.param("HSET", "details", ("[",), id="no JSON"),
        pytest.param("HSET", "details", ("[]",), id="other JSON"),
        pytest.param("HSET", "details", ("[" * 100_000,), id="JSON without an end"),
        pytest.param("HSET", "sub", (b"\xff",), id="no text"),
        pytest.param("HSET", "occurred_at", ("yesterday",), id="no number"),
        pytest.param("HSET", "created_at", (str(LARGEST + 1),), id="a number that is no time"),
        pytest.param("HSET", "attempts", ("-7",), id="a number that counts nothing"),
    ],
)
async def test_an_unreadable_delivery_delays_no_other(
    store: Store, command: str, field: str, value: tuple[str], caplog: pytest.LogCaptureFixture
) -> None:
    first, bad, last = await kept(store, 3)
    row = row_of(bad)
    await store.client.execute_command(command, row, field, *value)
    assert (await claim(store)).keys() == {first, last}
    assert f"the delivery {bad} cannot be read" in caplog.text
    # It is never due again, and stays to be looked at and put right.
    assert await store.client.hget(row, "state") == b"failed"
    assert await store.client.zscore(keys.DELIVERIES_DUE, bad) is None
    assert [one.id for one in await store.deliveries.list(APP)] == [last, first]
    assert [one.id for one in await store.deliveries.list(APP, most=2)] == [last, first], "a page has as many as ever"
    assert await store.deliveries.read(APP, bad) is None


async def test_an_invalid_counter_is_reset(store: Store) -> None:
    ids = await kept(store, 3)
    await store.client.hset(row_of(ids[0]), mapping={"attempts": "many", "tries": "9" * 30})
    await store.client.hdel(row_of(ids[1]), "tries")
    found = await claim(store)
    assert {(one.attempts, one.tries) for one in found.values()} == {(1, 1)}
    assert found.keys() == set(ids)
    assert await store.deliveries.settle(ids[0], 1, delivered=True, status=204)


async def test_foreign_data_in_place_of_a_delivery_delays_no_other(store: Store) -> None:
    first, bad, last = await kept(store, 3)
    await store.client.set(row_of(bad), "nonsense")
    assert (await claim(store)).keys() == {first, last}
    assert await store.client.zscore(keys.DELIVERIES_DUE, bad) is None
    assert [one.id for one in await store.deliveries.list(APP, most=2)] == [last, first]
    assert await store.deliveries.read(APP, bad) is None
    assert not await store.deliveries.replay(APP, bad)
    for _ in range(SHOWN):
        await kept(store)
    assert not await store.client.exists(row_of(bad)), "it goes with those that are too many"


async def test_an_event_replaces_foreign_data_in_its_place(store: Store) -> None:
    one = event()
    await store.client.set(row_of(one.id), "nonsense")
    assert await store.deliveries.enqueue(one)
    assert not await store.deliveries.enqueue(one)
    assert (await claim(store)).keys() == {one.id}


async def test_an_unreadable_delivery_is_given_up_after_a_store_outage(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        first, bad, last = await kept(world.store, 3)
        row = row_of(bad)
        await world.store.client.hdel(row, "details")
        armed.arm("settle_delivery")
        armed.lose_request = True
        assert {one.id for one in await world.store.deliveries.claim(10, 0)} == {first, last}
        assert await world.store.client.hget(row, "state") == b"pending"
        assert (await claim(world.store)).keys() == {first, last}
        assert await world.store.client.hget(row, "state") == b"failed"


async def test_a_delivered_event_is_done(store: Store) -> None:
    (one,) = await kept(store)
    await claim(store)
    assert await store.deliveries.settle(one, 1, delivered=True, status=204)
    found = await store.deliveries.read(APP, one)
    assert found is not None
    assert (found.state, found.last_status, found.last_error, found.next_attempt_at) == ("delivered", 204, "", None)
    assert found.last_attempt_at is not None
    assert await store.deliveries.next_due() is None
    assert not await store.deliveries.settle(one, 1, delivered=False, retry_in=1)
    assert await state(store, one) == ("delivered", 1, 1)


async def test_a_failed_delivery_is_retried_when_due(clock: FakeClock, memory_store: Store) -> None:
    (one,) = await kept(memory_store)
    for attempt in (1, 2, 3):
        assert (await claim(memory_store))[one].attempts == attempt
        assert await memory_store.deliveries.settle(one, attempt, delivered=False, error="x" * 999, retry_in=60)
        assert await claim(memory_store) == {}
        wait = await memory_store.deliveries.next_due()
        assert wait is not None
        assert 59_000 < wait <= 60_000
        clock.advance(61)
    found = await memory_store.deliveries.read(APP, one)
    assert found is not None
    assert (found.last_status, found.last_error, found.tries) == (None, "x" * 200, 3)
    assert await memory_store.deliveries.next_due() == 0
    await claim(memory_store)
    assert await memory_store.deliveries.settle(one, 4, delivered=False, status=500, error="gave up")
    assert await state(memory_store, one) == ("failed", 4, 4)
    assert await memory_store.deliveries.next_due() is None


async def test_a_dead_processs_delivery_is_claimed_by_another(clock: FakeClock, memory_store: Store) -> None:
    (one,) = await kept(memory_store)
    await claim(memory_store)
    clock.advance(29)
    assert await claim(memory_store) == {}
    clock.advance(2)
    assert (await claim(memory_store))[one].attempts == 2
    # The first worker was slow, not dead: it can't settle the second's attempt, but its delivery counts.
    assert not await memory_store.deliveries.settle(one, 1, delivered=False, error="too late", retry_in=1)
    assert await state(memory_store, one) == ("pending", 2, 2)
    assert await claim(memory_store) == {}
    assert await memory_store.deliveries.settle(one, 1, delivered=True, status=200)
    assert await state(memory_store, one) == ("delivered", 2, 2)
    assert not await memory_store.deliveries.settle(one, 2, delivered=False, status=500)
    assert await state(memory_store, one) == ("delivered", 2, 2)


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "failed"])
async def test_a_delivery_can_be_resent_by_hand(store: Store, delivered: bool) -> None:
    (one,) = await kept(store)
    await claim(store)
    await store.deliveries.settle(one, 1, delivered=delivered, status=200 if delivered else 500)
    assert not await store.deliveries.replay("another-app", one)
    assert not await store.deliveries.replay(APP, new_id())
    assert await store.deliveries.replay(APP, one)
    assert await state(store, one) == ("pending", 1, 0)
    assert await store.deliveries.next_due() == 0
    found = (await claim(store))[one]
    assert (found.attempts, found.tries, found.next_attempt_at) == (2, 1, None)
    assert not await store.deliveries.replay(APP, one), "it is under way"
    assert await store.deliveries.settle(one, 2, delivered=False, retry_in=3600)
    assert await store.deliveries.replay(APP, one), "and need not wait an hour"
    assert (await claim(store))[one].attempts == 3


async def test_an_earlier_attempt_does_not_end_a_resent_delivery(store: Store) -> None:
    (one,) = await kept(store)
    await claim(store)
    assert await store.deliveries.settle(one, 1, delivered=False, retry_in=3600)
    assert await store.deliveries.replay(APP, one)
    assert not await store.deliveries.settle(one, 1, delivered=False)
    assert await state(store, one) == ("pending", 1, 0)


async def test_an_app_lists_its_own_deliveries_newest_first(store: Store) -> None:
    ids = await kept(store, 7)
    await kept(store, 2, "another-app")
    seen: list[str] = []
    while page := await store.deliveries.list(APP, seen[-1] if seen else None, 3):
        assert len(page) <= 3
        seen += [one.id for one in page]
    assert seen == ids[::-1]
    assert await store.deliveries.list(APP, new_id()) == []
    assert await store.deliveries.read("another-app", ids[0]) is None
    assert await store.deliveries.read(APP, new_id()) is None


async def test_an_app_keeps_200_deliveries_and_all_waiting_ones(store: Store) -> None:
    first = await kept(store, 3)
    found = await claim(store)
    for one in first[:2]:
        await store.deliveries.settle(one, found[one].attempts, delivered=True, status=200)
    await kept(store, 199)
    left = {one.id for one in await store.deliveries.list(APP, most=1000)}
    assert len(left) == 200
    assert left & set(first) == {first[2]}, "the delivered ones went"
    await kept(store, 10)
    assert len(await store.deliveries.list(APP, most=1000)) == 210, "none that waits goes"


async def test_waiting_deliveries_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.webhooks.deliveries.SHOWN", 3)
    monkeypatch.setattr("store.webhooks.deliveries.MOST", 6)
    ids = await kept(store, 9)
    assert [one.id for one in await store.deliveries.list(APP)] == ids[:2:-1]
    assert (await claim(store, 100)).keys() == set(ids[3:])


async def test_an_owners_waiting_deliveries_take_little_memory(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, _):
        [one] = await kept(world.store)
        await kept(world.store, 99)
        sizes: list[float] = [await world.store.client.memory_usage(row_of(one)) or 0]
        sizes += [
            (await world.store.client.memory_usage(key) or 0) / 100
            for key in (DELIVERIES_DUE, deliveries(APP)["listed"])
        ]
        assert MOST * Settings().apps_per_person * sum(sizes) < 16 * 2**20, sizes


async def test_deliveries_expire_after_30_days(clock: FakeClock, memory_store: Store) -> None:
    await kept(memory_store, 3)
    clock.advance(30 * DAY / 1000 + 1)
    assert await memory_store.deliveries.list(APP) == []
    assert await claim(memory_store) == {}
    assert [key async for key in memory_store.client.scan_iter("*webhooks*")] == []


async def test_old_deliveries_leave_the_list_when_one_is_added(clock: FakeClock, memory_store: Store) -> None:
    (old,) = await kept(memory_store)
    clock.advance(20 * 86400)
    (young,) = await kept(memory_store)
    clock.advance(11 * 86400)
    assert [one.id for one in await memory_store.deliveries.list(APP)] == [young]
    (new,) = await kept(memory_store)
    assert await memory_store.client.zrange(keys.deliveries(APP)["listed"], 0, -1) == [young.encode(), new.encode()]
    assert (await claim(memory_store)).keys() == {young, new}
    assert old not in {young, new}


async def test_only_the_deleted_apps_deliveries_are_removed(store: Store) -> None:
    await kept(store, 250)
    (other,) = await kept(store, 1, "another-app")
    await store.deliveries.forget(APP)
    assert await store.deliveries.list(APP) == []
    assert (await claim(store, 300)).keys() == {other}
    left = {key async for key in store.client.scan_iter("*webhooks*")}
    theirs = keys.deliveries("another-app")["listed"], keys.DELIVERIES_NEWEST
    assert left == {name.encode() for name in (*keys.delivery(other).values(), *theirs)}


def test_no_id_looks_like_an_option() -> None:
    ids = {event_id_of(hashlib.sha256(str(number).encode()).digest()[:16]) for number in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_]{22}", one) for one in ids)


def test_every_time_travel_target_is_readable() -> None:
    assert LATEST * 1000 < LARGEST
