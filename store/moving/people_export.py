"""Exports all people as the lines of an import, shard by shard, in constant memory."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from typing import Any

from store import keys
from store.accounts.identities import identity_of
from store.crypto.foreign.hashes import unpack
from store.crypto.foreign.texts import text_of
from store.crypto.passwords import hash_text
from store.documents.archive import json_line
from store.errors import wrapped
from store.fsck.reading import in_steps
from store.moments import at, timestamp
from store.results import groups_in
from store.wiring import Store

SHARDS_AT_ONCE = 64
"""Shards whose lists are read together: of a million people some 16,000."""
AT_ONCE = 256
_FIELDS = ("email", "verified", "name", "created_at", "status", "groups", "password", "external_id")


async def people_lines(store: Store, *, secrets: bool) -> AsyncIterator[tuple[bytes, int]]:
    """Yields lines of people, with how many there are. `secrets`: with password hashes and the secrets of authenticator
    apps. Raises StoreUnavailable; StoreError for a secret that doesn't open."""
    for shards in in_steps(keys.SHARDS, SHARDS_AT_ONCE):
        with wrapped():
            async with store.client.pipeline(transaction=False) as batch:
                for shard in shards:
                    batch.smembers(keys.shard_users(shard))
                lists: list[set[bytes]] = await batch.execute()
        users = [
            keys.user_of(shard, one) for shard, listed in zip(shards, lists, strict=True) for one in sorted(listed)
        ]
        for some in in_steps(users, AT_ONCE):
            lines = await _lines(store, some, secrets)
            yield b"".join(lines), len(lines)


async def _lines(store: Store, users: Sequence[str], secrets: bool) -> list[bytes]:
    with wrapped():
        async with store.client.pipeline(transaction=False) as batch:
            for user in users:
                person = keys.person(user)
                batch.hmget(person["user"], _FIELDS)
                batch.hvals(person["identities"])
                batch.hget(person["factors"], "secret")
            answers: list[Any] = await batch.execute()
    rows = zip(users, answers[::3], answers[1::3], answers[2::3], strict=True)
    # Whose deletion has begun has no status.
    return [json_line(_record(store, *row, secrets=secrets)) for row in rows if row[1][4]]


def _record(
    store: Store, user: str, row: list[bytes | None], linked: list[bytes], sealed: bytes | None, *, secrets: bool
) -> dict[str, Any]:
    email, verified, name, created, status, groups, password, external_id = (one or b"" for one in row)
    record: dict[str, Any] = {
        "email": email.decode(),
        "email_verified": verified == b"1",
        "name": name.decode(),
        "created_at": timestamp(at(int(created))),
        "status": status.decode(),
        "links": [identity_of(text)._asdict() for text in sorted(linked)],
        "groups": list(groups_in(groups.decode())),
    }
    if external_id:
        record["external_id"] = external_id.decode()
    if secrets:
        foreign = unpack(password)
        text = text_of(foreign) if foreign else hash_text(password)
        if text:
            record["password_hash"] = text
        if sealed:
            record["totp_secret"] = base64.b32encode(store.totp_secrets.open(user, sealed)).decode().rstrip("=")
    return record
