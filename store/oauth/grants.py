"""The apps a person has connected. SPEC 3.1."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.seal import fresh_epoch
from store.engine.scripts import Scripts
from store.lifetimes import APPS_READ, GRACE
from store.moments import at
from store.oauth.budgets import Budget, told_budgets
from store.oauth.guard import admitted
from store.phrases import Phrase
from store.refused import Refused, refuse_signed_out
from store.results import Caller, Profile, Visitor, Window, profile_of
from store.webhooks.relay_wakeup import RelayWakeup


@dataclass(frozen=True, slots=True)
class Grant:
    """A connected app, or a disconnected one whose hosted data is kept until `data_until`. `documents` and `bytes` are
    its hosted data for the person; `spend_limit` (None without one) and `spent` are micro-dollars of this month;
    `app_deleted`: the app itself is gone; `paused_at`: since when the person has paused it;
    `budgets`: what the person granted it by authorization details."""

    client: str
    scopes: tuple[str, ...]
    connected_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    data_until: datetime | None
    documents: int = 0
    bytes: int = 0
    spend_limit: int | None = None
    spent: int = 0
    app_deleted: bool = False
    paused_at: datetime | None = None
    budgets: tuple[Budget, ...] = ()


PAGE = 50
"""Grants on a page. Each costs the reader a lookup of a registration, and the page some 1.5 KB."""
NOT_CONNECTED = Phrase("This app is not connected.")
MOST_CONNECTED = 200
"""The most apps that another app sees, for the same reason."""


@dataclass(frozen=True, slots=True)
class GrantPage:
    """A page of a person's apps: connected ones first, each kind newest first; `number` counts from 1."""

    profile: Profile
    grants: list[Grant]
    number: int
    pages: int


@dataclass(frozen=True, slots=True)
class GrantCount:
    """How many apps are connected, and how many documents all apps keep, including apps in their grace window."""

    profile: Profile
    apps: int
    documents: int


@dataclass(frozen=True, slots=True)
class Connected:
    """A connected app, as other apps may see it."""

    client: str
    scopes: tuple[str, ...]
    connected_at: datetime
    last_used_at: datetime | None


class Grants:
    """Lists and ends the access of a person's apps. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, wakeup: RelayWakeup, idle: int) -> None:
        self._scripts = scripts
        self._wakeup = wakeup
        self._idle = idle

    async def connected(self, caller: Caller, needed: str) -> tuple[list[Connected], Window]:
        """The person's other connected apps, newest first, at most MOST_CONNECTED. Raises Refused("invalid_token",
        "insufficient_scope" or "rate_limited")."""
        reply = await self._scripts.run(
            "list_connected",
            {
                **keys.token(caller.user, caller.client, caller.family, caller.generation),
                "window": keys.limit(caller.user, APPS_READ.name, caller.client),
            },
            needed=caller.demands(needed),
            limit=APPS_READ.limit,
            period=APPS_READ.period,
            proof=caller.proof,
            client=caller.client,
            grant_prefix=keys.grant_prefix(caller.user),
            most=MOST_CONNECTED,
        )
        window = admitted(reply, APPS_READ, needed)
        rows = [
            Connected(client.decode(), tuple(scope.decode().split()), at(int(since)), _at(used))
            for client, scope, since, used in reply.rows("rows")
        ]
        return rows, window

    async def list(self, session: Session, page: int = 1) -> GrantPage:
        """The signed-in person and a page of their apps; past the last page, the last. Raises SignedOut."""
        reply = await self._scripts.run(
            "list_grants",
            {**session.keys(), **keys.outbox_keys(session.user[:3])},
            grant_prefix=keys.grant_prefix(session.user),
            usage_prefix=keys.usage_prefix(session.user),
            docs_prefix=keys.hosted(session.user, "")["docs"],
            idle=self._idle,
            shard=keys.shard_prefix(session.user),
            member=keys.member(session.user),
            page=page,
            size=PAGE,
        )
        refuse_signed_out(reply)
        grants = [_grant(row) for row in reply.rows("rows")]
        return GrantPage(profile_of(session.user, reply), grants, reply.number("page"), reply.number("pages"))

    async def count(self, session: Session) -> GrantCount:
        """The signed-in person, and the counts of their apps and documents. Raises SignedOut."""
        reply = await self._scripts.run(
            "count_grants",
            session.keys(),
            grant_prefix=keys.grant_prefix(session.user),
            usage_prefix=keys.usage_prefix(session.user),
            idle=self._idle,
        )
        refuse_signed_out(reply)
        return GrantCount(profile_of(session.user, reply), reply.number("apps"), reply.number("documents"))

    async def revoke(self, session: Session, client: str, visitor: Visitor) -> datetime:
        """Ends every token of the pair at once; returns when the hosted data ends, in 30 days. Raises SignedOut,
        Refused("not_found")."""
        reply = await self._scripts.run(
            "revoke_grant",
            {
                **session.keys(),
                **keys.hosted(session.user, client),
                **keys.outbox_keys(session.user[:3]),
                "grant": keys.grant(session.user, client),
            },
            client=client,
            member=keys.member(session.user),
            fresh_epoch=fresh_epoch(),
            grace=GRACE,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "not_found":
            raise Refused("not_found", NOT_CONNECTED)
        self._wakeup.add(session.user)
        return at(reply.number("until"))

    async def pause(self, session: Session, client: str, visitor: Visitor) -> None:
        """From now on every call of the app for this person is refused, until `resume`. Its tokens stay, and refreshes
        go on. Raises SignedOut, Refused("not_found")."""
        await self._set_pause(session, client, visitor, "1")

    async def resume(self, session: Session, client: str, visitor: Visitor) -> None:
        """Ends a pause. Raises SignedOut, Refused("not_found")."""
        await self._set_pause(session, client, visitor, "")

    async def _set_pause(self, session: Session, client: str, visitor: Visitor, pause: str) -> None:
        reply = await self._scripts.run(
            "set_pause",
            {**session.keys(), "grant": keys.grant(session.user, client)},
            client=client,
            pause=pause,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "not_found":
            raise Refused("not_found", NOT_CONNECTED)


def _at(value: bytes) -> datetime | None:
    return at(int(value)) if value else None


def _grant(row: list[Any]) -> Grant:
    client, scope, connected, used, revoked, ends, documents, size, limit, spent, deleted, paused, budgets = row
    return Grant(
        client.decode(),
        tuple(scope.decode().split()),
        at(int(connected)),
        _at(used),
        _at(revoked),
        at(int(ends)) if revoked else None,
        int(documents),
        int(size),
        int(limit) if limit else None,
        int(spent),
        bool(deleted),
        _at(paused),
        told_budgets(budgets),
    )
