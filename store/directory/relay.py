"""The relay of the index: from the notes in each shard to the sections.

The script that changes the address or the name of a person, or deletes them, also notes the person in the shard, with
what the row said before (`lua/include/directory/changed.lua`). A relay takes the note, reads the present row,
removes the entries of all former texts, adds those of the present ones, and drops the note if neither has changed
meanwhile. So two quick changes end in the newer one, and a crash between any two steps costs a repetition.

A relay is the only one of a shard while it works, for at most `IDLE`. One that was held up for longer may write a text
that is no longer right; it notes that when it settles.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.crypto.seal import new_id
from store.directory.entries import IndexEntry, add_entries, entries_of
from store.directory.sections import CALLS_AT_ONCE, Sections, in_parallel
from store.engine.background import background, working
from store.engine.scripts import Scripts
from store.errors import StoreError, StoreUnavailable, wrapped
from store.names import is_user_id
from store.webhooks.relay_wakeup import RelayWakeup

log = logging.getLogger("latchkey.directory")

SWEEP_SECONDS = 30.0
"""Between two sweeps, whichever process does them."""
ASK_SECONDS = 10.0
"""The pause before a process checks again whether a sweep is due."""
IDLE = 10_000
"""ms after which a relay that has not finished counts as dead."""
PEOPLE_AT_ONCE = 250
"""People of a shard in one step."""
TOGETHER = 500
"""People whose entries are worked out without a pause: some ten milliseconds."""
ROUNDS = 1000
SHARDS_AT_ONCE = 64
BULK = 20_000
"""People whose entries are written together: each call of the store has the entries of one section."""


class Listed(NamedTuple):
    """A person to write into the index: address and name, or both empty if there is no such person any more. `noted`:
    lines with the former addresses and names."""

    user: str
    email: str
    name: str
    noted: str = ""


class DirectoryRelay:
    """Writes the index. Every method raises StoreUnavailable; a later sweep does the rest."""

    def __init__(self, client: Redis, scripts: Scripts, wakeup: RelayWakeup) -> None:
        self._client = client
        self._scripts = scripts
        self.sections = Sections(client, scripts)
        self._wakeup = wakeup
        self._consumer = new_id()
        self._working = asyncio.Lock()
        self.idle = IDLE

    async def sweep(self, every: Sequence[str] | None = None) -> int:
        """Writes about everybody who is noted in every shard, or in these. Returns how many notes were taken."""
        every = keys.SHARDS if every is None else every
        done = 0
        for start in range(0, len(every), SHARDS_AT_ONCE):
            shards = every[start : start + SHARDS_AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for shard in shards:
                        batch.execute_command("EXISTS", keys.directory_relay(shard)["changed"])
                    found: list[Any] = await batch.execute(raise_on_error=False)
            # An error counts as a note: the call for the shard raises it.
            done += await self.relay([shard for shard, some in zip(shards, found, strict=True) if some])
        return done

    async def relay(self, shards: Collection[str], most: int = PEOPLE_AT_ONCE) -> int:
        """Writes about everybody who is noted in these shards, at most `most` of a shard in one step. Returns how many
        notes were taken."""
        async with self._working:
            try:
                return await self._relay(list(shards), most)
            except StoreUnavailable:
                if len(shards) < 2:
                    raise
            # The node of one shard may be away, and must not stop the others.
            done, lost = 0, None
            for shard in shards:
                try:
                    done += await self._relay([shard], most)
                except StoreUnavailable as error:
                    lost = error
            if lost is not None:
                raise lost
            return done

    async def _relay(self, left: list[str], most: int) -> int:
        if not left:
            return 0
        with working("index people"):
            return await self._relay_some(left, most)

    async def _relay_some(self, left: list[str], most: int) -> int:
        done = 0
        for _ in range(ROUNDS):
            if not left:
                break
            some: dict[str, list[Listed]] = {}
            for start in range(0, len(left), SHARDS_AT_ONCE):
                shards = left[start : start + SHARDS_AT_ONCE]
                taken = await in_parallel(self._take(shard, most) for shard in shards)
                some |= {shard: people for shard, people in zip(shards, taken, strict=True) if people}
                if sum(map(len, some.values())) >= BULK:
                    break
            else:
                start = len(left)
            await self.write(person for people in some.values() for person in people)
            rest = await in_parallel(self.settle(shard, people) for shard, people in some.items())
            again = [shard for shard, number in zip(some, rest, strict=True) if number]
            left = [*left[start + SHARDS_AT_ONCE :], *again]
            done += sum(map(len, some.values()))
        return done

    async def _take(self, shard: str, most: int) -> list[Listed]:
        reply = await self._scripts.run(
            "take_changed",
            keys.directory_relay(shard),
            people=keys.member_prefix(shard),
            consumer=self._consumer,
            idle=self.idle,
            most=most,
        )
        # A busy relay looks once more before it ends.
        rows = reply.rows("taken") if reply.word == "ok" else []
        return [
            Listed(shard + _text(member), _text(email), _text(name), _text(noted))
            for member, noted, email, name in rows
        ]

    async def write(self, people: Iterable[Listed], at_once: int = CALLS_AT_ONCE) -> None:
        """Removes the former entries of these people and adds the present ones, with at most `at_once` calls at a
        time."""
        removed: dict[tuple[str, bytes], list[bytes]] = defaultdict(list)
        added: dict[tuple[str, bytes], list[bytes]] = defaultdict(list)
        for place, person in enumerate(people, 1):
            if not is_user_id(person.user):
                continue  # damage, whose note is dropped
            if person.email:
                add_entries(added, person.user, person.email, person.name)
            if person.noted:
                for section, rest in _former(person):
                    removed[section].append(rest)
            if place % TOGETHER == 0:
                await asyncio.sleep(0)
        await self.sections.write(removed, added, at_once)

    async def settle(self, shard: str, people: Iterable[Listed]) -> int:
        """Drops the notes on people of a shard who are as they were written. Returns how many notes are left."""
        written = [[keys.member(one.user), one.noted, one.email, one.name] for one in people]
        reply = await self._scripts.run(
            "settle_changed",
            keys.directory_relay(shard),
            people=keys.member_prefix(shard),
            consumer=self._consumer,
            written=json.dumps(written, ensure_ascii=False),
        )
        return reply.number("left")

    async def repeat(self, users: Iterable[str]) -> None:
        """Compares these people with their entries once more, and writes what is missing."""
        listed = set(users)
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for user in listed:
                    batch.execute_command("HSETNX", keys.changed(user)["changed"], keys.member(user), "")
                await batch.execute()
        await self.relay({user[:3] for user in listed})

    @asynccontextmanager
    async def relaying(self) -> AsyncIterator[None]:
        """Relays in the background while the block runs: changes of this process at once, others with each sweep."""
        async with background(self._keep_relaying()):
            yield

    async def hinted(self) -> None:
        """Writes about the changes of this process, for a command that ends."""
        await self.sweep(sorted(await self._wakeup.take(0)))

    async def _keep_relaying(self) -> None:
        asked_at = float("-inf")
        while True:
            try:
                if time.monotonic() - asked_at >= ASK_SECONDS:
                    asked_at = time.monotonic()
                    await self._sweep_in_turn()
                if shards := await self._wakeup.take(ASK_SECONDS):
                    await self.relay(shards)
            except StoreError as error:
                log.warning("the index of people is delayed: %s", error)
                await asyncio.sleep(1)
            except Exception:  # an error with one person must not stop the others
                log.exception("the index of people is delayed")
                await asyncio.sleep(1)

    async def _sweep_in_turn(self) -> None:
        """Sweeps, unless a process has begun a sweep in the last 30 s."""
        with wrapped():
            first = await self._client.set(keys.DIRECTORY_SWEPT, "1", nx=True, px=int(SWEEP_SECONDS * 1000))
        if first:
            await self.sweep()


def _former(person: Listed) -> set[IndexEntry]:
    """The entries of a person that are no longer right."""
    was: set[IndexEntry] = set()
    for line in person.noted.split("\n"):
        email, _, name = line.partition("\t")
        was |= entries_of(person.user, email, name)
    return was - entries_of(person.user, person.email, person.name)


def _text(raw: bytes) -> str:
    """A value of a row as text, also of one that is damaged."""
    return raw.decode("utf-8", "replace")
