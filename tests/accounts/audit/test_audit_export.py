"""The export of the security log to a collector: what it receives, and what a bad one costs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from outbound import audit_export, log_collector
from outbound.audit_export import ASK_SECONDS, POLL_SECONDS, AuditExport
from outbound.log_collector import CollectorAnswer, LogCollector
from runtime.outbound_wiring import open_audit_export
from settings.declared import Settings
from store import keys
from store.accounts.audit.export_turn import LEASE_MS, Exported, ExportTurns
from store.accounts.audit.security_reading import SOURCES
from store.operators.trail_formats import exported
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.http.receiver import Receiver, Reply, answering
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock

JSON = "Content-Type: application/json"


def ok(body: bytes = b"{}") -> Reply:
    return answering(200, JSON, body=body)


@asynccontextmanager
async def collecting(*script: Reply, reply: Reply | None = None) -> AsyncIterator[Receiver]:
    """A collector that gives these answers in turn, and then `reply`."""
    receiver = Receiver(reply=reply or ok(), script=list(script))
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.close()


def exporter(store: Store, receiver: Receiver, header: tuple[str, str] | None = None) -> tuple[AuditExport, list[Any]]:
    """An exporter of this store, and what it counts."""
    made = AuditExport(store.security_events, store.export_turns, LogCollector(receiver.url, lambda: header, whole=1.0))
    counted: list[Any] = []
    made.watch = lambda outcome, count: counted.append((outcome, count))
    return made, counted


async def note(store: Store, *details: str) -> None:
    for detail in details:
        store.security.note("command_failed", detail=detail)
    await store.security.flush()


def records_of(requests: Iterable[Any]) -> list[Any]:
    return [record for one in requests for record in one["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]


def records(receiver: Receiver) -> list[Any]:
    return records_of(receiver.events())


def details(receiver: Receiver) -> list[str]:
    return [
        field["value"]["stringValue"]
        for record in records(receiver)
        for field in record["attributes"]
        if field["key"] == "latchkey.detail"
    ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses."""
    monkeypatch.setattr(audit_export, "FIRST_PAUSE", 0.0)


async def rounds(made: AuditExport) -> None:
    """Exports until everything was sent."""
    while await made.round() == 0.0:
        pass


@pytest.mark.gen_test
async def test_a_collector_gets_new_events_in_the_form_of_the_files(memory_store: Store) -> None:
    await note(memory_store, "before the first export")
    async with collecting() as receiver:
        made, counted = exporter(memory_store, receiver, ("Authorization", "Bearer abc"))
        await rounds(made)
        assert receiver.posted == []
        since, began = (await memory_store.export_turns.hold()).now, time.monotonic()
        await note(memory_store, *(f"{number}" for number in range(450)))
        await rounds(made)
        assert details(receiver) == [f"{number}" for number in range(450)]
        # The same records as in a file.
        lines = [line async for line in exported(memory_store.security_events, "otlp", since, None)]
        in_files = records_of(json.loads(line) for line in lines if line)
        assert records(receiver) == in_files[-450:]
        assert {one["resourceLogs"][0]["scopeLogs"][0]["scope"]["name"] for one in receiver.events()} == {
            "latchkey.security"
        }
        assert {(one.headers["authorization"], one.headers["content-type"]) for one in receiver.posted} == {
            ("Bearer abc", "application/json")
        }
        assert max(len(one.body) for one in receiver.posted) < 2**19
        assert sum(count for outcome, count in counted if outcome == "sent") == 450
        assert made.behind < POLL_SECONDS + time.monotonic() - began
        # Nothing is sent twice by the next process.
        await memory_store.client.delete(keys.AUDIT_EXPORT["exporter"])
        other, _ = exporter(memory_store, receiver)
        before = len(receiver.posted)
        await made.round()
        await rounds(other)
        assert len(receiver.posted) == before


async def lose(store: Store, most: int) -> None:
    """Removes the newest entries of the log, but for `most`, as a replica loses them that had not received them."""
    for shard in range(keys.TRAIL_SHARDS):
        index = keys.trail(shard)["operator"]
        client: Any = store.client
        for day in await client.zrange(index, 0, -1):
            log = f"{index}:{day.decode()}"
            entries = await client.xrange(log)
            await client.delete(log)
            for entry, fields in entries[:most]:
                await client.xadd(log, fields, entry)


@pytest.mark.gen_test
@pytest.mark.parametrize("most", [1, 0])
async def test_a_failover_to_a_node_whose_clock_is_behind_hides_no_event(
    memory_store: Store, clock: FakeClock, most: int
) -> None:
    async with collecting() as receiver:
        made, _ = exporter(memory_store, receiver)
        await rounds(made)
        clock.advance(10)
        await note(memory_store, "kept")
        clock.advance(10)
        await note(memory_store, "lost")
        await rounds(made)
        await lose(memory_store, most)
        vars(memory_store.security.trail)["_newest"] = 0  # another process writes
        clock.back(5)
        if most:
            await note(memory_store, "next")
        await rounds(made)
        expected = ["kept", "lost", *(["kept", "next"] if most else [])]
        assert details(receiver) == expected
        # It looks back once, and not at each read.
        await rounds(made)
        await note(memory_store, "later")
        for _ in range(2):
            await rounds(made)
        assert details(receiver) == [*expected, "later"]


@pytest.mark.gen_test
async def test_a_new_header_counts_from_the_next_request(memory_store: Store) -> None:
    async with collecting() as receiver:
        current = [Settings(audit_otlp=receiver.url, audit_otlp_header=("X-Key", "old"))]
        made = open_audit_export(lambda: current[0], memory_store)
        assert made
        await rounds(made)
        for key in ("old", "new"):
            current[0] = replace(current[0], audit_otlp_header=("X-Key", key))
            await note(memory_store, key)
            await rounds(made)
        assert [one.headers["x-key"] for one in receiver.posted] == ["old", "new"]


@pytest.mark.gen_test
async def test_a_process_that_was_held_up_sets_nothing_back(memory_store: Store) -> None:
    """Its turn ended, another one exported and stopped, and nobody has the turn now."""
    slow, other = (ExportTurns(memory_store.scripts) for _ in range(2))
    old, new = (Exported((f"{number}-0",) * SOURCES, number) for number in (1, 2))
    await slow.hold(old)
    await memory_store.client.delete(keys.AUDIT_EXPORT["exporter"])
    await other.hold()
    await other.hold(new, 0)
    for lease in (LEASE_MS, 0):
        assert (await slow.hold(old, lease)).busy
    turn = await slow.hold()
    assert (turn.busy, turn.position, turn.at) == (False, new.position, new.at)
    for _ in range(2):
        assert not (await slow.hold(new)).busy
        await memory_store.client.delete(keys.AUDIT_EXPORT["exporter"])  # nobody else came


@pytest.mark.gen_test
async def test_a_turn_that_was_lost_and_taken_again_amid_a_page_sets_nothing_back(
    memory_store: Store, quick: None
) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        await memory_store.client.delete(keys.AUDIT_EXPORT["exporter"])
        await other.hold()
        await other.hold(newer, 0)
        await answering(503)(writer)

    other = ExportTurns(memory_store.scripts)
    async with collecting(slowly) as receiver:
        made, _ = exporter(memory_store, receiver)
        await rounds(made)
        await note(memory_store, "one")
        newer = Exported(await memory_store.security_events.end(), 1)
        assert await made.round() == ASK_SECONDS
        await rounds(made)
        assert details(receiver) == ["one"], "the other process has sent it"


@pytest.mark.gen_test
async def test_events_wait_for_a_collector_with_trouble(memory_store: Store, quick: None) -> None:
    trouble = (answering(503), answering(401), answering(302, "Location: /"), answering(200, body=b"<html>"))
    endless = answering(200, JSON, body=b" " * 2**15)
    async with collecting(*trouble, endless, answering(404), hanging) as receiver:
        made, counted = exporter(memory_store, receiver)
        await rounds(made)
        await note(memory_store, "one", "two")
        await rounds(made)
        assert len(receiver.posted) == 8
        assert details(receiver)[-2:] == ["one", "two"]
        assert counted == [("sent", 2)]


async def hanging(writer: asyncio.StreamWriter) -> None:
    """Begins an answer, and never ends it."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
    await writer.drain()
    await asyncio.sleep(60)


@pytest.mark.gen_test
async def test_a_refused_event_takes_no_other_with_it(memory_store: Store, quick: None) -> None:
    async def picky(writer: asyncio.StreamWriter) -> None:
        await answering(400 if b'"bad"' in receiver.posted[-1].body else 200, JSON, body=b"{}")(writer)

    async with collecting(reply=picky) as receiver:
        made, counted = exporter(memory_store, receiver)
        await rounds(made)
        await note(memory_store, "one", "two", "bad", "three", "four")
        await rounds(made)
        taken = [one.body for one in receiver.posted if b'"bad"' not in one.body]
        assert b"".join(taken).count(b"latchkey.event.id") == 4
        assert ("refused", 1) in counted
        assert sum(count for outcome, count in counted if outcome == "sent") == 4
        asked = len(receiver.posted)
        await note(memory_store, "after it")
        await rounds(made)
        assert (len(receiver.posted), details(receiver)[-1]) == (asked + 1, "after it")


@pytest.mark.gen_test
async def test_a_collector_that_refuses_everything_loses_an_event_a_pause(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def wait(seconds: float) -> None:
        pauses.append(seconds)

    async with collecting(reply=answering(400)) as receiver:
        made, counted = exporter(memory_store, receiver)
        monkeypatch.setattr(made, "_wait", wait)
        await rounds(made)
        await note(memory_store, *(f"{number}" for number in range(10)))
        await rounds(made)
    assert counted == [("refused", 1)] * 10
    assert len(pauses) == 10
    assert min(pauses[6:]) > 20


@each(
    ("body", "rejected"),
    [
        pytest.param(b"", 0, id="no body"),
        pytest.param(b'{"partialSuccess":{}}', 0, id="nothing rejected"),
        pytest.param(b'{"partialSuccess":{"rejectedLogRecords":"2"}}', 2, id="text"),
        pytest.param(b'{"partialSuccess":{"rejectedLogRecords":2}}', 2, id="number"),
        pytest.param(b'{"partialSuccess":{"rejectedLogRecords":"999999999"}}', 3, id="more than there are"),
        pytest.param(b'{"partialSuccess":{"rejectedLogRecords":-5}}', 0, id="fewer than none"),
        pytest.param(b'{"partialSuccess":[1]}', 0, id="another type"),
    ],
)
def test_what_a_collector_did_not_keep_is_counted(body: bytes, rejected: int) -> None:
    assert log_collector._accepted(body, 3) == CollectorAnswer("sent", rejected)


@each("body", [b"[]", b"nonsense", b"\xff", b"[" * 5000, b"1" * 5000, b'"ok"'])
def test_an_answer_of_somebody_else_is_no_success(body: bytes) -> None:
    assert log_collector._accepted(body, 3).outcome == "later"


# Turns


@pytest.fixture
def two_stores(request: pytest.FixtureRequest, open_store: OpenStore) -> tuple[Store, Store]:
    """Two simulated processes on one store."""
    url = emptied(request, "valkey")
    return open_store(url), open_store(url)


@pytest.mark.gen_test
async def test_one_process_has_the_turn_and_the_position(two_stores: tuple[Store, Store]) -> None:
    one, other = two_stores
    async with collecting() as receiver:
        first, _ = exporter(one, receiver)
        second, _ = exporter(other, receiver)
        await rounds(first)
        assert await second.round() == ASK_SECONDS
        await note(one, "sent")
        await rounds(first)
        await first.round()
        # The first process stops answering, and its turn ends.
        assert 0 < await one.client.pttl(keys.AUDIT_EXPORT["exporter"]) <= LEASE_MS
        await one.client.delete(keys.AUDIT_EXPORT["exporter"])
        await rounds(second)
        await note(one, "later")
        await rounds(second)
        await second.round()
        noted = await one.client.hgetall(keys.AUDIT_EXPORT["exported"])
        # It comes back, and sets back nothing.
        first._done = Exported(("1-1",) * SOURCES, 1)
        assert await first.round() == ASK_SECONDS
        assert await one.client.hget(keys.AUDIT_EXPORT["exported"], "position") == noted[b"position"]
        assert details(receiver) == ["sent", "later"]


@pytest.mark.gen_test
async def test_a_stopped_process_hands_over_at_once_and_a_damaged_position_loses_nothing(
    two_stores: tuple[Store, Store],
) -> None:
    one, other = two_stores
    async with collecting() as receiver:
        first, _ = exporter(one, receiver)
        async with first.exporting():
            while first._done is None:
                await asyncio.sleep(0.01)
        await note(one, "while nobody exports")
        second, _ = exporter(other, receiver)
        await rounds(second)
        assert details(receiver) == ["while nobody exports"]
        await one.client.delete(keys.AUDIT_EXPORT["exporter"])
        await one.client.hset(keys.AUDIT_EXPORT["exported"], "position", "1-1")
        third, _ = exporter(one, receiver)
        await rounds(third)
        assert details(receiver) == ["while nobody exports"] * 2
