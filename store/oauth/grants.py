"""The apps a person has connected. SPEC 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.seal import fresh_epoch
from store.engine.scripts import Scripts
from store.lifetimes import APPS_READ, CREDITS_READ, CREDITS_USAGE, GRACE, MCP_MESSAGES
from store.moments import at
from store.oauth.budgets import Budget, told_budgets
from store.oauth.exchange.handed_on import HandedOn, told_handed_on
from store.oauth.guard import admitted
from store.phrases import Phrase
from store.rates import Rates
from store.refused import Refused, refuse_signed_out
from store.results import Caller, Preferences, Profile, Visitor, Window, profile_of
from store.webhooks.relay_wakeup import RelayWakeup


class Doings(NamedTuple):
    """`calls`: AI calls of today (UTC); `running`: AI calls in progress. The others are requests of the last minute:
    that read documents, that write them, and of other kinds. Sign-in, refreshes and userinfo are not among them: all
    apps of a person share their window."""

    calls: int = 0
    running: int = 0
    reads: int = 0
    writes: int = 0
    others: int = 0


NOTHING = Doings()
FEW_APPS = 50


class WatchedApp(NamedTuple):
    """A connected app for a person who watches. `spent`: micro-dollars of this month."""

    client: str
    paused: bool
    spent: int
    budgets: tuple[Budget, ...]
    doings: Doings


class Watched(NamedTuple):
    """What a page that stays open shows. `mark` is the same while there was no further AI call."""

    preferences: Preferences
    apps: tuple[WatchedApp, ...]
    mark: str

    @property
    def weight(self) -> float:
        """How much the store reads for it: 1 for all who have few apps."""
        return max(1.0, len(self.apps) / FEW_APPS)


def windows_of(rates: Rates) -> str:
    """The windows of an app's requests, as scripts take them. `told_doings` has their order."""
    groups = (
        *(rates.data_read, rates.data_list, rates.data_write),
        *(CREDITS_READ, CREDITS_USAGE, APPS_READ, MCP_MESSAGES),
    )
    return " ".join(f"{one.name} {one.limit} {one.period}" for one in groups)


def told_doings(row: Sequence[int]) -> Doings:
    """The numbers in a script's answer."""
    calls, running, read, listed, written, *others = row
    return Doings(calls, running, read + listed, written, sum(others))


def watched(row: Sequence[Any]) -> WatchedApp:
    """An app in a script's answer."""
    client, paused, spent, budgets, doings = row
    return WatchedApp(client.decode(), bool(paused), int(spent), told_budgets(budgets), told_doings(doings))


@dataclass(frozen=True, slots=True)
class Grant:
    """A connected app, or a disconnected one whose hosted data is kept until `data_until`. `documents` and `bytes` are
    its hosted data for the person; `spend_limit` (None without one) and `spent` are micro-dollars of this month;
    `app_deleted`: the app itself is gone; `paused_at`: since when the person has paused it;
    `budgets`: what the person granted it by authorization details; `doings`: what it does at the moment;
    `handed_on`: the tree of its delegated tokens; `issuer`: the issuer of assertions that gave the app access, empty if
    the person did; `left_out`: scopes that the person left out, for the export."""

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
    issuer: str = ""
    budgets: tuple[Budget, ...] = ()
    doings: Doings = NOTHING
    handed_on: tuple[HandedOn, ...] = ()
    left_out: tuple[str, ...] = ()


PAGE = 10
"""Places on a page: one for an app, two for an app that may spend, whose limits and budgets have fields. A place takes
up to 2.7 KB of the page."""
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

    def __init__(self, scripts: Scripts, wakeup: RelayWakeup, idle: int, rates: Rates) -> None:
        self._rates = rates
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
            prefix=keys.prefix(session.user),
            windows=windows_of(self._rates),
        )
        refuse_signed_out(reply)
        grants = [_grant(row) for row in reply.rows("rows")]
        return GrantPage(profile_of(session.user, reply), grants, reply.number("page"), reply.number("pages"))

    async def watch(self, session: Session, before: Watched | None = None) -> Watched:
        """What the connected apps do, for a page that stays open. Does not extend the session. `before`: the answer to
        the same session's earlier call, which spares the store some work. Raises SignedOut."""
        reply = await self._scripts.run(
            "watch_apps",
            session.keys(),
            prefix=keys.prefix(session.user),
            windows=windows_of(self._rates),
            known=before.mark if before else "",
        )
        refuse_signed_out(reply)
        apps, mark = tuple(watched(row) for row in reply.rows("rows")), reply.text("mark")
        if before and mark == before.mark:
            calls = {app.client: app.doings.calls for app in before.apps}
            apps = tuple(app._replace(doings=app.doings._replace(calls=calls.get(app.client, 0))) for app in apps)
        return Watched(Preferences.of(reply.text("preferences")), apps, mark)

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

    async def revoke(self, session: Session, client: str, visitor: Visitor, *, keeps_out: bool = False) -> datetime:
        """Ends every token of the pair at once; returns when the hosted data ends, in 30 days. `keeps_out`: an issuer
        of assertions could connect the app again, and must not. Raises SignedOut, Refused("not_found")."""
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
            keeps_out="1" if keeps_out else "",
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "not_found":
            raise Refused("not_found", NOT_CONNECTED)
        self._wakeup.add(session.user)
        return at(reply.number("until"))

    async def end_handed_on(self, session: Session, client: str, one: str, visitor: Visitor) -> None:
        """Ends a delegated token of the app (its id) and everything that came from it, from the next call on. Raises
        SignedOut, Refused("not_found")."""
        reply = await self._scripts.run(
            "end_delegated",
            {
                **session.keys(),
                "grant": keys.grant(session.user, client),
                "family": keys.token(session.user, client, one, 0)["family"],
            },
            client=client,
            family_id=one,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "not_found":
            raise Refused("not_found", Phrase("This access has already ended."))

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
    client, scope, connected, used, revoked, ends, documents, size, limit, spent, deleted, paused, issuer, *trees = row
    budgets, doings, handed_on = trees
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
        issuer.decode(),
        told_budgets(budgets),
        told_doings(doings),
        tuple(told_handed_on(one) for one in handed_on),
    )
