"""The storage of all apps of an owner, over all people: approximate, added up in the background.

The people of an app are in many slots, so no script sees the sum. Each process counts what it has written, adds that to
the owner's row every few seconds, or as soon as it is a significant part of the limit, and learns the sum. If the sum
is over the limit, the process lets no document of the owner's apps grow. The same holds if the owner has deleted the
account and has no row to add to. So the limit can be exceeded by such a part for each process, and by writes in
progress. Data that ends without a call of an app (a grace window, an account) shows with the next full count: daily,
and hourly while the owner is over the limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreError, wrapped
from store.lifetimes import DAY, MINUTE
from store.names import is_user_id

log = logging.getLogger("latchkey.hosting")

FLUSH_SECONDS = 10.0
PORTION = 64
"""The divisor of a limit: a process reports its additions when they reach this part."""
MOST_OWNERS = 10_000
"""Owners counted between two flushes; further ones show with the next full count."""
HOUR = 60 * MINUTE
PEOPLE_AT_ONCE = 200
ShardsOf = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the shards where an app has people."""


@dataclass(frozen=True, slots=True)
class OwnerLimits:
    """The limits of all apps of one owner, over all people; 0: no limit."""

    documents: int = 2_000_000
    bytes: int = 4 * 2**30


class Hosting:
    """Sums of owners. Apps of the operator and of the demo have no person as their owner, and no limit."""

    def __init__(self, client: Redis, scripts: Scripts, limits: OwnerLimits, shards_of: ShardsOf) -> None:
        self._client = client
        self._scripts = scripts
        self.limits = limits
        self._shards_of = shards_of
        self._grown: dict[str, tuple[int, int]] = {}
        self._over: set[str] = set()
        self._gone: set[str] = set()
        self._due: set[str] = set()
        self._soon, self._wanted = asyncio.Event(), asyncio.Event()

    def is_full(self, owner: str) -> bool:
        """Whether no document of this owner's apps may grow."""
        return owner in self._over or (owner in self._gone and self.limits != OwnerLimits(0, 0))

    def grew(self, owner: str, documents: int, size: int) -> None:
        """Counts documents and bytes that an app of this owner has added or, if negative, removed."""
        if (
            not is_user_id(owner)
            or owner in self._gone
            or (owner not in self._grown and len(self._grown) >= MOST_OWNERS)
        ):
            return
        before = self._grown.get(owner, (0, 0))
        self._grown[owner] = documents, size = before[0] + documents, before[1] + size
        limits = self.limits
        if (limits.bytes and size * PORTION > limits.bytes) or (
            limits.documents and documents * PORTION > limits.documents
        ):
            self._soon.set()

    async def flush(self) -> None:
        """Adds the counted figures to the sums, and asks again for owners over their limit. Raises StoreUnavailable;
        figures that were not sent are lost."""
        grown, self._grown = self._grown, {}
        for owner in {*grown, *self._over} - self._gone:
            await self._add(owner, *grown.get(owner, (0, 0)))

    async def recount(self, owner: str) -> None:
        """Counts the documents of all apps of the owner. Additions by processes during the count stay in the sum; some
        may be counted twice, until the next count. Raises StoreUnavailable."""
        documents = size = 0
        with wrapped():
            since: Any = await self._client.hget(keys.person(owner)["user"], "hosted")
            apps: list[Any] = await self._client.zrange(keys.person(owner)["apps"], 0, -1)
        for client in (name.decode() for name in apps):
            for shard in await self._shards_of(client):
                cursor = "0"
                while True:
                    reply = await self._scripts.run(
                        "count_hosted",
                        {"app_users": keys.shard_app_users(shard, client)},
                        client=client,
                        people=keys.member_prefix(shard),
                        cursor=cursor,
                        steps=PEOPLE_AT_ONCE,
                    )
                    documents, size = documents + reply.number("documents"), size + reply.number("bytes")
                    cursor = reply.text("cursor")
                    if cursor == "0":
                        break
        await self._add(owner, documents, size, counted="1", since=since or b"")

    async def _add(self, owner: str, documents: int, size: int, *, counted: str = "", since: bytes = b"") -> None:
        reply = await self._scripts.run(
            "add_hosted",
            {"user": keys.person(owner)["user"]},
            documents=documents,
            bytes=size,
            again=HOUR if owner in self._over else DAY,
            counted=counted,
            since=since,
        )
        if reply.word == "gone":  # for good: user ids are never used again
            self._gone.add(owner)
        over = reply.word == "ok" and (
            0 < self.limits.documents <= reply.number("documents") or 0 < self.limits.bytes <= reply.number("bytes")
        )
        (self._over.add if over else self._over.discard)(owner)
        if reply.word == "ok" and reply.text("due"):
            self._due.add(owner)
            self._wanted.set()

    async def _keep_flushing(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), FLUSH_SECONDS)
            self._soon.clear()
            await self._quietly(self.flush())

    async def _keep_counting(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._due:
                await self._quietly(self.recount(self._due.pop()))

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            await work
        except StoreError as error:
            log.warning("sums of owners postponed: %s", error)

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Flushes and counts in the background while the block runs, and flushes once more after it."""
        try:
            async with background(self._keep_flushing()), background(self._keep_counting()):
                yield
        finally:
            await self._quietly(self.flush())
