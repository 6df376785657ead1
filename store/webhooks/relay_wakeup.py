"""Where this process has just written what apps are to be told of, so that it goes out at once."""

from __future__ import annotations

import asyncio
import contextlib


class RelayWakeup:
    """Shards whose outbox is not empty, probably. It is no more than speed: what no hint says, a sweep finds."""

    def __init__(self) -> None:
        self._shards: set[str] = set()
        self._some = asyncio.Event()

    def add(self, user: str, told: bool = True) -> None:
        """Something about this person may have been written, if `told`."""
        if told:
            self._shards.add(user[:3])
            self._some.set()

    async def take(self, seconds: float) -> frozenset[str]:
        """The shards that were hinted at since the last time: waits for one, at most so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        found = frozenset(self._shards)
        self.clear()
        return found

    def clear(self) -> None:
        """Forgets what was hinted."""
        self._shards.clear()
        self._some.clear()
