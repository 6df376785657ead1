"""Writes layout2.json: what the release before layout 3 kept for apps, for the test that the next ones go on with it.

It runs in a checkout of commit 40569dc, the last of layout 2, and is never changed again:

    git worktree add ../layout2 40569dc
    cp tests/support/data/write_layout2.py ../layout2/tests/
    (cd ../layout2 && PYTHONPATH=. python tests/write_layout2.py) > tests/support/data/layout2.json
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.wiring import Store
from tests.support.store.document_app import Keeper
from tests.support.store.world import World

RING = KeyRing.generate(1)


async def main() -> None:
    client = await connect("memory")
    hasher = PasswordHasher(8192, 1)
    store = Store(client, Keys(KeyRing.parse(RING)), hasher, session_idle=14 * 86400, session_lifetime=30 * 86400)
    await store.key_state.check(store.keys.ring)
    facts = {
        "connected": await one(store, keeps=True, leaves=False),
        "left": await one(store, keeps=True, leaves=True),
        "left_nothing": await one(store, keeps=False, leaves=True),
    }
    seconds, micros = await client.time()
    rows = [await row(client, key) for key in sorted([key async for key in client.scan_iter()])]
    header = {"layout": 2, "commit": "40569dc", "moment": seconds * 1000 + micros // 1000, "keys": RING, **facts}
    json.dump({**header, "rows": rows}, sys.stdout, indent=0)
    await store.close()


async def one(store: Store, *, keeps: bool, leaves: bool) -> dict[str, Any]:
    """A person who has connected an app, which keeps a document or not, and disconnected it or not."""
    w = await World.make(store)
    tokens = await w.tokens()
    if keeps:
        await (await Keeper.make(w)).put("notes/n1", b'"kept"')
    if leaves:
        await w.revoke_app()
    return {"user": w.user, "email": w.email, "client": w.app.client_id, "access": tokens.access_token}


async def row(client: Any, key: bytes) -> list[Any]:
    """A key, its type, what it holds, and the ms it has to live (-1: for ever)."""
    kind = (await client.type(key)).decode()
    read = {
        "string": lambda: client.get(key),
        "hash": lambda: client.hgetall(key),
        "set": lambda: client.smembers(key),
        "zset": lambda: client.zrange(key, 0, -1, withscores=True),
        "stream": lambda: client.xrange(key),
    }
    value = await read[kind]()
    if kind == "zset":
        value = {text(member): int(score) for member, score in value}
    elif kind == "hash":
        value = {text(name): text(field) for name, field in value.items()}
    elif kind == "set":
        value = sorted(map(text, value))
    elif kind == "string":
        value = text(value)
    else:
        value = [[text(entry), {text(name): text(field) for name, field in fields.items()}] for entry, fields in value]
    return [text(key), kind, value, await client.pttl(key)]


def text(raw: bytes) -> str:
    return raw.decode("latin-1")


if __name__ == "__main__":
    asyncio.run(main())
