"""The index of people's identities at other servers: the user id for each pair of issuer and subject.

It works like the index of addresses (`store/accounts/addresses.py`): an entry is in another slot than the person's
keys, so it counts only if the person's list has it. An entry is first a reservation for a minute, and then permanent.
A permanent entry that the list contradicts is the rest of an interrupted operation, and gives way to anybody.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.external_ids import ExternalIds
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import EMAIL_RESERVATION
from store.moments import at

MOST_IDENTITIES = 20
"""Identities at other servers of one person."""
MOST_LABEL = 120
"""Characters of a label."""
_ISSUER = re.compile(r"[!-~]{1,255}")
_SUBJECT = re.compile(r"[ -~]{1,255}")
_USED = re.compile(r"(\d+) (\d+) (.*)")


class UpstreamIdentity(NamedTuple):
    """A person at another server: the issuer, and the subject there (OpenID Connect Core 2)."""

    issuer: str
    subject: str

    @property
    def name(self) -> str:
        """The name of the index entry: 128 bits of a digest, in 22 characters."""
        digest = hashlib.sha256(self.text.encode()).digest()[:16]
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    @property
    def text(self) -> str:
        """The form in a person's list. No issuer has a space."""
        return f"{self.issuer} {self.subject}"


class LinkedIdentity(NamedTuple):
    """An identity in a person's list. `linked_at` and `used_at` are None for one that was imported, or never used;
    `label`: what the other server called the person, empty if unknown."""

    identity: UpstreamIdentity
    linked_at: datetime | None
    used_at: datetime | None
    label: str


def check_identity(issuer: object, subject: object) -> UpstreamIdentity:
    """The identity, if both are 1 to 255 printable ASCII characters, in the issuer without spaces. Raises
    ValueError."""
    if not isinstance(issuer, str) or not isinstance(subject, str):
        raise ValueError("A link has an issuer and a subject, both text.")
    if not _ISSUER.fullmatch(issuer) or not _SUBJECT.fullmatch(subject):
        raise ValueError("The issuer and the subject of a link have 1 to 255 printable ASCII characters.")
    return UpstreamIdentity(issuer, subject)


def identity_of(text: bytes) -> UpstreamIdentity:
    """An identity in the form of a person's list, with or without when it was used."""
    issuer, _, subject = text.decode().partition("\n")[0].partition(" ")
    return UpstreamIdentity(issuer, subject)


def linked_identities(row: list[bytes]) -> tuple[LinkedIdentity, ...]:
    """A person's list in a script's answer, the names and the values in turn: the earliest link first."""
    found = []
    for value in row[1::2]:
        used = _USED.fullmatch(value.decode().partition("\n")[2])
        linked_at, used_at = (int(used[1]), int(used[2])) if used else (0, 0)
        label = used[3] if used else ""
        one = LinkedIdentity(
            identity_of(value), at(linked_at) if linked_at else None, at(used_at) if used_at else None, label
        )
        found.append((linked_at, one.identity, one))
    return tuple(one for _, _, one in sorted(found))


def label_of(text: str) -> str:
    """A label on one line, cut."""
    return "".join(one if one.isprintable() else " " for one in text[:MOST_LABEL]).strip()


class Identities:
    """Finds, reserves and frees identities. `external`: the ids that an outside directory gave people. Every method
    raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self.external = ExternalIds(client, scripts)
        self._client = client
        self._scripts = scripts

    async def find(self, identity: UpstreamIdentity) -> str | None:
        """The person with this identity, or None."""
        user = await self.entry(identity)
        if user is None:
            return None
        with wrapped():
            listed = await self._client.hexists(keys.person(user)["identities"], identity.name)
        return user if listed else None

    async def entry(self, identity: UpstreamIdentity) -> str | None:
        """The user id in the index; the person's list decides whether the entry counts."""
        with wrapped():
            entry: Any = await self._client.get(keys.identity(identity.name))
        return entry.decode() if isinstance(entry, bytes) else None

    async def reserved(self, identity: UpstreamIdentity) -> str | None:
        """The user id of a reservation, which is at most 60 s old; None for a permanent entry."""
        with wrapped():
            lasts = await self._client.pttl(keys.identity(identity.name)) > 0
        return await self.entry(identity) if lasts else None

    async def reserve(self, identity: UpstreamIdentity, user: str) -> bool:
        """Reserves the identity for 60 s, unless the entry is permanent; returns whether it is this person's now."""
        if await self._take(identity, user):
            return True
        if await self.entry(identity) == user:
            return True
        return await self.free_stale(identity.name) and await self._take(identity, user)

    async def keep(self, identity: UpstreamIdentity, user: str) -> bool:
        """Makes a reservation permanent; returns whether it was still this person's."""
        known = {"identity": keys.identity(identity.name)}
        return (await self._scripts.run("keep_identity", known, user_id=user)).word == "ok"

    async def keep_all(self, reserved: Iterable[tuple[UpstreamIdentity, str]]) -> list[bool]:
        """As `keep`, for many identities and their people at once."""
        calls = [({"identity": keys.identity(identity.name)}, {"user_id": user}) for identity, user in reserved]
        return [reply.word == "ok" for reply in await self._scripts.run_many("keep_identity", calls)]

    async def restore(self, identity: UpstreamIdentity, user: str) -> bool:
        """Writes the entry of an identity on the person's list that lost it; returns whether it is this person's
        now. A lost answer leaves a list without its entry: the entry was a reservation, which has expired."""
        with wrapped():
            if not await self._client.hexists(keys.person(user)["identities"], identity.name):
                return False
        return await self.reserve(identity, user) and await self.keep(identity, user)

    async def release(self, name: str, user: str) -> None:
        """Frees the identity of this name, if it is this person's."""
        await self._scripts.run("release_identity", {"identity": keys.identity(name)}, user_id=user)

    async def drop(self, name: str, user: str) -> None:
        """Takes the identity of this name off the person's list."""
        await self._scripts.run("drop_identity", keys.person(user), name=name)

    async def _take(self, identity: UpstreamIdentity, user: str) -> bool:
        with wrapped():
            return bool(await self._client.set(keys.identity(identity.name), user, nx=True, px=EMAIL_RESERVATION))

    async def free_stale(self, name: str) -> bool:
        """Frees the identity of this name if its permanent entry is on nobody's list. Returns whether there was such an
        entry."""
        key = keys.identity(name)
        with wrapped():
            lasts = await self._client.pttl(key) == -1
            entry: Any = await self._client.get(key)
            if not lasts or not isinstance(entry, bytes):
                return False
            user = entry.decode()
            if await self._client.hexists(keys.person(user)["identities"], name):
                return False
        await self.release(name, user)
        return True
