"""Rebuilds the index while servers run: notes everybody, shard by shard, and lets the relay compare.

How far it has come is in the store, so an interrupted rebuild continues: by the same command, or by any server. Nothing
is removed first, so people are found meanwhile. At the end the command looks through the index for what no row says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.directory.entries import IndexEntry, Section, entries_of, user_of
from store.directory.relay import ASK_SECONDS, DirectoryRelay
from store.directory.sections import in_parallel
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreError, wrapped

log = logging.getLogger("latchkey.directory")

MARKED_AT_ONCE = 1000
IN_A_SERVER, IN_A_COMMAND = 2, 64
"""Shards in one step. A step of a server takes its loop for some milliseconds at a time."""
BUCKETS_AT_ONCE = 8


class RebuildProgress(NamedTuple):
    """How many steps are done, of how many; and the entries found that no row says."""

    done: int
    of: int
    left: int = 0


class DirectoryRebuild:
    """A rebuild of the index. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts, relay: DirectoryRelay) -> None:
        self._client = client
        self._scripts = scripts
        self._relay = relay

    async def begin(self) -> int:
        """Notes that the index is to be rebuilt. Returns how many shards an earlier run has done."""
        return (await self._scripts.run("begin_rebuild", {"rebuild": keys.DIRECTORY_REBUILD})).number("done")

    async def fill(self, shards_at_once: int = IN_A_SERVER) -> AsyncGenerator[RebuildProgress, None]:
        """Continues a rebuild that has begun: writes about everybody, shard by shard."""
        while True:
            with wrapped():
                found = await self._client.get(keys.DIRECTORY_REBUILD)
            if found is None:
                return
            done = int(found)
            shards = keys.SHARDS[done : done + shards_at_once]
            await in_parallel(self._mark(shard) for shard in shards)
            await self._relay.relay(shards, MARKED_AT_ONCE)
            done += len(shards)
            with wrapped():
                if done < len(keys.SHARDS):
                    await self._client.set(keys.DIRECTORY_REBUILD, done, xx=True)
                else:
                    await self._client.delete(keys.DIRECTORY_REBUILD)
            yield RebuildProgress(done, len(keys.SHARDS))

    async def _mark(self, shard: str) -> None:
        known = {"users": keys.shard_users(shard), "changed": keys.directory_relay(shard)["changed"]}
        cursor = "0"
        while True:
            reply = await self._scripts.run("mark_people", known, cursor=cursor, most=MARKED_AT_ONCE)
            cursor = reply.text("cursor")
            if cursor == "0":
                return

    async def clean(self) -> AsyncGenerator[RebuildProgress, None]:
        """Removes entries that no row says, section by section."""
        sections, left = await self._relay.sections.every(), 0
        for done, section in enumerate(sections, 1):
            key = b""
            while True:
                found = await self._relay.sections.read(section, key, BUCKETS_AT_ONCE)
                left += await self._clean(section, [rest for bucket in found.entries for rest in bucket])
                key = found.after
                if not key:
                    break
            yield RebuildProgress(done, len(sections), left)

    async def _clean(self, section: Section, rests: Sequence[bytes]) -> int:
        """Removes those of some entries that no row says, and returns how many."""
        users = {user_of(rest) for rest in rests}
        said = await self.said_of(users)
        wrong = {IndexEntry(section, rest) for rest in rests} - said
        if wrong:
            await self._relay.sections.change(wrong, ())
            # A person may just have become what was removed.
            await self._relay.repeat(user_of(one.rest) for one in wrong)
        return len(wrong)

    async def said_of(self, users: Iterable[str]) -> set[IndexEntry]:
        """The entries that the rows of these people imply."""
        listed = list(users)
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for user in listed:
                    batch.execute_command("HMGET", keys.person(user)["user"], "status", "email", "name")
                rows: list[Any] = await batch.execute()
        said: set[IndexEntry] = set()
        for user, (status, email, name) in zip(listed, rows, strict=True):
            if status and email:
                said |= entries_of(user, email.decode(), (name or b"").decode())
        return said

    @asynccontextmanager
    async def continuing(self) -> AsyncIterator[None]:
        """Continues a rebuild in the background while the block runs."""
        async with background(self._keep_continuing()):
            yield

    async def _keep_continuing(self) -> None:
        while True:
            try:
                async for progress in self.fill():
                    if progress.done == progress.of:
                        log.info("the index of people is complete")
                    await asyncio.sleep(0)
            except StoreError as error:
                log.warning("the rebuild of the index of people waits: %s", error)
            await asyncio.sleep(ASK_SECONDS)
