"""The operator's actions on accounts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.identities import linked_identities
from store.accounts.people import People
from store.accounts.signin.passkeys import passkeys_of
from store.accounts.signin.sessions import ACTIVITY_SHOWN, Activity, activities, ends_of, live_session
from store.accounts.signin.signin_methods import Security
from store.clock import wall
from store.credits.credits import Credits, Granted
from store.engine.scripts import Reply, Scripts
from store.errors import wrapped
from store.lifetimes import GRACE
from store.moments import at
from store.names import check_reason, is_user_id, normalise_email
from store.oauth.budgets import told_budgets
from store.oauth.grants import Grant
from store.phrases import Phrase
from store.refused import Refused
from store.results import groups_in, unheard

SHARDS_AT_ONCE = 256
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
"""Later ends could be in the year 10000 in UTC, and no row with such an end could be read again."""
TO_BE_DELETED = Phrase("This account is to be deleted. Cancel the deletion first.")


GIVE_REASON = Phrase("Give a reason. The person sees it when they try to sign in.")


class Suspension(NamedTuple):
    """Why a person is suspended: `reason` is shown to the person, `note` to operators alone. It ends with the person's
    first sign-in from `until` on, or only by command."""

    reason: str
    note: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """A person as the operator sees them; `registered` has the client ids of their own apps, `joined` those of
    others whose teams they are in, `kept_out` those that no issuer of assertions may connect. `delete_at`: when the
    operator deletes the account; `external_id`: the id from an outside directory, or ""."""

    user: str
    email: str
    email_verified: bool
    name: str
    picture: str
    status: str
    created_at: datetime
    grants: tuple[Grant, ...]
    activity: tuple[Activity, ...]
    registered: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    suspension: Suspension | None = None
    joined: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()
    delete_at: datetime | None = None
    external_id: str = ""

    @property
    def apps(self) -> tuple[str, ...]:
        """The client ids of the connected apps."""
        return tuple(grant.client for grant in self.grants if grant.revoked_at is None)


class Operator:
    """Acts on accounts; each act is noted in the person's audit trail."""

    def __init__(self, client: Redis, scripts: Scripts, people: People, credits: Credits) -> None:
        self._client = client
        self._scripts = scripts
        self._people = people
        self._credits = credits

    async def find(self, who: str, activity: int = ACTIVITY_SHOWN) -> Person:
        """The person with this e-mail address or user id, with the newest events of each trail. Raises
        Refused("not_found")."""
        by_id = is_user_id(who)
        user = who if by_id else await self._people.find(who)
        person = await self.show(user, activity) if user else None
        if person is None or not (by_id or person.email == who):
            raise Refused("not_found", "No such person.")
        return person

    async def show(self, user: str, activity: int = ACTIVITY_SHOWN) -> Person | None:
        """The person with this user id."""
        reply = await self._scripts.run("describe_user", keys.person(user), grant_prefix=keys.grant_prefix(user))
        return None if reply.word == "not_found" else _person(user, reply, activity)

    async def people(self) -> AsyncIterator[Person]:
        """Every person, by user id."""
        for start in range(0, len(keys.SHARDS), SHARDS_AT_ONCE):
            shards = keys.SHARDS[start : start + SHARDS_AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for shard in shards:
                        batch.smembers(keys.shard_users(shard))
                    lists: list[set[bytes]] = await batch.execute()
            for shard, listed in zip(shards, lists, strict=True):
                for one in sorted(listed):
                    person = await self.show(keys.user_of(shard, one))
                    if person:
                        yield person

    async def suspend(self, who: str, suspension: Suspension) -> Person:
        """Disables a person and keeps why. Raises Refused("not_found"), ValueError."""
        for text in (suspension.reason, suspension.note):
            check_reason(text)
        if not suspension.reason.strip():
            raise ValueError(GIVE_REASON)
        return await self.set_status(who, "disabled", suspension)

    async def set_status(self, who: str, status: str, suspension: Suspension | None = None) -> Person:
        """Enables (`active`) or disables (`disabled`) a person. Disabling kills every token and session at once. An
        earlier suspension is forgotten. Raises Refused("not_found"), Refused("invalid_request") for a person whose
        deletion is planned."""
        person = await self.find(who)
        why = suspension or Suspension("")
        reply = await self._scripts.run(
            "set_user_status",
            {**keys.person(person.user), "outbox": keys.outbox(person.user)},
            status=status,
            reason=why.reason,
            note=why.note,
            ends=round(why.until.timestamp() * 1000) if why.until else "",
            **ends_of(person.user),
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.word == "leaving":
            raise Refused("invalid_request", TO_BE_DELETED)
        return await self.find(person.user)

    async def note(self, user: str, event: str, client: str = "") -> None:
        """Notes an event in a person's audit trail, with the app concerned. Raises Refused("not_found")."""
        reply = await self._scripts.run("record_event", keys.person(user), event=event, client=client)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")

    async def credit(
        self, who: str, amount: int, *, reason: str = "", key: str | None = None
    ) -> tuple[Person, Granted]:
        """Adds micro-dollars to a person's credits, or takes them back; `who` is an e-mail address or a user id. A
        repeat with the same key does nothing. Raises Refused as `Credits.grant` does."""
        person = await self.find(who, 1)
        return person, await self._credits.grant(person.user, amount, reason=reason, key=key)

    async def set_password(self, who: str, hashed: bytes) -> Person:
        """Sets a person's password and ends every session. Raises Refused("not_found")."""
        person = await self.find(who)
        reply = await self._scripts.run(
            "set_password",
            {**keys.person(person.user), "outbox": keys.outbox(person.user)},
            password=hashed,
            **ends_of(person.user),
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        return person

    async def security(self, user: str) -> Security:
        """How and where the person with this user id signs in. Raises Refused("not_found")."""
        reply = await self._scripts.run(
            "describe_security", keys.person(user), session_prefix=keys.session_prefix(user)
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        since = reply.number("since")
        return Security(
            at(since) if since else None,
            reply.number("codes"),
            passkeys_of(reply.rows("rows")),
            tuple(live_session(row) for row in reply.rows("live")),
            linked_identities(reply.rows("identities_known")),
        )

    async def reset_factors(self, who: str) -> Person:
        """Removes a person's authenticator app, passkeys and recovery codes. Raises Refused("not_found")."""
        person = await self.find(who)
        if (await self._scripts.run("reset_factors", keys.person(person.user))).word == "not_found":
            raise Refused("not_found", "No such person.")
        return person

    async def delete(self, who: str, progress: Callable[[int], None] = unheard) -> str:
        """Deletes the person with this e-mail address or user id and returns the user id. Calls `progress` with the
        number of apps disconnected so far. Raises Refused("not_found")."""
        user = who if is_user_id(who) else await self._people.find(who)
        # An interrupted deletion has left no row; it continues here.
        if user is None or not await self._people.half_deleted(user):
            user = (await self.find(who)).user
        await self._people.delete(user, progress)
        return user


def suspended_until(text: str, name: str) -> datetime:
    """The moment of a date or a time, in UTC, that was sent as `name`. Raises ValueError, also for one that has
    passed."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if moment >= LATEST:
            raise ValueError(text)
    except ValueError:
        raise ValueError(
            Phrase("%(name)s must be a date or a time, such as 2027-01-31 or 2027-01-31T08:00.", name=name)
        ) from None
    if moment <= wall.utc():
        raise ValueError(Phrase("%(name)s must be in the future.", name=name))
    return moment


def person_named(text: str) -> str:
    """The normal form of an e-mail address, or a user id unchanged. Raises ValueError."""
    return text if is_user_id(text) else normalise_email(text)


def _person(user: str, reply: Reply, activity: int) -> Person:
    return Person(
        user,
        reply.text("email"),
        reply.raw("email_verified") == b"1",
        reply.text("name"),
        reply.text("picture"),
        reply.text("status"),
        at(reply.number("created_at")),
        tuple(_grant(row) for row in reply.rows("rows")),
        tuple(activities(reply, activity)),
        tuple(client.decode() for client in reply.rows("registered")),
        groups_in(reply.text("groups")),
        _suspension(reply.rows("suspension")),
        tuple(client.decode() for client in reply.rows("joined")),
        tuple(client.decode() for client in reply.rows("kept_out")),
        at(int(planned)) if (planned := reply.text("delete_at")) else None,
        reply.text("external_id"),
    )


def _suspension(row: list[bytes]) -> Suspension | None:
    if not row:
        return None
    reason, note, until = (value.decode() for value in row)
    return Suspension(reason, note, at(int(until)) if until else None)


def _grant(row: list[Any]) -> Grant:
    client, scope, connected, used, revoked, spend_limit, paused, issuer, left_out, budgets = row
    return Grant(
        client.decode(),
        tuple(scope.decode().split()),
        at(int(connected)),
        at(int(used)) if used else None,
        at(int(revoked)) if revoked else None,
        at(int(revoked) + GRACE) if revoked else None,
        spend_limit=int(spend_limit) if spend_limit else None,
        budgets=told_budgets(budgets),
        paused_at=at(int(paused)) if paused else None,
        issuer=issuer.decode(),
        left_out=tuple(left_out.decode().split()),
    )
