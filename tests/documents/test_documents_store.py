"""What the store promises about hosted documents, on every engine. SPEC 4.6, 2.4."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store.documents.documents import MAX_PAGE_BYTES, Quotas
from store.lifetimes import DATA_WRITE
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.document_app import a_keeper
from tests.support.store.world import refusal_of

pytestmark = pytest.mark.gen_test(timeout=30)


async def test_documents_are_read_back_byte_for_byte(store: Store) -> None:
    keeper = await a_keeper(store)
    for content in (b"0", b' {"a" : 1.10,\n"a":2}\t', b"9" * 400, '"\u20ac\U0001f600"'.encode(), b"x" * 262_144):
        written, _, _ = await keeper.put("notes/n1", content)
        found, read, _ = await keeper.get("notes/n1")
        assert (read, found) == (content, written)
        assert found.size == len(content)


async def test_writes_create_then_replace_with_rising_etags(store: Store) -> None:
    keeper = await a_keeper(store)
    first, created, _ = await keeper.put("notes/n1")
    assert created
    assert first.created_at == first.updated_at
    assert abs(first.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    seen = [int(first.etag)]
    for name in ("notes/n1", "notes/n2", "other/n1", "notes/n1"):
        seen.append(int((await keeper.put(name))[0].etag))
    again, created, _ = await keeper.put("notes/n1", b"1")
    seen.append(int(again.etag))
    assert not created
    assert again.created_at == first.created_at
    assert again.updated_at >= first.updated_at
    await keeper.delete("notes/n1")
    new, created, _ = await keeper.put("notes/n1")
    seen.append(int(new.etag))
    assert created
    assert new.created_at >= again.updated_at
    for name in ("notes/n1", "notes/n2", "other/n1"):
        await keeper.delete(name)
    seen.append(int((await keeper.put("notes/n1"))[0].etag))
    assert seen == sorted(set(seen)), "the same bytes and an emptied store repeat none"


async def test_a_store_that_lost_writes_reuses_no_etag(clock: FakeClock, memory_store: Store) -> None:
    """As one does from which a replica took over behind its primary, or that was restored from a backup: whoever knows
    the ETag of a version that is lost must not replace another one by it."""
    keeper = await a_keeper(memory_store)
    await keeper.put("notes/n1", b"1")
    client: Any = memory_store.client
    backup = {key: await client.dump(key) for key in keeper.keys().values() if await client.exists(key)}
    lost = [int((await keeper.put("notes/n1", b"lost"))[0].etag) for _ in range(3)]
    for key, dumped in backup.items():
        await client.restore(key, 0, dumped, replace=True)
    clock.advance(1)
    again = [int((await keeper.put("notes/n1", b"2"))[0].etag) for _ in range(3)]
    assert min(again) > max(lost)
    refused = keeper.put("notes/n1", b"3", if_match=str(lost[0]))
    assert await refusal_of(refused) == "precondition_failed"


async def test_a_deleted_document_leaves_no_trace(store: Store) -> None:
    keeper = await a_keeper(store)
    await keeper.put("notes/n1")
    await keeper.delete("notes/n1")
    assert await refusal_of(keeper.get("notes/n1")) == "not_found"
    assert await refusal_of(keeper.delete("notes/n1")) == "not_found"
    rows = keeper.keys()
    assert await store.client.exists(rows["docs"], rows["meta"], rows["index"]) == 0
    usage = await keeper.recount()
    assert (usage.documents, usage.bytes, usage.collections) == (0, 0, ())


@pytest.mark.parametrize("present", [pytest.param(True, id="present"), pytest.param(False, id="absent")])
@pytest.mark.parametrize(
    ("if_match", "none", "when_present", "when_absent"),
    [
        pytest.param("", False, True, True, id="no condition"),
        pytest.param("*", False, True, False, id="If-Match any"),
        pytest.param("ETAG", False, True, False, id="If-Match its ETag"),
        pytest.param("0 ETAG 7", False, True, False, id="If-Match its ETag among others"),
        pytest.param("0", False, False, False, id="If-Match another"),
        pytest.param("1ETAG", False, False, False, id="If-Match one that ends like it"),
        pytest.param("", True, False, True, id="If-None-Match any"),
        pytest.param("ETAG", True, False, False, id="both"),
    ],
)
async def test_write_conditions(
    memory_store: Store, present: bool, if_match: str, none: bool, when_present: bool, when_absent: bool
) -> None:
    keeper = await a_keeper(memory_store)
    etag = (await keeper.put("notes/n1", b"1"))[0].etag
    if not present:
        await keeper.delete("notes/n1")
    condition = if_match.replace("ETAG", etag)
    before = await keeper.dump()
    expected = None if (when_present if present else when_absent) else "precondition_failed"
    refusal = await refusal_of(keeper.put("notes/n1", b"22", if_match=condition, if_none_match=none))
    assert refusal == expected
    if refusal:
        assert await keeper.dump() == before
    else:
        assert (await keeper.get("notes/n1"))[1] == b"22"
    await keeper.recount()


@pytest.mark.parametrize("if_match", ["0", "*", "ETAG"])
async def test_deletion_conditions(store: Store, if_match: str) -> None:
    keeper = await a_keeper(store)
    etag = (await keeper.put("notes/n1", b"1"))[0].etag
    condition = if_match.replace("ETAG", etag)
    expected = "precondition_failed" if if_match == "0" else None
    assert await refusal_of(keeper.delete("notes/n1", condition)) == expected
    assert (await keeper.recount()).documents == (1 if if_match == "0" else 0)
    assert await refusal_of(keeper.delete("notes/n2", condition)) == "precondition_failed"


async def test_the_number_of_documents_is_bounded(store: Store) -> None:
    keeper = await a_keeper(store, documents=3)
    for number in range(3):
        await keeper.put(f"c{number}/n", b"1")
    before = await keeper.dump()
    with pytest.raises(Refused) as refused:
        await keeper.put("c0/more")
    assert refused.value.code == "quota_exceeded"
    assert "documents" in refused.value.description
    assert refused.value.window is not None
    assert refused.value.window.remaining == DATA_WRITE.limit - 1
    assert await keeper.dump() == before
    assert await refusal_of(keeper.put("c0/n", b"longer than before")) is None
    await keeper.delete("c1/n")
    assert await refusal_of(keeper.put("c0/more")) is None
    assert (await keeper.recount()).documents == 3


async def test_the_number_of_collections_is_bounded(store: Store) -> None:
    keeper = await a_keeper(store, collections=2)
    for name in ("a/1", "a/2", "b/1"):
        await keeper.put(name)
    before = await keeper.dump()
    assert await refusal_of(keeper.put("c/1")) == "quota_exceeded"
    assert await keeper.dump() == before
    assert await refusal_of(keeper.put("b/2")) is None
    await keeper.delete("a/1")
    assert await refusal_of(keeper.put("c/1")) == "quota_exceeded", "one document is left in it"
    await keeper.delete("a/2")
    assert await refusal_of(keeper.put("c/1")) is None
    assert await refusal_of(keeper.put("a/1")) == "quota_exceeded"
    assert [name for name, _, _ in (await keeper.recount()).collections] == ["b", "c"]


async def test_bytes_are_bounded_and_shrinking_writes_are_accepted(store: Store) -> None:
    keeper = await a_keeper(store, bytes=100)
    await keeper.put("notes/n1", b"x" * 60)
    before = await keeper.dump()
    assert await refusal_of(keeper.put("notes/n2", b"x" * 41)) == "quota_exceeded"
    assert await refusal_of(keeper.put("notes/n1", b"x" * 101)) == "quota_exceeded"
    assert await keeper.dump() == before
    assert await refusal_of(keeper.put("notes/n2", b"x" * 40)) is None, "to the last byte"
    assert await refusal_of(keeper.put("notes/n3", b"1")) == "quota_exceeded"
    store.documents.quotas = Quotas(bytes=10, documents=1, collections=1)  # the operator lowers them
    assert await refusal_of(keeper.put("notes/n1", b"x" * 60)) is None, "the same size"
    assert await refusal_of(keeper.put("notes/n1", b"x" * 61)) == "quota_exceeded"
    assert await refusal_of(keeper.put("notes/n1", b"x" * 50)) is None
    assert await refusal_of(keeper.delete("notes/n2")) is None
    assert (await keeper.recount()).bytes == 50


async def test_usage_matches_a_recount_after_each_change(store: Store) -> None:
    keeper = await a_keeper(store, documents=5, bytes=60)
    assert await keeper.usage() == await keeper.recount()
    steps = [
        ("a/1", 1), ("a/2", 20), ("a.b/1", 5), ("a/1", 10), ("a/1", 10), ("a/2", 1), ("a.b/1", 0), ("A/1", 40),
        ("a/3", 30), ("b/1", 1), ("b/2", 1), ("b/3", 1), ("a/1", 0), ("a/2", 0), ("zz/1", 0), ("A/1", 2),
    ]  # fmt: skip
    for name, size in steps:
        await refusal_of(keeper.put(name, b"x" * size) if size else keeper.delete(name))
        usage = await keeper.recount()
        assert await keeper.usage() == usage
        assert usage.documents <= 5
        assert usage.bytes <= 60


IDS = ("-", ".", "0", "10", "2", ":", "@", "A", "Z", "a", "a-b", "a.b", "a0", "aa", "aaa", "a~", "b", "z", "z~~")


@pytest.mark.parametrize("most", [1, 2, 7, 19, 200])
async def test_pages_list_each_document_once_in_id_order(store: Store, most: int) -> None:
    keeper = await a_keeper(store)
    ids = [each for each in IDS if each[0].isalnum()]
    for collection in ("notes", "note", "notes2", "notes-", "Notes", "a"):
        for document_id in reversed(ids) if collection == "notes" else ("a", "zz"):
            await keeper.put(f"{collection}/{document_id}")
    assert await keeper.walk("notes", most=most) == sorted(ids)
    for prefix in ("a", "aa", "z", "a.", "1", "0", "~", "b0", "-"):
        assert await keeper.walk("notes", prefix, most) == sorted(each for each in ids if each.startswith(prefix))
    assert await keeper.walk("nothing", most=most) == []


@pytest.mark.parametrize(
    ("prefix", "after", "ids"),
    [
        pytest.param("", "b", ["b0", "c"], id="after one that is there"),
        pytest.param("", "az", ["b", "b0", "c"], id="after one that is gone"),
        pytest.param("", "zzz", [], id="after the last"),
        pytest.param("b", "a", ["b", "b0"], id="a cursor from before the prefix"),
        pytest.param("b", "b", ["b0"], id="a cursor at the prefix"),
        pytest.param("b", "c", [], id="a cursor from beyond the prefix"),
    ],
)
async def test_a_cursor_continues_and_never_widens_the_prefix(
    store: Store, prefix: str, after: str, ids: list[str]
) -> None:
    keeper = await a_keeper(store)
    for document_id in ("a", "ab", "b", "b0", "c"):
        await keeper.put(f"notes/{document_id}")
    page = await keeper.page("notes", prefix, after)
    assert ([found.document_id for found, _ in page.items], page.more) == (ids, False)


async def test_a_page_says_whether_more_follow(store: Store) -> None:
    keeper = await a_keeper(store)
    for number in range(4):
        await keeper.put(f"notes/{number}")
    assert [(await keeper.page("notes", most=most)).more for most in (3, 4, 5)] == [True, False, False]
    assert not (await keeper.page("notes", after="1", most=2)).more


async def test_a_page_with_documents_ends_after_a_mebibyte(store: Store) -> None:
    keeper = await a_keeper(store)
    sizes = [262_144] * 4 + [1] + [262_144] * 5
    for number, size in enumerate(sizes):
        await keeper.put(f"notes/{number}", bytes([48 + number]) * size)
    first = await keeper.page("notes", content=True)
    assert [found.size for found, _ in first.items] == [262_144] * 4 + [1], "four are no more than a mebibyte"
    assert first.more
    assert sum(found.size for found, _ in first.items) > MAX_PAGE_BYTES
    second = await keeper.page("notes", after="4", content=True)
    assert [content for _, content in second.items] == [bytes([48 + n]) * sizes[n] for n in range(5, 10)]
    assert not second.more
    assert len((await keeper.page("notes")).items) == 10, "without documents nothing is cut short"
