"""Reading the security log, and following it as it grows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import fields
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from store import keys
from store.errors import wrapped
from store.security_log import Event

PAGE: Final = 500
"""Events that are read at once."""
POLL_SECONDS: Final = 0.5
"""How often `follow` looks for more."""
_SEEN: Final = 5_000
"""Ids by which an event that was stored twice is told: as many as a process sends after a lost answer."""
_KEY: Final = keys.SECURITY_EVENTS["events"]
_FIELDS: Final = {field.name for field in fields(Event)}

Wanted = Callable[[Event], bool]


class SecurityEvents:
    """The events that the store has received, of every process. Methods raise StoreUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def newest(self, most: int | None, since: int = 0, wanted: Wanted = lambda event: True) -> list[Event]:
        """The newest events that are wanted, oldest first: at most so many, and not from before `since`, in epoch
        milliseconds."""
        found: list[Event] = []
        seen = _Seen()
        last = "+"
        while most is None or len(found) < most:
            with wrapped():
                page: Any = await self._client.xrevrange(_KEY, last, str(since), PAGE)
            for _, row in page:
                event = _event(row)
                if event and event.at_ms >= since and wanted(event) and seen.is_new(event):
                    found.append(event)
            if len(page) < PAGE:
                break
            last = f"({page[-1][0].decode()}"
        return found[:most][::-1]

    async def follow(
        self, since: int | None = None, wanted: Wanted = lambda event: True
    ) -> AsyncIterator[Event | None]:
        """Events that are wanted as they come, for ever; from `since` on, else from now on. None whenever there is
        nothing more at present."""
        seen = _Seen()
        last = f"({await self._last()}" if since is None else str(since)
        while True:
            with wrapped():
                page: Any = await self._client.xrange(_KEY, last, "+", PAGE)
            for entry, row in page:
                last = f"({entry.decode()}"
                event = _event(row)
                if event and event.at_ms >= (since or 0) and wanted(event) and seen.is_new(event):
                    yield event
            if len(page) < PAGE:
                yield None
                await asyncio.sleep(POLL_SECONDS)

    async def _last(self) -> str:
        with wrapped():
            newest: Any = await self._client.xrevrange(_KEY, "+", "-", 1)
        return newest[0][0].decode() if newest else "0-0"


class _Seen:
    """The ids of the events that were read last."""

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._ids: set[str] = set()

    def is_new(self, event: Event) -> bool:
        """Whether the event was not read before."""
        if event.id in self._ids:
            return False
        self._ids.add(event.id)
        self._order.append(event.id)
        if len(self._order) > _SEEN:
            self._ids.discard(self._order.popleft())
        return True


def _event(row: dict[bytes, bytes]) -> Event | None:
    """An entry of the stream; None for one that a later release wrote in another way. What this release does not know
    of it is left out."""
    try:
        known = {name: value for name, value in orjson.loads(row[b"event"]).items() if name in _FIELDS}
        return Event(**{**known, "at_ms": int(row[b"at"])})
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
