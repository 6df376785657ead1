"""Provisioning: another system's directory makes, changes and removes people (SCIM 2.0, RFC 7644).

A directory has less power than an admin: it sets no password, factor or role, gives nobody another address, and never
touches people with a role. It lifts only the suspensions that it made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.people import People
from store.crypto.seal import new_user_id
from store.directory.sections import in_parallel, in_steps
from store.engine.scripts import Reply, Scripts, Value
from store.errors import wrapped
from store.operations import TO_BE_DELETED, Operator, Suspension
from store.operators.group_pages import GroupPages
from store.operators.people_pages import PeoplePages, PersonSummary, shard_sizes
from store.operators.role_holders import RoleHolders
from store.operators.roles import OperatorActor, check_act
from store.refused import DEPROVISIONED, Refused
from store.results import Visitor, groups_in

MOST_AT_ONCE = 200
"""People of a page."""
SHARDS_READ_AT_ONCE = 64
"""Shards whose people are read in one write: other calls on the connection wait for them."""
ROWS_AT_ONCE = 25
SCANNED_AT_ONCE = 500
"""About how many people one call reads to find groups."""
NOTE = "SCIM"
"""The operators' note of a suspension that a directory made."""
_TAKEN = "A person with this userName exists."
_ID_TAKEN = "A person with this externalId exists."


class AssertedPerson(NamedTuple):
    """New values of a person; None leaves one. An empty `external_id` removes it."""

    name: str | None = None
    external_id: str | None = None
    active: bool | None = None


class GroupMember(NamedTuple):
    """A person in groups."""

    user: str
    email: str
    groups: tuple[str, ...]


class Provisioning:
    """The acts of a directory on people; each is noted in the person's trail and in the security log. Every method
    raises StoreUnavailable."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        people: People,
        operator: Operator,
        holders: RoleHolders,
        pages: PeoplePages,
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._people = people
        self._external = people.external_ids
        self._operator = operator
        self._holders = holders
        self._pages = pages
        self.group_pages: GroupPages[dict[str, list[GroupMember]]] = GroupPages()

    async def one(self, user: str) -> PersonSummary:
        """The person with this user id. Raises Refused("not_found")."""
        found = await self._pages.one(user)
        if found is None:
            raise Refused("not_found", "No such person.")
        return found

    async def with_email(self, email: str) -> PersonSummary | None:
        """The person with this normalised address."""
        user = await self._people.find(email)
        found = await self._pages.one(user) if user else None
        return found if found and found.email == email else None

    async def with_external_id(self, external_id: str) -> PersonSummary | None:
        """The person with this external id."""
        user = await self._external.entry(external_id)
        found = await self._pages.one(user) if user else None
        return found if found and found.external_id == external_id else None

    async def page(self, start: int, count: int) -> tuple[int, list[PersonSummary]]:
        """How many people there are, and at most `count` of them from the number `start`, counted from 1, in the order
        of their user ids. People who come or go between two pages move the others by as many places."""
        sizes = await shard_sizes(self._client)
        behind, wanted, covered = start - 1, min(count, MOST_AT_ONCE), 0
        shards: list[str] = []
        for shard, size in sizes.items():
            if behind >= size and not shards:
                behind -= size
            elif behind + wanted > covered:
                shards.append(shard)
                covered += size
        users: list[str] = []
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for shard in shards:
                    batch.smembers(keys.shard_users(shard))
                lists: list[Any] = await batch.execute() if shards else []
        for shard, listed in zip(shards, lists, strict=True):
            users += sorted(keys.user_of(shard, one) for one in listed)
        rows = await in_parallel(map(self._pages.one, users[behind : behind + wanted]), ROWS_AT_ONCE)
        return sum(sizes.values()), [one for one in rows if one]

    async def create(self, actor: OperatorActor, email: str, name: str, external_id: str, *, active: bool) -> str:
        """Makes an account without a password, whose address counts as confirmed: the directory vouches for it. Returns
        the user id. The values are checked already. Raises Refused("conflict") for an address or an external id that
        somebody has, Refused("insufficient_role")."""
        check_act(actor, "scim")
        if await self.with_email(email):
            raise Refused("conflict", _TAKEN)
        user = new_user_id()
        if external_id and not await self._external.reserve(external_id, user):
            raise Refused("conflict", _ID_TAKEN)
        try:
            await self._people.create(
                email,
                name,
                None,
                verified=True,
                event="created_by_operator",
                visitor=Visitor(),
                user=user,
                external_id=external_id,
                suspended=("", "") if active else (DEPROVISIONED, NOTE),
            )
        except Refused:
            await self._release(external_id, user)
            raise Refused("conflict", _TAKEN) from None
        if external_id:
            await self._keep(external_id, user)
        return user

    async def change(self, actor: OperatorActor, user: str, wanted: AssertedPerson) -> None:
        """Changes a person; the values are checked already. A person who is inactive is suspended: every session and
        token ends. Raises Refused: "conflict" for an external id that somebody has, "access_denied" for people with a
        role and for a suspension that an operator made, "not_found", "insufficient_role"."""
        present = await self._check(actor, user)
        suspended_here = present.suspended and present.note == NOTE
        if wanted.active and present.status != "active" and not suspended_here:
            raise Refused("access_denied", "An operator suspended this person. Only an operator ends that.")
        if wanted.active is False and present.status != "active":
            await self._keep_out(user)
        if wanted.external_id is not None:
            await self._set_external_id(present, wanted.external_id)
        if wanted.name is not None and wanted.name != present.name:
            known = {**keys.person(user), **keys.changed(user)}
            reply = await self._scripts.run("rename_person", known, name=wanted.name, member=keys.member(user))
            if reply.word == "not_found":
                raise Refused("not_found", "No such person.")
        if wanted.active is False and present.status == "active":
            await self._operator.set_status(user, "disabled", Suspension(DEPROVISIONED, NOTE))
        if wanted.active and present.status != "active":
            await self._operator.set_status(user, "active")

    async def _keep_out(self, user: str) -> None:
        """Takes the end from an operator's suspension: it must not let a person in whom the directory switched off.
        Raises Refused("access_denied") if a deletion is planned: its cancellation would."""
        person = await self._operator.find(user, 0)
        if person.delete_at:
            raise Refused("access_denied", TO_BE_DELETED)
        if person.suspension and person.suspension.until:
            await self._operator.set_status(user, "disabled", person.suspension._replace(until=None))

    async def delete(self, actor: OperatorActor, user: str) -> None:
        """Deletes a person with everything that is theirs. Raises Refused: "access_denied" for people with a role,
        "not_found", "insufficient_role"."""
        check_act(actor, "scim")
        if not await self._people.half_deleted(user):
            await self._check(actor, user)
        await self._operator.delete(user)

    async def in_groups(self, group: str = "") -> AsyncIterator[GroupMember]:
        """Everybody in a group, or everybody who is in any. There is no index of groups: this reads all people."""
        seen: set[str] = set()
        for shards in in_steps(
            [shard for shard, size in (await shard_sizes(self._client)).items() if size], SHARDS_READ_AT_ONCE
        ):
            left = dict.fromkeys(shards, "0")
            while left:
                replies = await self._read_groups(left, group)
                for shard, reply in zip(left, replies, strict=True):
                    for member, groups, email in reply.rows("found"):
                        user = keys.user_of(shard, member)
                        # A scan may show somebody twice.
                        if user not in seen:
                            seen.add(user)
                            yield GroupMember(user, email.decode(), groups_in(groups.decode()))
                    await asyncio.sleep(0)  # other calls get a turn
                cursors = zip(left, (reply.text("cursor") for reply in replies), strict=True)
                left = {shard: cursor for shard, cursor in cursors if cursor != "0"}

    async def _read_groups(self, cursors: Mapping[str, str], group: str) -> list[Reply]:
        """A part of each of these shards, sent in one write."""
        same: dict[str, Value] = {"most": SCANNED_AT_ONCE, "group": group}
        return await self._scripts.run_many(
            "read_groups",
            [
                (
                    {"users": keys.shard_users(shard)},
                    {"cursor": cursor, "people": keys.member_prefix(shard), **same},
                )
                for shard, cursor in cursors.items()
            ],
        )

    async def _check(self, actor: OperatorActor, user: str) -> PersonSummary:
        check_act(actor, "scim")
        present = await self.one(user)
        if role := await self._holders.of(user):
            raise Refused("access_denied", f"This person has the role {role}, so no directory may change the account.")
        return present

    async def _set_external_id(self, present: PersonSummary, wanted: str) -> None:
        user, before = present.user, present.external_id
        if wanted == before and (not wanted or await self._external.entry(wanted) == user):
            return
        if wanted and not await self._external.reserve(wanted, user):
            raise Refused("conflict", _ID_TAKEN)
        reply = await self._scripts.run("set_external_id", keys.person(user), external_id=wanted)
        if reply.word == "not_found":
            await self._release(wanted, user)
            raise Refused("not_found", "No such person.")
        if wanted:
            await self._keep(wanted, user)
        if (before := reply.text("before")) != wanted:
            await self._release(before, user)

    async def _keep(self, external_id: str, user: str) -> None:
        """Makes a reservation permanent. After a minute somebody else may have it."""
        if not await self._external.keep(external_id, user):
            await self._scripts.run("set_external_id", keys.person(user), external_id="")
            raise Refused("conflict", _ID_TAKEN)

    async def _release(self, external_id: str, user: str) -> None:
        if external_id:
            await self._external.release(external_id, user)
