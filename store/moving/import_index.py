"""Writes the people of an import into the index of people, some thousands at a time, while the import goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from store.directory.relay import Listed
from store.engine.background import ended
from store.wiring import Store

AT_ONCE = 20_000
"""People who are entered together: the more, the more entries go into a bucket at once."""
PACE = 4
"""Calls for the index that run at a time: between them, the store works for the import's other steps."""


class ImportIndex:
    """Gathers people whose rows are written, and enters them together: so a section of the index gets many at once.

    The notes on people who are not entered yet stay, so a sweep of the relay enters them after an interruption. Methods
    raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gathered: list[Listed] = []
        self._writing: asyncio.Task[None] | None = None

    async def add(self, people: Iterable[Listed]) -> None:
        """Adds people, and waits if the people before them are not entered yet."""
        self._gathered += people
        if len(self._gathered) >= AT_ONCE:
            await self._begin()

    async def finish(self) -> None:
        """Enters everybody who was added."""
        await self._begin()
        await self._begin()

    async def _begin(self) -> None:
        if self._writing is not None:
            await self._writing
        people, self._gathered = self._gathered, []
        self._writing = asyncio.ensure_future(self._store.directory.add_many(people, PACE))

    async def cancel(self) -> None:
        """Stops."""
        if self._writing is not None:
            await ended(self._writing)
