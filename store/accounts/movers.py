"""Writes people who move in, and changes those who are there already."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from store import keys
from store.accounts.identities import MOST_IDENTITIES, UpstreamIdentity
from store.engine.scripts import Scripts


class MoverRow(NamedTuple):
    """A person to write. `password`: the raw hash; `secret`: of an authenticator app, sealed, or empty; `created_at`:
    epoch ms, None for now."""

    user: str
    email: str
    name: str
    password: bytes
    verified: bool = False
    secret: bytes = b""
    created_at: int | None = None
    status: str = "active"
    identities: Sequence[UpstreamIdentity] = ()
    groups: Sequence[str] = ()
    external_id: str = ""


class Movers:
    """Writes rows of people whose addresses and identities are reserved. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def create(self, rows: Sequence[MoverRow]) -> None:
        """Writes people of one shard. Who is there already is left alone."""
        shard = rows[0].user[:3]
        people = [
            (
                keys.member(one.user),
                one.email,
                int(one.verified),
                one.name,
                "" if one.created_at is None else str(one.created_at),
                one.status,
                "\n".join(one.groups),
                _in_pairs(one.identities),
                len(one.password),
                len(one.secret),
                one.external_id,
            )
            for one in rows
        ]
        await self._scripts.run(
            "import_people",
            {"users": keys.shard_users(shard), **keys.changed(rows[0].user)},
            prefix=keys.member_prefix(shard),
            people=json.dumps(people),
            secrets=b"".join(part for one in rows for part in (one.password, one.secret)),
        )

    async def update(self, user: str, email: str, name: str, identities: Sequence[UpstreamIdentity]) -> str:
        """Sets the name and adds identities, if the person has the address. Returns `ok`, `not_found`, or `full` for
        more than MOST_IDENTITIES, which changes nothing."""
        reply = await self._scripts.run(
            "update_imported",
            {**keys.person(user), **keys.changed(user)},
            member=keys.member(user),
            email=email,
            name=name,
            added=json.dumps(_in_pairs(identities)),
            most=MOST_IDENTITIES,
        )
        return reply.word


def _in_pairs(identities: Sequence[UpstreamIdentity]) -> list[str]:
    """The name and the text of each identity."""
    return [text for one in identities for text in (one.name, one.text)]
