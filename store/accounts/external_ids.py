"""The index of external ids: the user id for each id that an outside directory gave a person (SCIM's `externalId`).

It works like the index of addresses (`store/accounts/addresses.py`): an entry is in another slot than the person's row,
so it counts only if the row has the same id. An entry is first a reservation for a minute, and then permanent. A
permanent entry that the row contradicts is the rest of an interrupted operation, and gives way to anybody.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import EMAIL_RESERVATION

MOST = 255
"""Characters of an external id."""


def check_external_id(text: str) -> str:
    """The id, if it is 1 to 255 printable characters. Raises ValueError."""
    if not 1 <= len(text) <= MOST or not text.isprintable():
        raise ValueError(f"externalId is 1 to {MOST} printable characters.")
    return text


def key_of(name: str) -> str:
    """The key of an index entry."""
    return keys.identity(name, "external")


def name_of(external_id: str) -> str:
    """The name of the index entry: 128 bits of a digest, in 22 characters."""
    digest = hashlib.sha256(external_id.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class ExternalIds:
    """Finds, reserves and frees external ids, already checked. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def entry(self, external_id: str) -> str | None:
        """The user id in the index; the person's row decides whether the entry counts."""
        with wrapped():
            entry: Any = await self._client.get(key_of(name_of(external_id)))
        return entry.decode() if isinstance(entry, bytes) else None

    async def find(self, external_id: str) -> str | None:
        """The user id of the person whose row has this id."""
        user = await self.entry(external_id)
        return user if user and await self._kept(user) == external_id else None

    async def _kept(self, user: str) -> str:
        """The id in a person's row, or ""."""
        with wrapped():
            kept: Any = await self._client.hget(keys.person(user)["user"], "external_id")
        return kept.decode() if isinstance(kept, bytes) else ""

    async def reserve(self, external_id: str, user: str) -> bool:
        """Reserves the id for 60 s, unless the entry is permanent; returns whether it is this person's now."""
        if await self._take(external_id, user) or await self.entry(external_id) == user:
            return True
        return await self.free_stale(name_of(external_id)) and await self._take(external_id, user)

    async def keep(self, external_id: str, user: str) -> bool:
        """Makes a reservation permanent; returns whether it was still this person's."""
        known = {"identity": key_of(name_of(external_id))}
        return (await self._scripts.run("keep_identity", known, user_id=user)).word == "ok"

    async def keep_all(self, reserved: Iterable[tuple[str, str]]) -> list[bool]:
        """As `keep`, for many ids and their people at once."""
        calls = [({"identity": key_of(name_of(external_id))}, {"user_id": user}) for external_id, user in reserved]
        return [reply.word == "ok" for reply in await self._scripts.run_many("keep_identity", calls)]

    async def release(self, external_id: str, user: str) -> None:
        """Frees the id, if it is this person's."""
        await self._free(name_of(external_id), user)

    async def free_stale(self, name: str) -> bool:
        """Frees the id of this name if its permanent entry matches nobody's row. Returns whether there was such an
        entry."""
        key = key_of(name)
        with wrapped():
            lasts = await self._client.pttl(key) == -1
            entry: Any = await self._client.get(key)
            if not lasts or not isinstance(entry, bytes):
                return False
        user = entry.decode()
        kept = await self._kept(user)
        if kept and name_of(kept) == name:
            return False
        await self._free(name, user)
        return True

    async def _take(self, external_id: str, user: str) -> bool:
        with wrapped():
            key = key_of(name_of(external_id))
            return bool(await self._client.set(key, user, nx=True, px=EMAIL_RESERVATION))

    async def _free(self, name: str, user: str) -> None:
        await self._scripts.run("release_identity", {"identity": key_of(name)}, user_id=user)
