"""Finds people by the beginning of their address or of a word of their name, or by the domain of their address.

A page is a few scripts in the slots of the index, and one for each person shown. An entry counts only if the person's
row says the same, so an entry that the relay has yet to remove is never shown. The place in the order of the index is
the cursor: people who come, go or change in between, and buckets that divide, move nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from store import keys
from store.accounts.addresses import Addresses
from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, fingerprint
from store.directory.entries import ID_BYTES, MAX_TEXT, Section, begin_length, key_of, user_of
from store.directory.queries import ANY, Stage, exact_address, stages_of
from store.directory.relay import BULK, DirectoryRelay, Listed
from store.directory.sections import CALLS_AT_ONCE, in_parallel, in_steps
from store.engine.scripts import Scripts
from store.moments import at
from store.names import is_user_id
from store.refused import Refused

LIMIT = 50
MOST_SHOWN = 200
EXAMINED = 1000
"""The most people who are read for a page. A page that needs more is short, and its cursor continues."""
BUCKETS = 2
"""Buckets in the first read: most pages come from one or two."""
MOST_BUCKETS = 8
SECTIONS_AT_ONCE = 16
LEAST_READ = 16
"""People whose rows are read together, where some may not count."""


class FoundPerson(NamedTuple):
    """A person as a list shows them. `last_sign_in_at`: None if the trail has no sign-in."""

    user: str
    email: str
    name: str
    status: str
    created_at: datetime
    last_sign_in_at: datetime | None


class FoundPage(NamedTuple):
    """People, in the order of the index, and the cursor of the next page; "" at the end."""

    people: tuple[FoundPerson, ...]
    cursor: str


class IndexPlace(NamedTuple):
    """A place in the order of the index: the number of the walk, the section, and a text with an id."""

    stage: int
    section: bytes
    rest: bytes


class Directory:
    """The index of people. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, sealer: Sealer, addresses: Addresses, relay: DirectoryRelay) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._addresses = addresses
        self._sections = relay.sections
        self._relay = relay

    async def search(
        self, query: str, *, by: str = ANY, status: str = "", limit: int = LIMIT, cursor: str = ""
    ) -> FoundPage:
        """At most `limit` people whose address, name or domain begins with the query, without regard to case and
        accents; of this status, if given. A whole address or a user id is answered from the row itself, at once; an
        empty query shows everybody by address. A page may be short although a cursor follows. `by`: `address`, `name`,
        `domain`, or `any` of these. Raises ValueError for another one, Refused("invalid_request") for a cursor of
        another query."""
        place = self._opened(cursor, query, by) if cursor else None
        people, last = await self._find(query, by, status, max(1, min(limit, MOST_SHOWN)), place)
        return FoundPage(tuple(people), self._sealed(last, query, by) if last else "")

    async def matching(self, query: str, position: str, limit: int) -> tuple[list[str], str]:
        """The user ids of a page, and the position after them, "" at the end: for lists with rows and cursors of their
        own. `position`: "" at the beginning, or an earlier answer."""
        people, last = await self._find(query, ANY, "", limit, _read(position) if position else None)
        return [person.user for person in people], _written(last) if last else ""

    async def _find(
        self, query: str, by: str, status: str, limit: int, place: IndexPlace | None
    ) -> tuple[list[FoundPerson], IndexPlace | None]:
        """People behind a place, and the place behind which the search goes on; None at the end."""
        stages = stages_of(query, by)
        if is_user_id(user := query.strip().lower()):
            person = await self._describe(user)
            return [person] if person and status in ("", person.status) else [], None
        exact = exact_address(query, by)
        first = await self._exact(exact) if exact and not place else None
        shown = [(first, _start_of(stages[0]))] if first and status in ("", first.status) else []
        examined = 0
        async for entries in self._walk(stages, place):
            for some in in_steps(entries, max(limit + 1 - len(shown), LEAST_READ)):
                people = await in_parallel(self._describe(user_of(one.rest)) for one in some)
                for one, person in zip(some, people, strict=True):
                    if person is None or not _is_shown(stages, one, person) or status not in ("", person.status):
                        continue
                    if not (person.email == exact and (first or place)):
                        shown.append((person, one))
                if len(shown) > limit:
                    return [person for person, _ in shown[:limit]], shown[limit - 1][1]
                examined += len(some)
                if examined >= EXAMINED:
                    return [person for person, _ in shown], some[-1]
        return [person for person, _ in shown], None

    async def add_many(self, people: Sequence[Listed], at_once: int = CALLS_AT_ONCE) -> None:
        """Writes people into the index whose rows are written already: for an import. Whoever has changed meanwhile is
        left to the relay. A repetition changes nothing. At most `at_once` calls run at a time."""
        for start in range(0, len(people), BULK):
            some = people[start : start + BULK]
            await self._relay.write(some, at_once)
            shards: dict[str, list[Listed]] = {}
            for person in some:
                shards.setdefault(person.user[:3], []).append(person)
            await in_parallel((self._relay.settle(shard, theirs) for shard, theirs in shards.items()), at_once)

    async def _exact(self, email: str) -> FoundPerson | None:
        user = await self._addresses.find(email)
        person = await self._describe(user) if user else None
        return person if person and person.email == email else None

    async def _describe(self, user: str) -> FoundPerson | None:
        reply = await self._scripts.run("summarise_person", keys.person(user))
        if reply.word != "ok":
            return None
        signed_in = reply.text("signed_in")
        return FoundPerson(
            user,
            reply.text("email"),
            reply.text("name"),
            reply.text("status"),
            at(reply.number("created_at")),
            at(int(signed_in)) if signed_in else None,
        )

    async def _walk(self, stages: Sequence[Stage], after: IndexPlace | None) -> AsyncIterator[list[IndexPlace]]:
        """Yields the entries of all walks behind a place, in order, some at a time."""
        for number, stage in enumerate(stages):
            if after and number < after.stage:
                continue
            behind = after if after and number == after.stage else None
            length = begin_length(stage.family)
            begin, rest = stage.prefix[:length], stage.prefix[length:MAX_TEXT]
            if len(begin) == length:
                async for entries in self._walk_section(number, Section(stage.family, begin), rest, behind):
                    yield entries
                continue
            if behind:
                async for entries in self._walk_section(number, Section(stage.family, behind.section), b"", behind):
                    yield entries
            last = behind.section if behind else None
            while sections := await self._sections.listed(stage.family, begin, last, SECTIONS_AT_ONCE):
                for section in sections:
                    async for entries in self._walk_section(number, section, b"", None):
                        yield entries
                last = sections[-1].begin

    async def _walk_section(
        self, number: int, section: Section, prefix: bytes, behind: IndexPlace | None
    ) -> AsyncIterator[list[IndexPlace]]:
        after = key_of(behind.rest) if behind else b""
        key, most = max(prefix, after), BUCKETS
        while True:
            found = await self._sections.read(section, key, most)
            rests = sorted((rest for bucket in found.entries for rest in bucket), key=key_of)
            entries = [rest for rest in rests if key_of(rest) > after and rest[:-ID_BYTES].startswith(prefix)]
            if entries:
                yield [IndexPlace(number, section.begin, rest) for rest in entries]
            key, most = found.after, min(2 * most, MOST_BUCKETS)
            if not key or not (key.startswith(prefix) or key < prefix):
                return

    def _sealed(self, place: IndexPlace, query: str, by: str) -> str:
        """The cursor behind a place: sealed, because a place has a part of an address or a name, and URLs are in
        logs."""
        return self._sealer.seal(Token(TokenKind.CURSOR, NOBODY, _written(place), _mark(query, by), 0))

    def _opened(self, cursor: str, query: str, by: str) -> IndexPlace:
        token = self._sealer.open(TokenKind.CURSOR, cursor)
        if token is None or token.id != _mark(query, by):
            raise Refused("invalid_request", "The cursor belongs to another search. Begin again without one.")
        return _read(token.client)


def _mark(query: str, by: str) -> str:
    return fingerprint(f"search {by} {query.strip()}")


def _written(place: IndexPlace) -> str:
    return f"{place.stage} {place.section.hex()} {place.rest.hex()}"


def _read(position: str) -> IndexPlace:
    stage, section, rest = position.split(" ")
    return IndexPlace(int(stage), bytes.fromhex(section), bytes.fromhex(rest))


def _start_of(stage: Stage) -> IndexPlace:
    """The place before all entries of a walk."""
    return IndexPlace(0, stage.prefix[: begin_length(stage.family)], bytes(ID_BYTES))


def _is_shown(stages: Sequence[Stage], place: IndexPlace, person: FoundPerson) -> bool:
    """Whether the row says what the entry says, and no earlier walk has shown the person."""
    if any(stage.meant(person.email, person.name) is not None for stage in stages[: place.stage]):
        return False
    meant = stages[place.stage].meant(person.email, person.name)
    return meant == place.section + place.rest[:-ID_BYTES]
