"""Reading the security log, and following it as it grows: its streams as one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from store import keys
from store.accounts.audit.logged_event import AuditEvent, unpacked
from store.engine.scripts import Scripts
from store.security_events import EventStream

PAGE: Final = 250
"""Events of each stream that are read at once."""
POLL_SECONDS: Final = 0.5
"""How often `follow` looks for more."""
_SEEN: Final = 5_000
"""Ids by which an event that was stored twice is told: as many as a process sends after a lost answer."""
STREAMS: Final[tuple[EventStream, ...]] = ("strangers", "people", "sensitive", "operator")
"""In the order in which the script has them."""

EventFilter = Callable[[AuditEvent], bool]


class SecurityEvents:
    """The events that the store has received, of every process. Methods raise StoreUnavailable.

    Ids of entries rise over all streams together (`lua/accounts/audit/append_events.lua`), and a page of each is read
    in one step. So the streams are merged by id, and one id says how far somebody has read.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def newest(
        self, most: int | None, since: int = 0, wanted: EventFilter = lambda event: True, until: str = "+"
    ) -> list[AuditEvent]:
        """The newest events that are wanted, oldest first: at most so many, not from before `since`, in epoch
        milliseconds, and none behind the entry `until`."""
        found: list[AuditEvent] = []
        seen = _Seen()
        while most is None or len(found) < most:
            page = await self._page(until, str(since), PAGE, backwards=True)
            for _, event in page:
                if event and event.at_ms >= since and wanted(event) and seen.is_new(event):
                    found.append(event)
            if len(page) < PAGE:
                break
            until = f"({page[-1][0]}"
        return found[:most][::-1]

    async def end(self) -> str:
        """The id of the newest entry: `newest` until there and `follow` from there have every event once."""
        page = await self._page("+", "-", 1, backwards=True)
        return page[0][0] if page else "0-0"

    async def follow(
        self, after: str, since: int = 0, wanted: EventFilter = lambda event: True
    ) -> AsyncIterator[AuditEvent | None]:
        """Events that are wanted as they come, for ever: behind the entry `after`, and not from before `since`, in
        epoch milliseconds. None whenever there is nothing more at present."""
        seen = _Seen()
        while True:
            page = await self._page(f"({after}", "+", PAGE)
            after = page[-1][0] if page else after
            for _, event in page:
                if event and event.at_ms >= since and wanted(event) and seen.is_new(event):
                    yield event
            if len(page) < PAGE:
                yield None
                await asyncio.sleep(POLL_SECONDS)

    async def _page(
        self, first: str, last: str, most: int, *, backwards: bool = False
    ) -> list[tuple[str, AuditEvent | None]]:
        """The entries from one id to the other, at most so many; fewer only at the end."""
        reply = await self._scripts.run(
            "read_events", keys.SECURITY_EVENTS, first=first, last=last, most=most, backwards=int(backwards)
        )
        pages = zip(STREAMS, reply.rows("pages"), strict=True)
        entries = [(entry.decode(), row, stream) for stream, page in pages for entry, row in page]
        entries.sort(key=lambda entry: _place(entry[0]), reverse=backwards)
        return [(entry, _event(stream, row)) for entry, row, stream in entries[:most]]


class _Seen:
    """The ids of the events that were read last."""

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._ids: set[str] = set()

    def is_new(self, event: AuditEvent) -> bool:
        """Whether the event was not read before."""
        if event.id in self._ids:
            return False
        self._ids.add(event.id)
        self._order.append(event.id)
        if len(self._order) > _SEEN:
            self._ids.discard(self._order.popleft())
        return True


def _place(entry: str) -> tuple[int, int]:
    at, _, number = entry.partition("-")
    return int(at), int(number)


def _event(stream: EventStream, row: list[bytes]) -> AuditEvent | None:
    """An entry of a stream, as fields and values by turns."""
    fields = dict(zip(row[::2], row[1::2], strict=True))
    return unpacked(stream, fields[b"at"], fields[b"event"]) if fields.keys() >= {b"at", b"event"} else None
