"""The streams of the security log: which events displace others, and which repetitions are counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

from handlers.core.client_address import window_address
from store import keys
from store.accounts.audit import classes, security_log, trail
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_log import Origin
from store.engine.script_source import own_scripts
from store.events.declared_event import EventStream
from store.fsck.reading import tag_of
from store.security_events import EVENTS
from store.wiring import Store

PERSON = "0123456789abcdef0123456789abcdef"
ONE_OF_EACH = ("sign_in_refused", "signed_up", "passkey_copied", "command_failed")
"""An event of each stream that is not aggregated, or only with equal details; the most minor first."""
DETAILS = {"confirmed": ["password", "passkey"], "confirmation_refused": ["password", "code"]}
"""Events of a person with few details, each of which is a separate cause; a refused second step has one."""


async def names(store: Store) -> list[str]:
    return [one.event for one in await store.security_events.newest(None)]


def test_lua_and_python_use_the_same_streams() -> None:
    streams = set(keys.OLD_TRAIL)
    assert {one.stream for one in EVENTS.values()} == streams == set(trail.SHARES) == set(security_log.QUEUED)
    assert sum(trail.SHARES.values()) == 100
    for script in ("append_trail", "read_trail", "read_events"):
        assert own_scripts()[script].keys[:4] == tuple(keys.OLD_TRAIL) == trail.STREAMS
    assert len({tag_of(key) for key in keys.OLD_TRAIL.values()}) == 1
    for shard in range(keys.TRAIL_SHARDS):
        assert tuple(keys.trail(shard))[:5] == own_scripts()["append_trail"].keys
        assert len({tag_of(key) for key in keys.trail(shard).values()}) == 1


# Who can push out what


@pytest.mark.gen_test
async def test_a_flood_of_minor_events_displaces_no_major_ones(memory_store: Store) -> None:
    log = memory_store.security
    log.trail.bounds = trail.TrailBounds(bytes=200_000)
    for cheap, dearer in enumerate(ONE_OF_EACH[1:]):
        log.note(dearer, person=PERSON)
        for number in range(1000):
            log.note(ONE_OF_EACH[cheap], person=f"{number:032x}", detail="flood")
        await log.flush()
        assert dearer in await names(memory_store)
    assert set(ONE_OF_EACH) == set(await names(memory_store))


@pytest.mark.gen_test
async def test_a_flood_during_a_store_outage_leaves_room_for_major_events(memory_store: Store) -> None:
    log = memory_store.security
    for number in range(6000):
        log.note("sign_in_refused", person=f"{number:032x}")
    for name in ONE_OF_EACH[1:]:
        log.note(name, person=PERSON)
    await log.flush()
    found = await memory_store.security_events.newest(None)
    assert {*ONE_OF_EACH, "events_lost"} == {one.event for one in found}
    assert [(one.detail, one.count) for one in found if one.event == "events_lost"] == [("strangers", 4000)]


@pytest.mark.gen_test
async def test_events_caused_by_commands_go_to_the_operators_stream(memory_store: Store) -> None:
    memory_store.security.origin = lambda: Origin(actor="operator")
    memory_store.security.note("account_deleted", person=PERSON)
    memory_store.security.note("credit_added", person=PERSON)
    memory_store.security.origin = Origin
    memory_store.security.note("credit_added", person=PERSON)
    memory_store.security.note("operator_key_refused")
    await memory_store.security.flush()
    found = await memory_store.security_events.newest(None)
    assert [one.stream for one in found] == ["operator", "operator", "people", "strangers"]


# Floods cost bounded work


@pytest.mark.gen_test
async def test_refusals_from_many_addresses_make_a_bounded_number_of_events(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(5000):
        address = f"10.1.{number // 250}.{number % 250}"
        memory_store.security.note("limited", detail="signin-address", address=address)
    memory_store.security.settle()
    assert len(events) <= classes.MOST_CAUSES + 2
    assert sum(one.count for one in events) == 5000
    assert (events[-1].address, events[-1].count > 1000) == ("", True)


@pytest.mark.gen_test
async def test_addresses_of_one_network_count_as_one_cause(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(50):
        address = f"2001:db8::{number:x}"
        memory_store.security.origin = partial(Origin, address, network=window_address(address))
        memory_store.security.note("form_refused", detail="signin xsrf")
    memory_store.security.settle()
    assert [one.count for one in events] == [1, 49]


@pytest.mark.gen_test
async def test_sensitive_events_of_one_person_are_bounded(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(40):
        for person in (PERSON, PERSON[::-1]):
            memory_store.security.note("refresh_replayed", person=person, address=f"192.0.2.{number}")
    memory_store.security.settle()
    singles = [one for one in events if one.count == 1]
    assert [one.address for one in singles] == [f"192.0.2.{n}" for n in range(5) for _ in range(2)]
    assert [(one.count, one.person) for one in events[len(singles) :]] == [(35, PERSON), (35, PERSON[::-1])]


@pytest.mark.gen_test
async def test_a_person_with_20_apps_fills_no_stream_in_an_hour(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    total: Counter[str] = Counter()
    streams: Counter[EventStream] = Counter()
    log, now = memory_store.security, 1000.0

    def tell(event: AuditEvent) -> None:
        counts[event.event] += 1
        total[event.event] += event.count
        streams[event.stream] += 1

    log.tell = tell
    monkeypatch.setattr(security_log, "time", SimpleNamespace(monotonic=lambda: now))
    whose = [one for one in EVENTS.values() if one.logged and one.actor != "server"]
    # Each sign-up is by another person, and a network's window bounds sign-ups.
    kinds = [one for one in whose if one.stream in ("people", "sensitive") and one.name != "signed_up"]
    singles = {"people": classes.PEOPLE_SINGLES, "sensitive": classes.SENSITIVE_SINGLES}
    # The first of each cause, and a count of the others; five places or apps, or ten causes of refusals, and the rest.
    causes = {"by_person": 1, "by_place": 6, "by_app": 6, "by_cause": 11}
    most = {one.name: causes[one.counted] * (singles[one.stream] + 1) for one in kinds}
    most |= {one.name: 2 * 11 for one in kinds if one.counted == "by_cause"}
    most |= {name: 2 * most[name] for name in DETAILS}
    assert {"scope_refused", "signed_in", "signed_in_by_recovery", "credit_added"} <= set(most)
    for step in range(360):
        place = step % 13
        log.origin = partial(Origin, f"192.0.2.{place}", f"browser {place % 7}")
        for name in most:
            for app in (step % 20, step * 7 % 20):
                free = f"script_{step % 12}" if EVENTS[name].counted == "by_cause" else f"{step}.50 USD"
                details = DETAILS.get(name, [free if EVENTS[name].detail and name != "second_step_refused" else ""])
                log.note(name, person=PERSON, client=f"app-{app}", detail=details[step % len(details)])
        now += 10
        log._end_windows(now)
    log.settle()
    assert counts == most
    assert total == dict.fromkeys(most, 2 * 360)
    assert streams.keys() == classes.MOST_OF_A_PERSON.keys()
    assert {name: count for name, count in streams.items() if count > classes.MOST_OF_A_PERSON[name]} == {}


@pytest.mark.gen_test
async def test_a_sign_in_from_a_new_place_or_a_replay_of_another_app_is_logged_at_once(memory_store: Store) -> None:
    log = memory_store.security
    for name in ("signed_in", "signed_in_by_passkey", "second_step_asked", "confirmed", "refresh_replayed"):
        for _ in range(100):
            log.note(name, person=PERSON, client="app", address="192.0.2.1", agent="Firefox on Linux")
    events: list[AuditEvent] = []
    log.tell = events.append
    for address, agent in (("198.51.100.7", "Firefox on Linux"), ("192.0.2.1", "curl")):
        log.note("signed_in", person=PERSON, address=address, agent=agent)
    log.note("refresh_replayed", person=PERSON, client="other")
    assert [(one.event, one.address, one.agent, one.client) for one in events] == [
        ("signed_in", "198.51.100.7", "Firefox on Linux", ""),
        ("signed_in", "192.0.2.1", "curl", ""),
        ("refresh_replayed", "", "", "other"),
    ]


@pytest.mark.gen_test
async def test_a_full_table_of_acts_flushes_the_oldest_counts(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    log = memory_store.security
    for _ in range(10):
        log.note("signed_out", person=PERSON)
    log.tell = events.append
    for number in range(classes.MOST_ACTS):
        log.note("signed_out", person=f"{number:032x}")
    assert [(one.person, one.count) for one in events if one.count > 1] == [(PERSON, 7)]
    assert len(log._gathered["people", "by_person"]._windows) == classes.MOST_ACTS
    events.clear()
    for _ in range(10):
        log.note("signed_out", person=PERSON)
    assert len(events) == classes.PEOPLE_SINGLES


@pytest.mark.gen_test
async def test_the_metrics_count_repetitions_at_once(memory_store: Store) -> None:
    seen: Counter[str] = Counter()
    memory_store.security.watch = lambda event, result, count: seen.update({event: count})
    for _ in range(20):
        for name in ("second_step_refused", "limited", "sign_in_refused"):
            memory_store.security.note(name, person=PERSON)
    assert seen == dict.fromkeys(("second_step_refused", "limited", "sign_in_refused"), 20)
    memory_store.security.settle()
    assert seen.total() == 60


@pytest.mark.gen_test
async def test_after_ten_causes_refusals_name_only_the_person(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(3 * 20):
        memory_store.security.note("scope_refused", person=PERSON, client=f"app-{number % 20}", detail=f"s{number % 3}")
    memory_store.security.note("scope_refused", person=PERSON[::-1], client="app", detail="read_document")
    memory_store.security.settle()
    counts = [(one.person, one.client, one.detail, one.count) for one in events if one.count > 1]
    assert counts == [(PERSON, "", "", 49)]
    assert (events[11].person, events[11].client, events[11].detail) == (PERSON[::-1], "app", "read_document")
    events.clear()
    for number in range(4):
        memory_store.security.note("scope_refused", person=PERSON, client=f"app-{number % 2}", detail="later")
    memory_store.security.note("scope_refused", person=PERSON, client="app-0", detail="later")
    memory_store.security.settle()
    # Causes of a past hour no longer count.
    assert [(one.client, one.count) for one in events] == [("app-0", 1), ("app-1", 1), ("app-0", 2), ("app-1", 1)]


@pytest.mark.gen_test
async def test_refused_calls_of_many_people_make_a_bounded_number_of_events(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for number in range(classes.MOST_ACTS + 500):
        memory_store.security.note("scope_refused", person=f"{number:032x}", client="app", detail="read_document")
    memory_store.security.settle()
    assert len(events) == classes.MOST_ACTS + 2
    assert (events[-1].person, events[-1].detail, events[-1].count) == ("", "read_document", 499)


@pytest.mark.gen_test
async def test_a_count_is_sent_at_the_end_of_its_window_without_further_events(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_log, "FLUSH_SECONDS", 0.0)
    log = security_log.SecurityLog(memory_store.scripts, memory_store.keys)
    for gathering in log._gathered.values():
        gathering._seconds = 0.05
    async with log.flushing():
        for _ in range(3):
            log.note("limited", detail="signin-address")
        while len(await names(memory_store)) < 2:
            await asyncio.sleep(0.01)
    assert [one.count for one in await memory_store.security_events.newest(None)] == [1, 2]
