"""A person's view of the documents that apps store, on every engine."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.documents import person_documents
from store.lifetimes import GRACE, PROOF
from store.refused import Refused, SignedOut, Unproved
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.many_documents import check_usage, connect_app, numbered, stock, write
from tests.support.store.second_factors import reauth, reauth_if_needed
from tests.support.store.world import VISITOR, World

DOCUMENTS = {
    "notes/a": b' {"first": 1.50}\n',
    "notes/b": b'"second"',
    "notes/zz": b"[]",
    "settings/theme": b'{"dark":true}',
    "settings/user:1@x~y": b"12345678901234567890",
}


async def prepared(store: Store, documents: dict[str, bytes] = DOCUMENTS) -> World:
    """A person whose app has written documents."""
    world = await World.make(store)
    await write(store, await connect_app(store, world.user, world.app), documents)
    return world


async def names(world: World, **options: Any) -> tuple[list[str], bool]:
    page = await world.store.person_documents.list(world.session, world.app.client_id, **options)
    return [item.name for item in page.items], page.more


@pytest.mark.gen_test
async def test_a_listing_goes_through_all_collections_in_order(store: Store) -> None:
    world = await prepared(store)
    page = await store.person_documents.list(world.session, world.app.client_id)
    assert [item.name for item in page.items] == list(DOCUMENTS)
    assert [item.size for item in page.items] == [len(content) for content in DOCUMENTS.values()]
    assert (page.profile.email, page.data_until, page.more) == (world.email, None, False)
    assert (page.usage.documents, page.usage.bytes) == (5, sum(map(len, DOCUMENTS.values())))
    assert [name for name, _, _ in page.usage.collections] == ["notes", "settings"]


@pytest.mark.gen_test
async def test_pages_follow_each_other_and_stay_in_a_collection_that_is_named(store: Store) -> None:
    world = await prepared(store)
    assert await names(world, most=2) == (["notes/a", "notes/b"], True)
    assert await names(world, most=2, after="notes/b") == (["notes/zz", "settings/theme"], True)
    assert await names(world, most=2, after="settings/theme") == (["settings/user:1@x~y"], False)
    assert await names(world, collection="notes", most=2, after="notes/b") == (["notes/zz"], False)
    inside = await names(world, collection="settings", most=2)
    assert await names(world, collection="settings", most=2, after="notes/b") == inside, "a cursor of elsewhere"
    assert await names(world, collection="note") == ([], False)
    await reauth_if_needed(world)
    await store.person_documents.delete(world.session, world.app.client_id, "notes", "b", VISITOR)
    assert await names(world, most=1, after="notes/b") == (["notes/zz"], True), "a cursor outlives its document"


@pytest.mark.gen_test
async def test_a_document_is_read_byte_for_byte(store: Store) -> None:
    world = await prepared(store)
    for name, content in DOCUMENTS.items():
        profile, found, read = await store.person_documents.read(world.session, world.app.client_id, *name.split("/"))
        assert (profile.email, found.name, read, found.size) == (world.email, name, content, len(content))
    with pytest.raises(Refused, match="not_found"):
        await store.person_documents.read(world.session, world.app.client_id, "notes", "c")


@pytest.mark.gen_test
async def test_deleting_needs_a_recent_reauthentication_in_the_script(memory_store: Store, clock: FakeClock) -> None:
    world = await prepared(memory_store)
    client = world.app.client_id
    for confirmed in (False, True):
        if confirmed:
            await reauth(world)
            clock.advance(PROOF / 1000 + 1)
        with pytest.raises(Unproved):
            await memory_store.person_documents.delete(world.session, client, "notes", "b", VISITOR)
        with pytest.raises(Unproved):
            await memory_store.person_documents.delete_all(world.session, client, VISITOR)
    assert await check_usage(memory_store, world.user, client) == 5


@pytest.mark.gen_test
async def test_deleting_one_document_updates_usage(store: Store) -> None:
    world = await prepared(store)
    await reauth_if_needed(world)
    await store.person_documents.delete(world.session, world.app.client_id, "notes", "b", VISITOR)
    assert await check_usage(store, world.user, world.app.client_id) == 4
    with pytest.raises(Refused, match="not_found"):
        await store.person_documents.delete(world.session, world.app.client_id, "notes", "b", VISITOR)
    assert (await world.events())[-1] == "document_deleted"


@pytest.mark.gen_test(timeout=30)
async def test_deleting_all_in_steps_updates_usage_at_each_step(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    caller = await connect_app(store, world.user, world.app)
    await stock(store, world.user, client, numbered(45, 30, collections=4))
    await reauth(world)
    bound = {**world.session.keys(), **keys.hosted(world.user, client), "grant": keys.grant(world.user, client)}
    bound |= keys.outbox_keys(world.user[:3])
    common: dict[str, Any] = {"member": keys.member(world.user), "proof": PROOF, **VISITOR.fields()}
    left, word, begun = 45, "more", ""
    while word == "more":
        reply = await store.scripts.run(
            "delete_holdings",
            bound,
            idle=60_000,
            client=client,
            steps=7,
            begun=begun,
            **common,
        )
        word, begun, left = reply.word, "1", left - reply.number("deleted")
        assert await check_usage(store, world.user, client) == left
        assert reply.number("deleted") <= 7
    assert left == 0
    assert (await world.events()).count("documents_deleted") == 1
    await write(store, caller, {"notes/a": b"1"})
    found, _, _ = await store.documents.read(caller, "data:read", "notes", "a")
    assert int(found.etag) > 45, "an ETag never comes again"


@pytest.mark.gen_test(timeout=30)
async def test_deleting_all_says_how_many_there_were(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    world = await prepared(store)
    monkeypatch.setattr(person_documents, "DELETED_AT_ONCE", 2)
    await reauth_if_needed(world)
    assert await store.person_documents.delete_all(world.session, world.app.client_id, VISITOR) == 5
    assert await store.person_documents.delete_all(world.session, world.app.client_id, VISITOR) == 0
    assert await check_usage(store, world.user, world.app.client_id) == 0
    assert (await world.events()).count("documents_deleted") == 1


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
async def test_in_the_grace_window_everything_works_and_no_key_lives_longer(store: Store) -> None:
    world = await prepared(store)
    client = world.app.client_id
    await world.revoke_app()
    hosted = keys.hosted(world.user, client)
    before = {noun: await store.client.pexpiretime(key) for noun, key in hosted.items()}
    page = await store.person_documents.list(world.session, client)
    assert page.data_until is not None
    # The clock of fakeredis goes on while a script runs.
    assert abs(page.data_until.timestamp() * 1000 - before["docs"]) < 100
    assert [item.name for item in page.items] == list(DOCUMENTS)
    assert (await store.person_documents.read(world.session, client, "notes", "b"))[2] == b'"second"'
    await reauth_if_needed(world)
    await store.person_documents.delete(world.session, client, "notes", "b", VISITOR)
    assert {noun: await store.client.pexpiretime(key) for noun, key in hosted.items()} == before
    assert 0 < before["docs"] - (await store.client.time())[0] * 1000 <= GRACE + 1000
    assert await store.person_documents.delete_all(world.session, client, VISITOR) == 4
    assert await store.client.pexpiretime(hosted["usage"]) == before["usage"]


@pytest.mark.gen_test
async def test_unknown_documents_are_not_found(store: Store) -> None:
    world = await prepared(store)
    await reauth(world)
    calls = store.person_documents
    for attempt in (
        calls.list(world.session, "never-connected"),
        calls.read(world.session, "never-connected", "notes", "a"),
        calls.delete(world.session, "never-connected", "notes", "a", VISITOR),
        calls.delete_all(world.session, "never-connected", VISITOR),
        anext(calls.export(world.session, "never-connected", VISITOR)),
    ):
        with pytest.raises(Refused, match="not_found"):
            await attempt


@pytest.mark.gen_test
@pytest.mark.trap(10)
async def test_an_ended_session_can_neither_read_nor_delete(store: Store) -> None:
    world = await prepared(store)
    client = world.app.client_id
    await store.operator.set_status(world.email, "disabled")
    calls = store.person_documents
    for attempt in (
        calls.list(world.session, client),
        calls.read(world.session, client, "notes", "a"),
        calls.delete(world.session, client, "notes", "a", VISITOR),
        calls.delete_all(world.session, client, VISITOR),
        anext(calls.export(world.session, client, VISITOR)),
    ):
        with pytest.raises(SignedOut):
            await attempt
    assert await check_usage(store, world.user, client) == 5


@pytest.mark.gen_test
async def test_documents_are_separate_by_person_and_app(store: Store) -> None:
    world, other = await prepared(store), await prepared(store, {"notes/a": b'"hers"'})
    with pytest.raises(Refused, match="not_found"):
        await store.person_documents.list(world.session, other.app.client_id)
    await connect_app(store, world.user, other.app)
    assert (await store.person_documents.list(world.session, other.app.client_id)).items == ()
    await reauth_if_needed(world)
    await store.person_documents.delete_all(world.session, other.app.client_id, VISITOR)
    assert (await store.person_documents.read(other.session, other.app.client_id, "notes", "a"))[2] == b'"hers"'


@pytest.mark.gen_test(timeout=30)
async def test_export_pages_are_bounded_and_complete(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    await connect_app(store, world.user, world.app)
    documents = numbered(12, 100_000)
    await stock(store, world.user, client, documents)
    pages = [page async for page in store.person_documents.export(world.session, client, VISITOR)]
    assert [(found.name, content) for page in pages for found, content in page] == list(documents.items())
    assert all(sum(found.size for found, _ in page[:-1]) <= person_documents.EXPORT_BYTES for page in pages)
    assert len(pages) == 4
    assert [page async for page in store.person_documents.copy(world.user, client)] == pages
    assert (await world.events()).count("documents_downloaded") == 1


@pytest.mark.gen_test
async def test_an_app_without_documents_exports_one_empty_page(store: Store) -> None:
    world = await prepared(store, {})
    assert [page async for page in store.person_documents.export(world.session, world.app.client_id, VISITOR)] == [()]


@pytest.mark.gen_test
async def test_the_list_of_apps_has_each_apps_usage(store: Store) -> None:
    world = await prepared(store)
    grants = (await store.grants.list(world.session)).grants
    assert [(grant.documents, grant.bytes) for grant in grants] == [(5, sum(map(len, DOCUMENTS.values())))]
