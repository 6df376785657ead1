"""What the release before layout 2 has written, and a store that is filled with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from store.wiring import Store
from tests.support.store.world import World

DATA = Path(__file__).resolve().parent.parent / "data"


OLD: dict[str, Any] = json.loads((DATA / "layout1.json").read_text("utf-8"))


ADA, BOB, CAROL, DORA, EVE, FRANK = (OLD[name] for name in ("ada", "bob", "carol", "dora", "eve", "frank"))


async def fill(client: Redis, old: dict[str, Any] = OLD) -> None:
    """Puts the rows of an old release into an empty store. What expires has as long to live as it had then."""
    for name, kind, value, lives in old["rows"]:
        key = name.encode("latin-1")
        await put(client, key, kind, value)
        if lives >= 0:
            await client.pexpire(key, lives)


async def put(client: Any, key: bytes, kind: str, value: Any) -> None:
    """One row."""

    def raw(text: str) -> bytes:
        return text.encode("latin-1")

    if kind == "string":
        await client.set(key, raw(value))
    elif kind == "hash":
        await client.hset(key, mapping={raw(field): raw(text) for field, text in value.items()})
    elif kind == "set":
        await client.sadd(key, *map(raw, value))
    elif kind == "list":
        await client.rpush(key, *map(raw, value))
    elif kind == "zset":
        await client.zadd(key, {raw(member): int(score) for member, score in value.items()})
    else:
        for entry, fields in value:
            await client.xadd(key, {raw(field): raw(text) for field, text in fields.items()}, id=entry)


async def world_of(store: Store, person: dict[str, Any], cookie: str = "") -> World:
    """A person of the old release, and the app with which they are known."""
    world = World()
    world.store, world.user, world.email, world.codes = store, person["user"], person["email"], []
    app = await store.apps.active(person["client"])
    assert app is not None
    world.app = app
    world.secret = person.get("client_secret")
    session = store.sessions.open(cookie) if cookie else await world.sign_in()
    assert session is not None
    world.session = session
    return world
