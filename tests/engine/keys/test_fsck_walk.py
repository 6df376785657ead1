"""The check finishes despite data that is large, in progress, changing or garbage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store import keys
from store.fsck import reading, walk
from store.fsck.reading import Reader
from store.wiring import Store
from tests.support.store import checked_store
from tests.support.store.checked_store import Furnished, broken, checked, findings
from tests.support.store.world import World, every_key

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]

few_shards, one_store = checked_store.few_shards, checked_store.one_store


async def test_a_repair_skips_data_that_changed_since_the_finding(store: Store) -> None:
    f = await Furnished.make(store)
    await f.client.zrem(f.hosted["index"], "notes/n2")
    (finding,) = await f.store.fsck.check(f.grant)
    await f.client.hdel(f.hosted["docs"], "notes/n2")
    await f.client.hdel(f.hosted["meta"], "notes/n2")
    assert finding.mend is not None
    await finding.mend()
    assert await f.client.zscore(f.hosted["index"], "notes/n2") is None


async def test_collections_larger_than_a_page_are_read_completely(store: Store) -> None:
    store.fsck.settle = 0
    f = await World.make(store)
    furnished = await Furnished.make(store)
    await furnished.client.delete(*furnished.hosted.values())
    await furnished.keeper.fill(470, collections=7)
    for number in range(600):
        await store.credits.grant(furnished.world.user, 1 + number)
    report = await checked(store, deep=True)
    assert findings(report) == []
    assert report.documents == 471
    await store.client.hdel(furnished.hosted["meta"], "c0003/d00304")
    await store.client.hdel(furnished.hosted["docs"], "c0006/d00398")
    await store.client.zrem(furnished.hosted["index"], "c0000/d00007", "c0006/d00398")
    await store.client.hincrby(keys.person(furnished.world.user)["balance"], "paid", 1)
    report = await checked(store)
    assert broken(report) == {"documents", "usage", "balance"}
    assert report.tallies["documents"].found == 3
    assert f.user != furnished.world.user


async def test_work_in_progress_gets_time_before_the_second_check(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = await Furnished.make(memory_store)
    await f.client.delete(entry := keys.email(f.world.email))
    sleep, slept = asyncio.sleep, []

    async def ends_meanwhile(seconds: float, *result: Any) -> Any:
        if seconds == walk.SETTLE:
            slept.append(seconds)
            await f.client.set(entry, f.world.user)
        else:
            await sleep(seconds, *result)

    monkeypatch.setattr(asyncio, "sleep", ends_meanwhile)
    f.store.fsck.settle = walk.SETTLE
    report = await checked(f.store, repair=True)
    assert findings(report) == []
    assert slept == [walk.SETTLE]


async def test_keys_to_check_again_wait_in_small_numbers(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    f = await Furnished.make(memory_store)
    await f.client.delete(keys.email(f.world.email), keys.email(f.other.email))
    monkeypatch.setattr(reading, "SORTED_TOGETHER", 10)
    monkeypatch.setattr(walk, "UNSURE", 1)
    sleep, slept = asyncio.sleep, []

    async def noted(seconds: float, *result: Any) -> Any:
        slept.append(seconds)
        await sleep(0, *result)

    monkeypatch.setattr(asyncio, "sleep", noted)
    f.store.fsck.settle = walk.SETTLE
    report = await checked(f.store)
    assert (broken(report), report.tallies["address"].found, report.people) == ({"address"}, 2, 4)
    assert slept.count(walk.SETTLE) > 1


@pytest.mark.parametrize(
    "kind", ["user", "grant", "email", "directory-family", "directory-section", "directory-bucket"]
)
async def test_a_key_of_another_type_stops_no_check_and_no_repair(store: Store, kind: str) -> None:
    f = await Furnished.make(store)
    key = await f.first(kind)
    await store.client.delete(key)
    await store.client.sadd(key, "garbage")
    assert "type" in broken(await checked(store, repair=True))


async def test_data_that_keeps_changing_is_reported_as_unsettled(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = await Furnished.make(memory_store)
    await f.client.delete(*f.hosted.values())
    await f.keeper.fill(401)
    look = Reader.look_at_pair

    async def and_write(reader: Reader, user: str, client: str, after: bytes) -> Any:
        if user == f.world.user:
            await f.keeper.put("c0000/d00001")
        return await look(reader, user, client, after)

    monkeypatch.setattr(Reader, "look_at_pair", and_write)
    report = await checked(memory_store)
    assert (report.busy, broken(report)) == (1, set())


async def test_only_the_requested_number_of_examples_is_kept(memory_store: Store) -> None:
    for number in range(30):
        await memory_store.client.set(f"nonsense:{number}", "1")
    report = await checked(memory_store, most=4)
    assert report.tallies["key"].found == 30
    assert len(findings(report)) == 4
    assert walk.NAMED == 20


GARBAGE = (b"", b"\xff\xfe", b"9" * 400, b"-1", b"garbage", b"1 2 3 4 5 6", b"{}", b"app:")


async def spoil(client: Any, key: bytes, garbage: bytes) -> None:
    """Puts foreign data into a key and keeps its type and expiry."""
    kind = await client.type(key)
    if kind == b"string":
        await client.set(key, garbage, keepttl=True)
    elif kind == b"hash":
        names = await client.hkeys(key)
        await client.hset(key, mapping={**dict.fromkeys(names, garbage), garbage: garbage, b"app:" + garbage: b"1"})
    elif kind == b"zset":
        await client.zadd(key, {garbage: float("inf"), garbage + b" x": -1.5})
    elif kind == b"set":
        await client.sadd(key, garbage)
    elif kind == b"list":
        await client.rpush(key, garbage)
    else:
        await client.xadd(key, {b"kind": b"charge", b"amount": garbage, b"paid": garbage, b"client": garbage})


@pytest.mark.parametrize("garbage", GARBAGE, ids=ascii)
async def test_arbitrary_data_does_not_stop_the_check(one_store: Store, garbage: bytes) -> None:
    f = await Furnished.make(one_store)
    everything = sorted(await every_key(f.client))
    for key in everything:
        copy, left = await f.client.dump(key), await f.client.pttl(key)
        if copy is None:
            continue  # it has ended
        await spoil(f.client, key, garbage)
        await f.store.fsck.check(key.decode())
        await f.client.restore(key, max(left, 0), copy, replace=True)
    assert findings(await checked(f.store, deep=True)) == []
    for key in everything:
        await spoil(f.client, key, garbage)
    report = await checked(f.store, deep=True, repair=True)
    assert not report.clean
    assert len(broken(report)) > 5


async def test_an_address_that_comes_back_during_the_repair_stays(memory_store: Store) -> None:
    world = await World.make(memory_store)
    entry = keys.email(world.email)
    await memory_store.client.pexpire(entry, 10**8)
    (finding,) = await memory_store.fsck.check(entry)
    await memory_store.client.persist(entry)
    assert finding.invariant.name == "reservation"
    assert finding.mend is not None
    await finding.mend()
    assert await memory_store.client.ttl(entry) == -1


async def test_an_address_whose_link_ends_between_two_reads_is_no_finding(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(memory_store)
    left, undos = keys.email("left@example.com"), keys.person(world.user)["undos"]
    await memory_store.client.set(left, world.user, px=10**8)
    await memory_store.client.hset(undos, "A" * 22, "1 left@example.com")
    look = Reader.look

    async def and_end(reader: Reader, anchor: str, *reads: Any) -> Any:
        if anchor == undos:
            await memory_store.client.delete(left, undos)
        return await look(reader, anchor, *reads)

    monkeypatch.setattr(Reader, "look", and_end)
    memory_store.fsck.settle = 0
    report = await checked(memory_store, repair=True)
    assert not broken(report) & {"lifetime", "reservation"}
