"""The streams of the security log, read as one: order, pages, followers and earlier releases."""

from __future__ import annotations

import asyncio
import contextlib
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from cli.commands import audit
from store.accounts.audit import security_log, security_reading
from store.accounts.audit.logged_event import AuditEvent
from store.lifetimes import DAY
from store.wiring import Store
from tests.accounts.audit.test_security_streams import ONE_OF_EACH, PERSON, names
from tests.conftest import ENGINES, OpenStore, emptied
from tests.support.processes.engines import FakeClock

REAL = [name for name in ENGINES if name != "memory"] or ["valkey"]


@pytest.mark.gen_test
async def test_streams_are_merged_by_time_over_pages_with_limits_and_filters(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_reading, "PAGE", 7)
    for number in range(60):
        store.security.note(ONE_OF_EACH[number * 7 % 11 % 4], person=f"{number:032x}")
        if number % 9 == 0:
            await store.security.flush()
    await store.security.flush()
    events = store.security_events
    found = [int(one.person, 16) for one in await events.newest(None)]
    assert found == list(range(60))
    assert [int(one.person, 16) for one in await events.newest(20)] == found[-20:]
    of_two = {f"{3:032x}", f"{50:032x}"}
    assert [one.person for one in await events.newest(2, wanted=lambda one: one.person in of_two)] == sorted(of_two)
    async with aclosing(events.follow("0-0")) as following:
        followed = [one async for one in until_pause(following)]
    assert [int(one.person, 16) for one in followed] == found


@pytest.fixture(params=REAL)
def three_stores(request: pytest.FixtureRequest, open_store: OpenStore) -> list[Store]:
    """Three simulated processes on each real engine."""
    url = emptied(request, request.param)
    return [open_store(url) for _ in range(3)]


@pytest.mark.gen_test
async def test_followers_get_each_event_of_two_writers_once_and_in_order(
    three_stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_reading, "PAGE", 10)
    monkeypatch.setattr(security_reading, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(security_log, "BATCH", 7)
    *writers, reader = three_stores

    async def write(store: Store, person: str) -> None:
        for number in range(300):
            store.security.note(ONE_OF_EACH[(number * 7 + number // 5) % 4], person=person, detail=str(number))
            if number % 11 == 0:
                await store.security.flush()
        await store.security.flush()

    async def follow() -> list[AuditEvent]:
        found: list[AuditEvent] = []
        async with aclosing(reader.security_events.follow("0-0")) as following:
            async for one in following:
                if one is not None:
                    found.append(one)
                elif len(found) >= 600:
                    return found
        raise AssertionError

    people = ("a" * 32, "b" * 32)
    following = asyncio.ensure_future(follow())
    await asyncio.gather(*(write(store, person) for store, person in zip(writers, people, strict=True)))
    followed = await following
    for person in people:
        assert [int(one.detail) for one in followed if one.person == person] == list(range(300))
    # Another shard may have got an older event a moment after it was read.
    assert {one.id for one in await reader.security_events.newest(None)} == {one.id for one in followed}
    assert len(followed) == 600


@pytest.mark.gen_test
async def test_follow_shows_events_that_arrive_late(memory_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    memory_store.security.note("signed_out", person=PERSON)
    late = memory_store.security._queue.popleft()
    late.since -= 2
    memory_store.security.note("signed_in", person=PERSON)
    await memory_store.security.flush()
    args = Namespace(limit=None, json=False)
    following = asyncio.ensure_future(audit._follow(memory_store, args, None, lambda event: True))
    printed = ""
    while "signed_in" not in printed:
        await asyncio.sleep(0.01)
        printed += capsys.readouterr().out
    memory_store.security._queue.append(late)
    await memory_store.security.flush()
    while "signed_out" not in printed:
        await asyncio.sleep(0.01)
        printed += capsys.readouterr().out
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
    assert [line.split("  ")[1] for line in printed.splitlines()] == ["signed_in", "signed_out"]


@pytest.mark.gen_test
async def test_stepping_the_clock_back_keeps_the_order_of_events(clock: FakeClock, memory_store: Store) -> None:
    for name in ONE_OF_EACH:
        memory_store.security.note(name, person=PERSON)
        await memory_store.security.flush()
        clock.back(5)
    assert await names(memory_store) == list(ONE_OF_EACH)


@pytest.mark.gen_test
async def test_the_previous_releases_log_is_merged_in(store: Store) -> None:
    packed = '{"event":"refresh_replayed","result":"refused","severity":"warning","actor":"app","id":"1"}'
    await store.client.xadd("{audit}:events", {"at": "1000", "event": packed})
    await store.client.xadd("{audit}:events", {"later": "in another form"})
    store.security.note("signed_in", person=PERSON)
    await store.security.flush()
    assert await names(store) == ["refresh_replayed", "signed_in"]


@pytest.mark.gen_test
async def test_a_quiet_stream_keeps_no_event_longer_than_90_days(clock: FakeClock, memory_store: Store) -> None:
    log = memory_store.security
    for name in ("key_made_by_operator", "key_retired_by_operator"):
        log.note(name)
        await log.flush()
        clock.advance(46 * DAY / 1000)
    log.note("signed_in", person=PERSON)
    await log.flush()
    assert await names(memory_store) == ["key_retired_by_operator", "signed_in"]


async def until_pause(following: AsyncIterator[AuditEvent | None]) -> AsyncIterator[AuditEvent]:
    """The events that a follower has so far."""
    async for one in following:
        if one is None:
            return
        yield one
