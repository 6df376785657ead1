"""Events that scripts record in the slot of their act, until they are in the security log.

The script that does an act also notes its events in the shard of the person (`store/engine/script_source.py`). The
process that called it puts them into the log with what it knows of the request, and drops the notes. If it was killed
before, another process finds the notes and does so. So an act of a person is never without its event.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio import Redis

from store import keys
from store.accounts.audit.classes import LONG_SECONDS
from store.accounts.audit.noted import NotedEvent
from store.accounts.audit.security_log import SecurityLog
from store.engine.background import background
from store.errors import StoreError, wrapped
from store.lifetimes import DAY

log = logging.getLogger("latchkey.security")

MARK_SECONDS: Final = 30.0
"""Between two marks of a process that it lives."""
DEAD_MS: Final = 90_000
"""ms after its last mark at which a process counts as dead."""
TRAIL_SWEEP_SECONDS: Final = 300.0
"""Between two sweeps, whichever process does them."""
HELD_SECONDS: Final = LONG_SECONDS + 120
"""A living process drops its notes before this age."""
SWEEP_MS: Final = int(TRAIL_SWEEP_SECONDS * 1000)
SHARDS_AT_ONCE: Final = 64
OLD_TRAIL_MS: Final = 90 * DAY
"""ms after which the streams that servers of earlier releases wrote end."""


class RecordedEvents:
    """The notes of all shards. Methods raise StoreUnavailable."""

    def __init__(self, client: Redis, security: SecurityLog) -> None:
        self._client = client
        self._security = security
        security.settle_notes = self.drop

    async def drop(self, notes: Iterable[tuple[str, str]]) -> None:
        """Drops notes, each given by shard and id."""
        ids: dict[str, list[str]] = defaultdict(list)
        for shard, note in notes:
            ids[shard].append(note)
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for shard, some in ids.items():
                    batch.execute_command("HDEL", keys.recorded(shard), *some)
                await batch.execute()

    async def sweep(self) -> int:
        """Puts the notes of processes that ended too early into the log. Returns how many."""
        done = 0
        for start in range(0, len(keys.SHARDS), SHARDS_AT_ONCE):
            shards = keys.SHARDS[start : start + SHARDS_AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for shard in shards:
                        batch.execute_command("EXISTS", keys.recorded(shard))
                    found: list[Any] = await batch.execute(raise_on_error=False)
            for shard, some in zip(shards, found, strict=True):
                if some:
                    done += await self._sweep_shard(shard)
        if done:
            await self._security.flush()
            log.warning("%d events of processes that ended early are in the security log now", done)
        return done

    async def _sweep_shard(self, shard: str) -> int:
        with wrapped():
            rows: dict[Any, Any] = await self._client.hgetall(keys.recorded(shard))
            seconds, _ = await self._client.time()
        done, alive = 0, dict[str, bool]()
        for note, packed in rows.items():
            found = _unpacked(shard, note.decode("utf-8", "replace"), packed)
            if found is None:
                await self.drop([(shard, note.decode("utf-8", "replace"))])
                continue
            age = seconds - found.at_ms // 1000
            if age < DEAD_MS // 1000:
                continue
            if found.writer not in alive:
                with wrapped():
                    alive[found.writer] = bool(await self._client.exists(keys.TRAIL_WRITER + found.writer))
            if not alive[found.writer] or age > HELD_SECONDS:
                self._security.put_back(found, age)
                done += 1
        return done

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Marks this process as living, and sweeps in turn with others, while the block runs."""
        async with background(self._keep()):
            yield

    async def _keep(self) -> None:
        asked_at = float("-inf")
        while True:
            try:
                with wrapped():
                    await self._client.set(keys.TRAIL_WRITER + self._security.writer, "1", px=DEAD_MS)
                if time.monotonic() - asked_at >= TRAIL_SWEEP_SECONDS:
                    with wrapped():
                        first = await self._client.set(keys.TRAIL_SWEPT, "1", nx=True, px=SWEEP_MS)
                    asked_at = time.monotonic()
                    if first:
                        await self.sweep()
            except StoreError as error:
                log.warning("events of processes that ended early wait: %s", error)
            except Exception:  # damage in one note must not stop the others
                log.exception("events of processes that ended early wait")
            await asyncio.sleep(MARK_SECONDS)


def _unpacked(shard: str, note: str, packed: bytes) -> NotedEvent | None:
    """The event in a note; None for damage."""
    try:
        at, trail, event, client, address, agent, noted_as = json.loads(packed.decode("utf-8", "replace"))
        first, actor, request_id, by = noted_as.split("\t")
        where = (str(trail), str(event), str(client), str(address), str(agent))
        return NotedEvent(shard, note, int(at), *where, actor, request_id, by, first.partition(" ")[2])
    except (TypeError, ValueError, AttributeError):
        return None
