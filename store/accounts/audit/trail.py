"""The logs of the security log in the store: one for each day, stream and shard, within what they may take.

The events of one person are in one shard, so each node of a cluster keeps a part of the log.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from store import keys
from store.accounts.audit.activity_figures import ActivityFigures
from store.accounts.audit.logged_event import AuditEvent
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.events.declared_event import EventStream

log = logging.getLogger("latchkey.security")

STREAMS: Final[tuple[EventStream, ...]] = ("strangers", "people", "sensitive", "operator")
"""The streams, in the order of the scripts."""
SHARES: Final[dict[EventStream, int]] = {"strangers": 20, "people": 40, "sensitive": 25, "operator": 15}
"""The part of the bytes that each stream may take, in percent: a flood of one stream cuts no other."""
FIRST_NUMBER: Final = 1_000_000
"""Ids of entries of earlier releases have smaller numbers, so no id is there twice."""


@dataclass(slots=True)
class TrailBounds:
    """What the security log may keep: `days` before the present one, and about how many `bytes` of memory it takes."""

    days: int = 90
    bytes: int = 2**26

    def of_shard(self) -> dict[EventStream, int]:
        """The bytes that each stream may take in one shard."""
        return {stream: self.bytes * share // 100 // keys.TRAIL_SHARDS for stream, share in SHARES.items()}


class TrailWriter:
    """Writes events into the logs."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._turn = self._newest = self._written = 0
        self.bounds = TrailBounds()
        self.figures = ActivityFigures(scripts)
        self.watch: Callable[[str, int], None] = lambda what, count: None
        """Called with what made room, and how many: days, or events of the present day."""

    async def append(self, waiting: Sequence[tuple[AuditEvent, int]]) -> None:
        """Adds events, each with its age in ms. Raises StoreUnavailable, StoreError; some of these events may be in the
        store all the same: readers use the ids of events to skip what is there twice."""
        self._turn += 1
        parts: dict[int, list[tuple[str, int, int, str]]] = {}
        events: dict[int, list[AuditEvent]] = {}
        for event, age in waiting:
            shard = self._shard_of(event)
            # Rises over all batches, so the order of events within a millisecond is theirs.
            self._written += 1
            number = FIRST_NUMBER + self._written * keys.TRAIL_SHARDS + shard
            events.setdefault(shard, []).append(event)
            parts.setdefault(shard, []).append((event.stream, age, number, event.packed()))
        (first, batch), *rest = parts.items()
        begun = await self._append(first, batch, 0)
        others = (self._append(shard, batch, begun) for shard, batch in rest)
        for answer in await asyncio.gather(*others, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
        counting = (self.figures.count(shard, some) for shard, some in events.items())
        for error in await asyncio.gather(*counting, return_exceptions=True):
            # The events are in the log; sending them once more would count them twice.
            if isinstance(error, StoreError):
                log.info("figures of sign-ins are incomplete: %s", error)
            elif error is not None:
                raise error

    async def _append(self, shard: int, batch: list[tuple[str, int, int, str]], begun: int) -> int:
        reply = await self._scripts.run(
            "append_trail",
            keys.trail(shard),
            most=orjson.dumps(self.bounds.of_shard()).decode(),
            days=self.bounds.days,
            step=keys.TRAIL_SHARDS,
            begun=begun,
            least=self._newest,
            batch=orjson.dumps(batch).decode(),
        )
        for what in ("days", "events"):
            if count := reply.number(f"cut_{what}"):
                log.warning("the security log is full: %d %s made room; see --audit-bytes", count, what)
                self.watch(what, count)
        ms = reply.number("ms")
        self._newest = max(self._newest, ms)
        return ms

    def _shard_of(self, event: AuditEvent) -> int:
        if event.person:
            return zlib.crc32(event.person.encode()) % keys.TRAIL_SHARDS
        return 0 if event.stream == "operator" else self._turn % keys.TRAIL_SHARDS
