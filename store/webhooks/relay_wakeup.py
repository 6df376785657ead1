"""Hints for the relay: shards where this process has just written events, so that they go out at once."""

from __future__ import annotations

import asyncio
import contextlib

from store import keys


class RelayWakeup:
    """Shards whose outbox is probably not empty. Hints only save time: a sweep finds every event without them."""

    def __init__(self) -> None:
        self._shards: set[str] = set()
        self._some = asyncio.Event()

    def add(self, user: str, written: bool = True) -> None:
        """Adds the shard of this person, if an event may have been written (`written`)."""
        if written:
            self._shards.add(user[:3])
            self._some.set()

    def add_key(self, changed: str) -> None:
        """Adds the shard of these notes on people."""
        self.add(keys.changed_shard(changed))

    @property
    def some(self) -> bool:
        """Whether there are hints."""
        return self._some.is_set()

    async def take(self, seconds: float) -> frozenset[str]:
        """The shards hinted at since the last call: waits for one, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        found = frozenset(self._shards)
        self.clear()
        return found

    def clear(self) -> None:
        """Drops all hints."""
        self._shards.clear()
        self._some.clear()
