"""Brings people in from a file, in batches, and continues after an interruption.

A batch does what a sign-up does, for all of its people in each step: reserve the addresses and identities, write the
rows, make the reservations permanent. Then the import notes its place. User ids follow from a random seed of the import
and the number of the line: so a batch that was interrupted writes the same people again, and knows the addresses that
it had reserved. The people of a few lines share a shard, and one script writes them. Meanwhile the people of earlier
batches go into the index of people (`store/moving/import_index.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from store import keys
from store.accounts.import_state import ImportProgress, ImportResult
from store.clock import wall
from store.crypto.seal import new_id
from store.directory.relay import Listed
from store.engine.background import ended
from store.moving.import_index import ImportIndex
from store.moving.import_lines import ImportLine, Mover, read_mover
from store.moving.import_writes import BatchOutcome, Prospect, Writes
from store.wiring import Store

BATCH = 512
"""People in a batch."""
BATCH_LINES = 4 * BATCH
"""Lines in a batch, with those that are refused."""
TOGETHER = 16
"""Lines whose people share a shard."""
BREATH = 32
"""Lines that are read before the event loop may do something else."""
HEAD = 64 * 1024
"""Bytes at the beginning of the input that name the import."""
AHEAD = 24 * 3600 * 1000
"""ms that a time of creation may be ahead of this host's clock."""


@dataclass(slots=True)
class _Batch:
    """Lines that were read: people and refusals; the last line, and the digest up to it. `taken`: addresses and
    identities of the people."""

    movers: list[Prospect] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    taken: set[object] = field(default_factory=set)
    line: int = 0
    digest: str = ""


class Import:
    """One import. `source` gives the lines from the first one, and can be called again for a file. `update`: an address
    that has an account changes that account's name and links; otherwise the line is refused. `dry`: nothing is
    written."""

    def __init__(
        self, store: Store, source: Callable[[], Iterator[ImportLine]], *, update: bool, dry: bool, kind: str = ""
    ) -> None:
        self._source = source
        self._dry = dry
        self._kind = f"{kind} {int(update)}"
        self._store = store
        self._writes = Writes(store, update=update, dry=dry)
        self._index = ImportIndex(store)
        self._state = store.import_state
        self._latest = int(wall.time() * 1000) + AHEAD

    async def run(self) -> AsyncGenerator[ImportResult, None]:
        """Yields what has happened so far, after each batch. An import that was interrupted continues behind its last
        batch. Raises StoreUnavailable, StoreError, and Refused if the input can't be read again."""
        lines, head = self._opened()
        name = hashlib.sha256(self._kind.encode() + b"\n" + head).digest()[:16]
        progress = None if self._dry else await self._state.read(name)
        digest = hashlib.sha256()
        if progress is not None and not _skip(lines, progress, digest):
            # The input has changed, so line numbers name other people.
            lines, _ = self._opened()
            digest, progress = hashlib.sha256(), None
        resumed = progress is not None
        if progress is None:
            progress = ImportProgress(new_id(), digest=digest.hexdigest())
            if not self._dry:
                # The seed lasts before the first person does.
                await self._state.note(name, progress)
        yield progress.result
        writing: asyncio.Task[ImportProgress] | None = None
        try:
            async for batch in self._batches(lines, progress, digest):
                if writing is not None:
                    progress = await writing
                    yield progress.result
                writing = asyncio.ensure_future(self._write(name, batch, progress))
            if writing is not None:
                progress = await writing
            if not self._dry:
                await self._index.finish()
        finally:
            await self._index.cancel()
            if writing is not None:
                await ended(writing)
        if resumed:
            # The people whom the interrupted run had yet to enter into the index.
            await self._store.directory_relay.sweep()
        if not self._dry:
            await self._state.forget(name)
        yield progress.result

    def _opened(self) -> tuple[Iterator[ImportLine], bytes]:
        """The lines, and the beginning that names the import."""
        lines, first, size = self._source(), list[ImportLine](), 0
        for line in lines:
            first.append(line)
            size += len(line.raw) + 1
            if size >= HEAD:
                break
        return chain(first, lines), b"\n".join(line.raw for line in first)

    async def _batches(self, lines: Iterator[ImportLine], begun: ImportProgress, digest: Any) -> AsyncIterator[_Batch]:
        seed, number, batch = begun.seed, begun.line, _Batch(line=begun.line)
        for line in lines:
            number += 1
            found = self._read(line, number, seed)
            names = found.names if isinstance(found, Prospect) else ()
            if len(batch.movers) == BATCH or number - batch.line > BATCH_LINES or not batch.taken.isdisjoint(names):
                batch.line, batch.digest = number - 1, digest.hexdigest()
                yield batch
                batch = _Batch(line=number - 1)
            digest.update(line.raw + b"\n")
            if isinstance(found, Prospect):
                batch.movers.append(found)
                batch.taken.update(names)
            elif found:
                batch.refused.append((number, found))
            if number % BREATH == 0:
                await asyncio.sleep(0)
        batch.line, batch.digest = number, digest.hexdigest()
        yield batch

    def _read(self, line: ImportLine, number: int, seed: str) -> Prospect | str:
        """The person of a line, or why the line is refused; an empty line is neither."""
        if line.wrong or not line.raw.strip():
            return line.wrong
        try:
            mover: Mover = read_mover(line.raw, self._latest)
        except ValueError as error:
            return str(error)
        return Prospect(number, mover, user_of(seed, number))

    async def _write(self, name: bytes, batch: _Batch, before: ImportProgress) -> ImportProgress:
        """Writes a batch, and notes that it is done."""
        counted: BatchOutcome = await self._writes.write(batch.movers)
        refused = sorted((*batch.refused, *counted.refused))
        after = replace(
            before,
            line=batch.line,
            digest=batch.digest,
            result=before.result.plus(counted.created, counted.updated, refused),
        )
        if not self._dry:
            await self._state.note(name, after)
            await self._index.add(Listed(one.user, one.mover.email, one.mover.name) for one in counted.written)
        return after


def user_of(seed: str, line: int) -> str:
    """The user id for a line of an import. Lines that follow each other share a shard; the shards take turns."""
    own = hashlib.blake2b(b"%d" % line, key=seed.encode(), digest_size=16).hexdigest()
    return keys.SHARDS[(_first_shard(seed) + line // TOGETHER) % len(keys.SHARDS)] + own[3:]


@lru_cache(8)
def _first_shard(seed: str) -> int:
    return int.from_bytes(hashlib.blake2b(b"shard", key=seed.encode(), digest_size=2).digest())


def _skip(lines: Iterator[ImportLine], progress: ImportProgress, digest: Any) -> bool:
    """Reads the lines that are done. Returns whether they are what they were."""
    for _ in range(progress.line):
        line = next(lines, None)
        if line is None:
            return False
        digest.update(line.raw + b"\n")
    return bool(digest.hexdigest() == progress.digest)
