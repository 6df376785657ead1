"""The logs of the security log: what they may take, how they are read over days, and what a killed process leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import keys
from store.accounts.audit import recorded, security_reading
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.trail import TrailBounds
from store.engine.script_source import MOST_NOTES
from store.lifetimes import DAY
from store.security_events import EVENTS
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.admin.stored_trail import logged, logs
from tests.support.processes.engines import FakeClock
from tests.support.store.world import VISITOR, World

PERSON = "0123456789abcdef0123456789abcdef"


async def shown(store: Store) -> list[str]:
    return [one.event for one in await store.security_events.newest(None)]


async def fill(store: Store, clock: FakeClock, days: int, each: int = 3) -> list[str]:
    """Events of some days, the last of them the present one. Returns their details, oldest first."""
    details = []
    for day in range(days):
        for number in range(each):
            details.append(f"{day}-{number}")
            store.security.note("sign_in_refused", person=f"{number:032x}", detail=details[-1])
        await store.security.flush()
        if day < days - 1:
            clock.advance(DAY / 1000)
    return details


# What the logs may take


@pytest.mark.gen_test
async def test_the_oldest_day_makes_room_first_and_it_is_reported(clock: FakeClock, memory_store: Store) -> None:
    cuts: list[tuple[str, int]] = []
    log = memory_store.security
    log.trail.watch = lambda what, count: cuts.append((what, count))
    log.trail.bounds = TrailBounds(bytes=200_000)  # 10,000 for strangers in each shard
    log.note("command_failed", detail="stays")
    for day in range(6):
        for _ in range(8):
            log.note("sign_in_refused", person=PERSON, detail=f"{day}" * 200)
        await log.flush()
        clock.advance(DAY / 1000)
    found = await memory_store.security_events.newest(None)
    kept = [one.detail[0] for one in found if one.event == "sign_in_refused"]
    assert kept == sorted(kept)
    assert set(kept) == {"4", "5"}
    assert [one.detail for one in found if one.event == "command_failed"] == ["stays"]
    assert cuts == [("days", 1)] * 4


@pytest.mark.gen_test
async def test_a_flood_of_one_day_cuts_its_own_beginning_and_never_fails(memory_store: Store) -> None:
    cuts: dict[str, int] = {}
    log = memory_store.security
    log.trail.watch = lambda what, count: cuts.update({what: cuts.get(what, 0) + count})
    log.trail.bounds = TrailBounds(bytes=2**20)
    for number in range(1000):
        log.note("sign_in_refused", person=PERSON, detail=f"{number:0200}")
    await log.flush()
    kept = [int(one.detail) for one in await memory_store.security_events.newest(None)]
    assert kept == list(range(1000 - len(kept), 1000))
    assert 50 < len(kept) < 200
    assert cuts == {"events": 1000 - len(kept)}
    sizes = await memory_store.client.hgetall(keys.trail(await shard_of(memory_store))["sizes"])
    assert 0 < int(sizes[b"strangers"]) <= TrailBounds(bytes=2**20).of_shard()["strangers"]


async def shard_of(store: Store) -> int:
    """The shard of the first log."""
    return int((await logs(store.client))[0].split(b":")[1][:1])


@pytest.mark.gen_test
async def test_days_end_by_the_setting_even_in_a_quiet_stream(clock: FakeClock, memory_store: Store) -> None:
    log = memory_store.security
    log.trail.bounds = TrailBounds(days=2)
    log.note("key_made_by_operator")
    await fill(memory_store, clock, 6, 1)
    found = await memory_store.security_events.newest(None)
    assert [one.detail for one in found] == ["3-0", "4-0", "5-0"]
    clock.advance(3 * DAY / 1000)
    assert await logged(memory_store.client) == []
    assert await shown(memory_store) == []


@pytest.mark.gen_test
async def test_the_bytes_of_events_are_about_those_of_the_store(two_stores: tuple[Store, Store]) -> None:
    store, _ = two_stores
    for number in range(3000):
        store.security.note("sign_in_refused", person=PERSON, address="192.0.2.1", detail=f"password {number}")
        if number % 1000 == 999:
            await store.security.flush()
    (log,) = await logs(store.client)
    taken = await store.client.memory_usage(log, samples=0) or 0
    sizes = await store.client.hgetall(keys.trail(await shard_of(store))["sizes"])
    assert 0.7 < taken / int(sizes[b"strangers"]) < 1.3


# Reading


@pytest.mark.gen_test
async def test_pages_lead_through_all_days_once(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_reading, "PAGE", 4)
    monkeypatch.setattr(security_reading, "VISITS", 3)
    details = await fill(memory_store, clock, 12, 5)
    clock.advance(20 * DAY / 1000)
    details += await fill(memory_store, clock, 2, 7)
    found, position, pages = list[AuditEvent](), "+", 0
    while position:
        some, position = await memory_store.security_events.page(6, until=position)
        found, pages = found + some, pages + 1
    assert [one.detail for one in found] == details[::-1]
    assert pages >= len(details) // 6
    pieces = [one.detail async for piece in memory_store.security_events.pieces() for one in piece]
    assert pieces == details
    middle = found[30].at_ms
    part = [one async for piece in memory_store.security_events.pieces(middle - 2 * DAY, middle) for one in piece]
    assert [one.id for one in part] == [one.id for one in reversed(found) if middle - 2 * DAY <= one.at_ms < middle]
    assert part


@pytest.mark.gen_test
async def test_a_filter_that_matches_nothing_reads_a_bounded_part(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_reading, "PAGE", 5)
    monkeypatch.setattr(security_reading, "MOST_READS", 3)
    monkeypatch.setattr(security_reading, "VISITS", 4)
    await fill(memory_store, clock, 40)
    before = {script: count for script, word, count in memory_store.answers() if word == "ok"}
    found, position = await memory_store.security_events.page(50, wanted=lambda one: False)
    after = {script: count for script, word, count in memory_store.answers() if word == "ok"}
    assert (found, position != "") == ([], True)
    assert after["read_trail"] - before.get("read_trail", 0) == 3 * keys.TRAIL_SHARDS


@pytest.mark.gen_test
async def test_a_follower_passes_days_whose_logs_have_ended(clock: FakeClock, memory_store: Store) -> None:
    await fill(memory_store, clock, 3)
    for log in await logs(memory_store.client):
        await memory_store.client.delete(log)
    memory_store.security.note("signed_out", person=PERSON)
    await memory_store.security.flush()
    position: tuple[str, ...] = ("0-0",) * security_reading.SOURCES
    found, more = list[AuditEvent](), True
    for _ in range(9):
        some, position, more = await memory_store.security_events.after(position)
        found += some
    assert ([one.event for one in found], more) == (["signed_out"], False)


# Figures by day


@pytest.mark.gen_test
async def test_figures_count_sign_ins_refusals_sign_ups_and_people_by_day(
    clock: FakeClock, memory_store: Store
) -> None:
    log = memory_store.security
    for day in (1, 2):
        for number in range(30):
            log.note("signed_in", person=f"{number % (10 * day):032x}")
        log.note("signed_up", person=PERSON)
        for name in ("sign_in_refused", "second_step_refused", "passkey_refused"):
            log.note(name, person="f" * 32)
        log.note("suspended_by_operator", person="e" * 32)
        log.settle()
        await log.flush()
        clock.advance(DAY / 1000)
    days = await memory_store.activity_figures.days(4)
    assert [(one.sign_ins, one.refusals, one.sign_ups, one.active) for one in days] == [
        (0, 0, 0, 0),
        (30, 3, 1, 11),
        (30, 3, 1, 21),
        (0, 0, 0, 0),
    ]
    assert (days[2].on - days[1].on).days == 1


# What a killed process leaves


@pytest.fixture
def two_stores(request: pytest.FixtureRequest, open_store: OpenStore) -> tuple[Store, Store]:
    """Two simulated processes on one store."""
    url = emptied(request, "valkey")
    return open_store(url), open_store(url)


async def notes(store: Store, user: str) -> dict[Any, Any]:
    """The notes in the shard of a person."""
    return await store.client.hgetall(keys.recorded(user[:3]))


@pytest.mark.gen_test
async def test_an_act_of_a_killed_process_is_in_the_log_once(
    two_stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, other = two_stores
    monkeypatch.setattr(recorded, "DEAD_MS", 0)
    world = await World.make(killed)
    await killed.sessions.end(world.session, VISITOR)
    before = [one.event.event for one in killed.security._queue]
    assert {"signed_up", "signed_in", "signed_out"} <= set(before)
    assert await shown(other) == []
    # While its process lives, a note waits for it.
    await other.client.set(keys.TRAIL_WRITER + killed.security.writer, "1")
    assert await other.recorded_events.sweep() == 0
    await other.client.delete(keys.TRAIL_WRITER + killed.security.writer)
    assert await other.recorded_events.sweep() > 0
    assert sorted(await shown(other)) == sorted(before)
    assert await notes(other, world.user) == {}
    assert await other.recorded_events.sweep() == 0
    # It was not dead, only slow.
    await killed.security.flush()
    assert sorted(await shown(other)) == sorted(before)
    (event,) = [one for one in await other.security_events.newest(None) if one.event == "signed_out"]
    assert (event.person, event.address, event.actor) == (world.user, VISITOR.address, "person")


@pytest.mark.gen_test
async def test_a_deleted_account_and_an_act_of_the_operator_are_noted_too(
    two_stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, other = two_stores
    monkeypatch.setattr(recorded, "DEAD_MS", 0)
    world = await World.make(killed)
    asked = killed.security.asked_by()._replace(actor="operator", request_id="r1", by="key one Ops")
    killed.security.asked_by = lambda: asked
    await killed.operator.note(world.user, "link_sent_by_operator")
    await killed.operator.credit(world.user, 250_000)
    await killed.people.delete(world.user)
    await other.recorded_events.sweep()
    found = {one.event: one for one in await other.security_events.newest(None)}
    acts = [found[name] for name in ("link_sent_by_operator", "credit_added", "account_deleted")]
    assert [one.detail for one in acts] == ["", "0.250000 USD", ""]
    assert {(one.stream, one.request_id, one.by, one.person) for one in acts} == {
        ("operator", "r1", "key one Ops", world.user)
    }


@pytest.mark.gen_test
async def test_amounts_are_in_the_events_that_are_logged_one_by_one(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(60):
        memory_store.security.note("credit_added", person=PERSON, detail=f"{number}.50 USD")
        memory_store.security.note("credit_taken", person=PERSON, detail="-1.00 USD")
    memory_store.security.settle()
    found = {name: [(one.detail, one.count) for one in events if one.event == name] for name in EVENTS}
    assert found["credit_added"] == [("0.50 USD", 1), ("1.50 USD", 1), ("2.50 USD", 1), ("", 57)]
    assert found["credit_taken"] == [("-1.00 USD", 1)] * 3 + [("-1.00 USD", 57)]


@pytest.mark.gen_test
async def test_notes_go_with_their_events_and_are_bounded(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await memory_store.security.flush()
    assert await notes(memory_store, world.user) == {}
    await memory_store.profiles.rename(world.session, "Ada", VISITOR)  # in the activity alone
    assert len(await notes(memory_store, world.user)) == 1
    await memory_store.security.flush()
    assert await notes(memory_store, world.user) == {}
    for _ in range(60):
        await memory_store.sessions.note(world.session, "account_downloaded", VISITOR)
    await memory_store.security.flush()
    # Single events are in the log; the count of the others keeps some notes until it is there.
    assert len(await notes(memory_store, world.user)) == 20
    memory_store.security.settle()
    await memory_store.security.flush()
    assert await notes(memory_store, world.user) == {}
    for number in range(MOST_NOTES):
        await memory_store.client.hset(keys.recorded(world.user[:3]), f"{number:09x}:1", "damage")
    await memory_store.sessions.note(world.session, "account_downloaded", VISITOR)
    assert len(await notes(memory_store, world.user)) == MOST_NOTES
    assert await memory_store.recorded_events.sweep() == 0  # damage goes
    assert await notes(memory_store, world.user) == {}


@pytest.mark.gen_test
async def test_a_note_has_what_a_recovered_event_needs(memory_store: Store) -> None:
    world = await World.make(memory_store)
    packed = [json.loads(one) for one in (await notes(memory_store, world.user)).values()]
    assert {one[2] for one in packed} >= {"signed_up", "signed_in"}
    assert {parts[6].count("\t") for parts in packed} == {3}
    assert all(parts[1] == keys.audit(world.user) for parts in packed)
