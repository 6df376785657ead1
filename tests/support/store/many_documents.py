"""Documents in a store for tests: written as an app does, inserted by the thousand, recounted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from store import keys
from store.apps.registration import Registration
from store.crypto.keyring import KeyRing, Keys, SecretKey
from store.documents.documents import Conditions
from store.results import Caller
from store.wiring import Store

SCOPES = ("profile", "data:read", "data:write")
WRITE = "data:write"


def rotated(store: Store, *ids: int) -> Store:
    """The same store for a process with new keys of these ids at the front of its ring."""
    new = (SecretKey.parse(KeyRing.generate(key_id)) for key_id in ids)
    ring = Keys(KeyRing((*new, *store.keys.ring.keys)))
    return Store(store.client, ring, store.hasher, session_idle=60, session_lifetime=60)


async def connect_app(store: Store, user: str, app: Registration) -> Caller:
    """The app, allowed by the person to read and write."""
    tokens = await store.tokens.mint(user, app, SCOPES)
    token = store.tokens.open_access(tokens.access_token)
    assert token is not None
    return Caller.of(token, SCOPES)


async def write(store: Store, caller: Caller, documents: Mapping[str, bytes]) -> None:
    """Writes documents by `collection/id`, ignoring the window."""
    for number, (name, content) in enumerate(documents.items()):
        if number % 50 == 0:
            await store.client.delete(keys.limit(caller.user, "data-write", caller.client))
        collection, _, document_id = name.partition("/")
        await store.documents.write(caller, WRITE, collection, document_id, content, Conditions())


async def stock(
    store: Store, user: str, client: str, documents: Mapping[str, bytes], at: int = 1_700_000_000_000
) -> None:
    """Inserts documents at once, as `write_document.lua` leaves them, each with an ETag equal to its position."""
    hosted = keys.hosted(user, client)
    counts: dict[Any, Any] = {"documents": 0, "bytes": 0, "sequence": len(documents)}
    async with store.client.pipeline(transaction=False) as batch:
        for place, (name, content) in enumerate(documents.items(), 1):
            collection = name.partition("/")[0]
            batch.hset(hosted["docs"], name, store.cipher.seal(user, client, name, content))
            batch.hset(hosted["meta"], name, f"{place} {len(content)} {at} {at}")
            batch.zadd(hosted["index"], {name: 0})
            for field, by in (("documents", 1), ("bytes", len(content)), (f"n:{collection}", 1)):
                counts[field] = counts.get(field, 0) + by
            counts[f"b:{collection}"] = counts.get(f"b:{collection}", 0) + len(content)
        counts["collections"] = sum(field.startswith("n:") for field in counts)
        batch.hset(hosted["usage"], mapping=counts)
        await batch.execute()


async def check_usage(store: Store, user: str, client: str) -> int:
    """Compares the usage row with the four keys; returns the number of documents."""
    hosted = keys.hosted(user, client)
    meta: dict[Any, Any] = await store.client.hgetall(hosted["meta"])
    assert sorted(meta) == await store.client.zrange(hosted["index"], 0, -1)
    assert set(meta) == set(await store.client.hkeys(hosted["docs"]))
    counted: dict[bytes, int] = {b"documents": 0, b"bytes": 0}
    for name, row in meta.items():
        collection, size = name.partition(b"/")[0], int(row.split()[1])
        for field, by in ((b"documents", 1), (b"bytes", size), (b"n:" + collection, 1), (b"b:" + collection, size)):
            counted[field] = counted.get(field, 0) + by
    counted[b"collections"] = sum(field.startswith(b"n:") for field in counted)
    usage = {field: int(value) for field, value in (await store.client.hgetall(hosted["usage"])).items()}
    usage.pop(b"sequence", None)
    assert {field: value for field, value in usage.items() if value} == {f: v for f, v in counted.items() if v}
    return counted[b"documents"]


def numbered(number: int, size: int, collections: int = 3) -> dict[str, bytes]:
    """This many JSON documents of about `size` bytes, spread over collections, in order of their names."""
    filling = "x" * max(0, size - 20)
    made = {f"c{n % collections:03d}/doc{n:06d}": json.dumps({"n": n, "text": filling}).encode() for n in range(number)}
    return dict(sorted(made.items()))
