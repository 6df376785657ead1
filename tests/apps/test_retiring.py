"""Deleting an app ends every grant; documents live for 30 days, and all affected are notified."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store import keys
from store.apps.tombstones import LASTS, Tombstone
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import GRACE
from store.reencryption import Progress
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.app_events import REVOKED, due, posted_events
from tests.support.store.checked_store import broken, checked
from tests.support.store.document_app import Keeper
from tests.support.store.lost_answers import losing
from tests.support.store.many_documents import rotated
from tests.support.store.second_factors import reauth
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

ENDED = ("grant.revoked", "app_deleted")
HOOK = "https://app.example/hook"
DAY = 24 * 3600


async def keeping(store: Store, monkeypatch: pytest.MonkeyPatch | None = None) -> tuple[World, Keeper]:
    """A person who has connected an app that has a webhook and stores a document."""
    world = await World.make(store)
    world.app = (await store.webhooks.set_url(world.app.client_id, HOOK)).registration
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1", b'"kept"')
    if monkeypatch:
        monkeypatch.setattr(keys, "SHARDS", (world.user[:3],))  # to ask all of them takes fakeredis its time
    return world, keeper


async def retire(world: World) -> None:
    await world.store.apps.begin_deletion(world.app.client_id)
    await world.store.apps.finish_deletion(world.app.client_id)


async def app_events(world: World) -> list[tuple[str, str, str]]:
    """The app's events, posted or pending: type, reason, and whether it names a person."""
    await world.store.outbox.relay_shards({world.user[:3]}, world.store.webhooks.wants)
    rows = await world.store.deliveries.list(world.app.client_id, most=1000)
    return [(row.type, row.details.get("reason", ""), "person" if row.sub else "") for row in reversed(rows)]


async def test_a_deleted_apps_documents_can_be_exported_for_30_days(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memory_store
    world, keeper = await keeping(store, monkeypatch)
    await retire(world)
    assert await refusal_of(keeper.get("notes/n1")) == "invalid_token"
    clock.advance(GRACE / 1000 - 60)
    world.session = await world.sign_in()
    (grant,) = (await store.grants.list(world.session)).grants
    assert (grant.app_deleted, grant.documents) == (True, 1)
    assert grant.data_until is not None
    app = await store.apps.remembered(world.app.client_id)
    assert app is not None
    assert app.name == "An App"
    pages = [page async for page in store.person_documents.export(world.session, world.app.client_id, VISITOR)]
    assert [content for page in pages for _, content in page] == [b'"kept"']
    clock.advance(61)
    assert await refusal_of(store.person_documents.list(world.session, world.app.client_id)) == "not_found"


async def test_the_activity_and_the_webhook_report_the_end_of_an_app(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    await retire(world)
    assert (await world.events())[-1] == "app_ended_by_operator"
    first = [("app.deleted", "by_operator", ""), ("grant.revoked", "app_deleted", "person")]
    assert await app_events(world) == first
    clock.advance(GRACE / 1000 + 1)
    await memory_store.outbox.sweep(memory_store.webhooks.wants)
    assert await app_events(world) == [("data.deleted", "grace_over", "person")], "the others are 30 days old"
    assert (await memory_store.webhooks.target(world.app.client_id)) is not None, "so that it is posted"


async def test_a_deletion_by_the_owner_names_the_owner(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    await memory_store.apps.update(world.app.client_id, owner=world.user)
    await reauth(world)
    await memory_store.owned.delete(world.session, world.app.client_id, VISITOR)
    await memory_store.apps.finish_deletion(world.app.client_id)
    assert (await world.events())[-2:] == ["app_deleted", "app_ended_by_owner"]
    assert (await app_events(world))[0] == ("app.deleted", "by_owner", "")


async def test_a_deletion_is_done_when_only_the_owners_list_cannot_be_written(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    await memory_store.apps.update(world.app.client_id, owner=world.user)
    client = memory_store.apps.retiring._client
    write = client.zrem

    async def refuse(key: str, *members: str) -> Any:
        if key == keys.person(world.user)["apps"]:
            raise ConnectionError("the slot is moving")
        return await write(key, *members)

    with monkeypatch.context() as patch:
        patch.setattr(client, "zrem", refuse)
        await memory_store.apps.delete(world.app.client_id)
    clock.advance(3600)
    world.session = await world.sign_in()
    assert not (await memory_store.owned.list(world.session)).apps
    assert await memory_store.apps.retiring._client.zcard(keys.person(world.user)["apps"]) == 0


async def test_an_earlier_disconnection_keeps_its_promised_end(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    await world.revoke_app()
    before = await due(world)
    clock.advance(10 * DAY)
    await retire(world)
    assert await due(world) == before
    assert await posted_events(world) == [REVOKED]
    world.session = await world.sign_in()
    (grant,) = (await memory_store.grants.list(world.session)).grants
    assert grant.app_deleted
    assert "app_ended_by_operator" in await world.events()


async def test_nobody_registers_the_client_id_until_the_last_document_has_ended(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    client = world.app.client_id
    await retire(world)
    assert await refusal_of(memory_store.apps.delete(client)) is None, "the operator may purge it"
    await world.register(client)
    await world.tokens(app=world.app)
    await retire(world)
    clock.advance(GRACE / 1000 + 1)
    memory_store.apps.forget()
    assert await refusal_of(world.register(client)) == "invalid_request"
    assert not await memory_store.client.exists(keys.grant(world.user, client))
    clock.advance((LASTS - GRACE) / 1000)
    memory_store.apps.forget()
    await memory_store.apps.check_free(client)
    await world.register(client)


async def test_a_connection_made_by_a_stale_server_stays_visible(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    client = world.app.client_id
    await retire(world)
    await world.tokens()  # with a copy of the registration
    clock.advance(LASTS / 1000 + 1)
    memory_store.apps.forget()
    assert await refusal_of(memory_store.apps.check_free(client)) == "invalid_request"
    await memory_store.apps.delete(client)
    await memory_store.apps.check_free(client)
    assert not await memory_store.client.exists(keys.grant(world.user, client))


@pytest.mark.parametrize(
    ("script", "lose_request"),
    [
        pytest.param("save_app", False, id="behind the tombstone"),
        pytest.param("enqueue_delivery", False, id="behind the event"),
        pytest.param("retire_app", True, id="before a shard"),
        pytest.param("retire_app", False, id="behind a shard"),
        pytest.param("bury_app", True, id="before the tombstone's end"),
        pytest.param("bury_app", False, id="behind the tombstone's end"),
    ],
)
async def test_the_next_start_continues_an_interrupted_app_deletion(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        store = world.store
        world.app = (await store.webhooks.set_url(world.app.client_id, HOOK)).registration
        await (await Keeper.make(world)).put("notes/n1")
        armed.lose_request = lose_request
        armed.arm(script, times=4)
        with pytest.raises(StoreUnavailable):
            await retire(world)
        armed.times = 0
        await store.apps.finish_deletions()
        stone = await stone_of(world)
        assert stone is not None
        assert stone.until
        assert (await world.events()).count("app_ended_by_operator") == 1
        assert [(kind, why) for kind, why, _ in await app_events(world)] == [("app.deleted", "by_operator"), ENDED]
        assert broken(await checked(store)) == set()


async def stone_of(world: World) -> Tombstone | None:
    packed: Any = await world.store.client.get(keys.app(world.app.client_id))
    return Tombstone.unpack(packed or b"")


async def test_a_tombstone_of_the_previous_release_is_a_deletion_in_progress(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    name = keys.app(world.app.client_id)
    await memory_store.client.set(name, b"\xd9 " + world.user.encode())  # msgpack: who owned it
    memory_store.apps.forget()
    assert await memory_store.apps.fresh(world.app.client_id) == (None, world.user)
    await memory_store.apps.finish_deletions()
    assert await memory_store.apps.fresh(world.app.client_id) == (None, None)
    assert (await due(world)).keys() == {world.app.client_id}
    assert await memory_store.apps.remembered(world.app.client_id) is None


async def test_a_deleted_apps_signing_secret_is_reencrypted(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    before = await memory_store.webhooks.target(world.app.client_id)
    await retire(world)
    newer = rotated(memory_store, 77)
    progress = [step async for step in newer.reencryption.run(0)][-1]
    assert isinstance(progress, Progress)
    app = await newer.apps.remembered(world.app.client_id)
    assert app is not None
    assert app.webhook_secrets[0][0] == 77
    assert await newer.webhooks.target(world.app.client_id) == before
    assert await memory_store.client.pttl(keys.app(world.app.client_id)) > GRACE, "its end stays"


async def test_a_tombstone_keeps_only_the_name_and_the_webhook(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    uris = tuple(f"https://a{n}.example/{'x' * 1900}" for n in range(20))
    await memory_store.apps.update(world.app.client_id, redirect_uris=uris, homepage=f"https://a.example/{'h' * 1900}")
    await retire(world)
    assert await memory_store.client.strlen(keys.app(world.app.client_id)) < 500
    assert (await memory_store.webhooks.target(world.app.client_id)) is not None


async def test_a_sweep_finishes_interrupted_deletions_and_drops_names_of_deleted_apps(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    client = world.app.client_id
    await memory_store.apps.begin_deletion(client)
    await memory_store.app_sweep.sweep()
    assert until_of(await stone_of(world)) == 0, "another process may be at it"
    clock.advance(601)
    await memory_store.app_sweep.sweep()
    assert until_of(await stone_of(world)) > 0
    clock.advance(LASTS / 1000 + 1)
    await memory_store.client.set(keys.APPS_SWEPT, "1")
    await memory_store.app_sweep.sweep()
    assert await memory_store.client.zscore(keys.APPS, client) is not None, "another process has begun a sweep"
    await memory_store.client.delete(keys.APPS_SWEPT)
    await memory_store.app_sweep.sweep()
    assert await memory_store.client.zscore(keys.APPS, client) is None


async def test_a_running_server_finishes_anothers_interrupted_deletions(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    memory_store.app_sweep.asks = 0
    async with memory_store.app_sweep.sweeping():
        await asyncio.sleep(0)  # what was open at its start is done
        await memory_store.apps.begin_deletion(world.app.client_id)
        clock.advance(601)
        async with asyncio.timeout(10):
            while not until_of(await stone_of(world)):
                await memory_store.client.delete(keys.APPS_SWEPT)


def until_of(stone: Tombstone | None) -> int:
    return stone.until if stone else -1


async def test_a_purge_removes_documents_kept_by_an_earlier_deletion(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = await keeping(memory_store, monkeypatch)
    await retire(world)
    assert await refusal_of(memory_store.apps.begin_deletion(world.app.client_id)) == "not_found"
    await memory_store.apps.delete(world.app.client_id)
    assert not await memory_store.client.exists(*keys.hosted(world.user, world.app.client_id).values())
    assert (await world.events())[-1] == "app_purged_by_operator"
    await memory_store.apps.check_free(world.app.client_id)
