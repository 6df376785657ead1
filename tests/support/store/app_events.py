"""An app that stores data for a person, actions that send it events, and the events that it got."""

from __future__ import annotations

from typing import Any

from store import keys
from store.lifetimes import GRACE
from store.wiring import Store
from tests.support.calls.webhooks import wanted
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import VISITOR, World, refusal_of

SECONDS = GRACE / 1000
Events = list[tuple[str, str]]


async def posted_events(world: World, client: str | None = None) -> Events:
    """Types and reasons of the app's events about this person, oldest first, after all were moved."""
    await world.store.outbox.relay_shards({world.user[:3]}, wanted)
    assert not await world.store.client.exists(keys.outbox(world.user)), "an outbox without events takes no room"
    rows = await world.store.deliveries.list(client or world.app.client_id, most=1000)
    assert {row.client_id for row in rows} <= {client or world.app.client_id}
    return [(row.type, row.details.get("reason", "")) for row in reversed(rows) if row.sub == world.user]


async def posted_ids(world: World) -> list[tuple[str, tuple[str, str]]]:
    """The app's events with their ids, if they are at most 30 days old."""
    events = await posted_events(world)
    rows = await world.store.deliveries.list(world.app.client_id, most=1000)
    return list(zip([row.id for row in reversed(rows)], events, strict=True))


async def due(world: World) -> dict[str, int]:
    """The clients on the due list of the person's shard."""
    listed: Any = await world.store.client.zrange(keys.outbox_keys(world.user[:3])["due"], 0, -1, withscores=True)
    theirs = (entry.decode().split(":") for entry, _ in listed)
    return {
        client: int(score)
        for (member, client), (_, score) in zip(theirs, listed, strict=True)
        if member == keys.member(world.user)
    }


async def keeping(store: Store) -> World:
    """A person who has connected an app that stores a document."""
    world = await World.make(store)
    await (await Keeper.make(world)).put("notes/n1")
    return world


async def disconnect(world: World) -> None:
    await world.revoke_app()


async def replay(world: World) -> None:
    first = await world.tokens()
    await world.refresh(first.refresh_token)
    for _ in range(2):
        assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"


async def replay_a_code(world: World) -> None:
    code = await world.code()
    await world.exchange(code)
    for _ in range(2):
        assert await refusal_of(world.exchange(code)) == "invalid_grant"


async def give_back_by_a_stranger(world: World) -> None:
    tokens = await world.tokens()
    for _ in range(2):
        await world.store.tokens.revoke(None, tokens.refresh_token)


async def delete_the_account(world: World) -> None:
    await world.store.people.delete(world.user)


async def delete_all(world: World) -> None:
    await reauth_if_needed(world)
    assert await world.store.person_documents.delete_all(world.session, world.app.client_id, VISITOR) == 1
    assert await world.store.person_documents.delete_all(world.session, world.app.client_id, VISITOR) == 0


REVOKED = ("grant.revoked", "disconnected_by_person")
DELETED, OVER = ("data.deleted", "deleted_by_person"), ("data.deleted", "grace_over")
