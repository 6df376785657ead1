"""Pages of people, for operators."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.people import People
from store.directory.sections import in_steps
from store.engine.many import answers_of
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.moments import at
from store.names import is_user_id, normalise_email
from store.operators.cursors import MOST_AT_ONCE, USUAL, Cursors
from store.refused import Refused
from store.results import groups_in

Status = Literal["", "active", "disabled", "suspended"]
STATUSES: Final[tuple[Status, ...]] = ("active", "disabled", "suspended")
"""A person's status; somebody with a reason for it is `suspended`."""
PeopleOrder = Literal["id", "email"]
ORDERS: Final[tuple[PeopleOrder, ...]] = ("id", "email")
"""The orders of everybody. By user id nobody is missing, also while the index of people is being rebuilt."""
MOST_LOOKED_AT: Final = 1000
"""People whose rows one page reads, whatever it looks for. A page may have fewer rows than asked for, even none."""
MOST_SEARCHES: Final = 20
"""Searches of a page whose status nobody has whom they find; fewer if they look at `MOST_LOOKED_AT` people."""
SHARDS_AT_FIRST, SHARDS_AT_ONCE = 4, 256
_ROWS_AT_ONCE = 25

PrefixSearch = Callable[[str, str, int], Awaitable[tuple[Sequence[str], str]]]
"""Finds people whose address or name begins with a text: takes the text, a position ("" at the beginning) and how many
are wanted; returns their user ids and the position after them, "" at the end."""


@dataclass(frozen=True, slots=True)
class PersonSummary:
    """A person in a list. `external_id`: the id that an outside directory gave them; `note`: of operators, about a
    suspension; `delete_at`: when a planned deletion begins."""

    user: str
    email: str
    email_verified: bool
    name: str
    status: str
    created_at: datetime
    suspended: bool = False
    signed_in_at: datetime | None = None
    groups: tuple[str, ...] = ()
    external_id: str = ""
    note: str = ""
    delete_at: datetime | None = None


class PeoplePage(NamedTuple):
    """Rows, and the cursor of the next page, "" after the last one. `total`: how many people the whole list has, None
    where that is not known without reading it."""

    people: tuple[PersonSummary, ...]
    cursor: str
    total: int | None = None


async def shard_sizes(client: Redis) -> dict[str, int]:
    """How many people each shard has. Raises StoreUnavailable."""
    sizes: dict[str, int] = {}
    for shards in in_steps(keys.SHARDS, SHARDS_AT_ONCE):
        with wrapped():
            found = await answers_of(client, [("SCARD", keys.shard_users(shard)) for shard in shards])
        sizes |= zip(shards, found, strict=True)
    return sizes


class PeoplePages:
    """Finds people. `matching` finds them by the beginnings of addresses and names; without it, only whole addresses
    and user ids are found. Every method raises StoreUnavailable."""

    matching: PrefixSearch | None = None

    def __init__(self, client: Redis, scripts: Scripts, people: People, cursors: Cursors) -> None:
        self._client = client
        self._scripts = scripts
        self._people = people
        self._cursors = cursors

    async def page(
        self,
        query: str = "",
        status: Status = "",
        limit: int = USUAL,
        cursor: str = "",
        *,
        order: PeopleOrder = "id",
        counted: bool = False,
    ) -> PeoplePage:
        """The people who match. An exact address or user id comes from the primary index; without a query, everybody in
        this order. `counted`: counts everybody too, which takes the store some milliseconds, whatever its size. Raises
        Refused("invalid_request")."""
        if not 1 <= limit <= MOST_AT_ONCE:
            raise Refused("invalid_request", f"limit is 1 to {MOST_AT_ONCE}.")
        if len(query) > 254:
            raise Refused("invalid_request", "query is at most 254 characters.")
        if status and status not in STATUSES:
            raise Refused("invalid_request", f"status is {', '.join(STATUSES)}.")
        if order not in ORDERS:
            raise Refused("invalid_request", f"order is {' or '.join(ORDERS)}.")
        query = query.strip()
        # The orders have cursors of their own; a query has one order.
        asked = f"people {status} {query}" if query or order == "id" else f"people by {order} {status}"
        position = self._cursors.open(asked, cursor)
        found = await self._page(asked, query, status, limit, position, order)
        whole, everybody = not position and not found.cursor, not query and not status
        if whole and not (everybody and order == "email"):
            return found._replace(total=len(found.people))
        if counted and everybody:
            # Not from the index of people, which may lack some.
            return found._replace(total=sum((await shard_sizes(self._client)).values()))
        return found

    async def _page(
        self, asked: str, query: str, status: Status, limit: int, position: str, order: PeopleOrder
    ) -> PeoplePage:
        if not query and (order == "id" or self.matching is None):
            return await self._everybody(asked, status, limit, position)
        exact = await self._exact(query) if query and not position else []
        if exact or self.matching is None:
            return PeoplePage(tuple(one for one in exact if _fits(one, status)), "")
        return await self._by_prefix(asked, query, status, limit, position)

    async def everyone(self, query: str = "", status: Status = "") -> AsyncIterator[PersonSummary]:
        """All of them, page by page."""
        cursor = ""
        while True:
            found = await self.page(query, status, MOST_AT_ONCE, cursor)
            for one in found.people:
                yield one
            cursor = found.cursor
            if not cursor:
                return

    async def one(self, user: str) -> PersonSummary | None:
        """The person with this user id."""
        reply = await self._scripts.run("summarise_person", keys.person(user))
        if reply.word == "not_found":
            return None
        signed_in = reply.text("signed_in")
        return PersonSummary(
            user,
            reply.text("email"),
            reply.raw("email_verified") == b"1",
            reply.text("name"),
            reply.text("status"),
            at(reply.number("created_at")),
            bool(reply.raw("suspended")),
            at(int(signed_in)) if signed_in else None,
            groups_in(reply.text("groups")),
            reply.text("external_id"),
            reply.text("note"),
            at(int(planned)) if (planned := reply.text("delete_at")) else None,
        )

    async def _exact(self, query: str) -> list[PersonSummary]:
        if is_user_id(query):
            user: str | None = query
        else:
            try:
                email = normalise_email(query)
            except ValueError:
                return []
            user = await self._people.find(email)
        found = await self.one(user) if user else None
        return [found] if found and (is_user_id(query) or found.email == email) else []

    async def _by_prefix(self, asked: str, query: str, status: Status, limit: int, position: str) -> PeoplePage:
        assert self.matching is not None
        people: tuple[PersonSummary, ...] = ()
        for _ in range(min(MOST_SEARCHES, max(1, MOST_LOOKED_AT // limit))):
            users, position = await self.matching(query, position, limit)
            people = tuple(one for one in await self._rows(users) if one and _fits(one, status))
            if people or not position:
                break
        return PeoplePage(people, self._cursors.seal(asked, position) if position else "")

    async def _everybody(self, asked: str, status: Status, limit: int, after: str) -> PeoplePage:
        """By user id. `after`: the last user id of the page before."""
        found: list[PersonSummary] = []
        looked_at = 0
        async for user in self._users(after):
            if len(found) == limit or looked_at >= MOST_LOOKED_AT:
                return PeoplePage(tuple(found), self._cursors.seal(asked, after))
            one = await self.one(user)
            looked_at, after = looked_at + 1, user
            if one and _fits(one, status):
                found.append(one)
        return PeoplePage(tuple(found), "")

    async def _users(self, after: str) -> AsyncIterator[str]:
        """Every user id beyond `after`, in order. Reads lists of shards, few at first: in a large store one is enough
        for a page."""
        begin, step = (int(after[:3], 16) if after else 0), SHARDS_AT_FIRST
        while begin < len(keys.SHARDS):
            shards = keys.SHARDS[begin : begin + step]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for shard in shards:
                        batch.smembers(keys.shard_users(shard))
                    lists: list[Any] = await batch.execute()
            for shard, listed in zip(shards, lists, strict=True):
                users = sorted(keys.user_of(shard, one) for one in listed)
                for user in users[bisect_right(users, after) :]:
                    yield user
            begin, step = begin + step, min(4 * step, SHARDS_AT_ONCE)

    async def _rows(self, users: Sequence[str]) -> list[PersonSummary | None]:
        found: list[PersonSummary | None] = []
        for start in range(0, len(users), _ROWS_AT_ONCE):
            found += await asyncio.gather(*map(self.one, users[start : start + _ROWS_AT_ONCE]))
        return found


def _fits(one: PersonSummary, status: Status) -> bool:
    return not status or (one.suspended if status == "suspended" else one.status == status)
