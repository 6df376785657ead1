"""So many at once for each of whatever there is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    places: asyncio.Semaphore
    length: int = field(default=0)


class Turns:
    """`most` at once for each key; a key that nobody waits for takes no memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: dict[str, _Line] = {}

    @contextlib.asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Waits for a place, in the order of coming, and holds it."""
        line = self._lines.setdefault(key, _Line(asyncio.Semaphore(self._most)))
        line.length += 1
        try:
            async with line.places:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[key]
