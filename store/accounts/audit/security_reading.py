"""Reads and follows the security log, with its streams merged into one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from store import keys
from store.accounts.audit.logged_event import AuditEvent, unpacked
from store.engine.scripts import Scripts
from store.events.declared_event import EventStream

PAGE: Final = 250
"""Events of each stream in one read."""
MOST_READS: Final = 20
"""Reads for one page of a list."""
POLL_SECONDS: Final = 0.5
"""The pause between two reads of `follow`."""
_SEEN: Final = 5_000
"""Remembered ids, to recognise events stored twice: as many as a process resends after a lost answer."""
STREAMS: Final[tuple[EventStream, ...]] = ("strangers", "people", "sensitive", "operator")
"""The streams, in the order of the script."""

EventFilter = Callable[[AuditEvent], bool]


class SecurityEvents:
    """The events that the store has received from all processes. Methods raise StoreUnavailable.

    Ids of entries rise over all streams together (`lua/accounts/audit/append_events.lua`), and one step reads a page of
    each stream. So the streams are merged by id, and one id marks a reader's position.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def newest(
        self, most: int | None, since: int = 0, wanted: EventFilter = lambda event: True, until: str = "+"
    ) -> list[AuditEvent]:
        """The newest wanted events, oldest first: at most `most`, none from before `since` (epoch milliseconds), and
        none after the entry `until`."""
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

    async def page(
        self, most: int, since: int = 0, wanted: EventFilter = lambda event: True, until: str = "+"
    ) -> tuple[list[AuditEvent], str]:
        """At most `most` wanted events, newest first, and the position of the next page, "" at the end. Reads at most
        MOST_READS pages of each stream, so it may find fewer."""
        found: list[AuditEvent] = []
        seen = _Seen()
        for _ in range(MOST_READS):
            page = await self._page(until, str(since), PAGE, backwards=True)
            for entry, event in page:
                if event and event.at_ms >= since and wanted(event) and seen.is_new(event):
                    found.append(event)
                    if len(found) == most:
                        return found, f"({entry}"
            if len(page) < PAGE:
                return found, ""
            until = f"({page[-1][0]}"
        return found, until

    async def end(self) -> str:
        """The id of the newest entry: `newest` up to it and `follow` from it together yield every event once."""
        page = await self._page("+", "-", 1, backwards=True)
        return page[0][0] if page else "0-0"

    async def follow(
        self, after: str, since: int = 0, wanted: EventFilter = lambda event: True
    ) -> AsyncIterator[AuditEvent | None]:
        """Yields wanted events as they arrive, without end: after the entry `after`, and not from before `since` (epoch
        milliseconds). Yields None whenever nothing more is available."""
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
        """The entries from one id to the other, at most `most`; fewer only at the end."""
        reply = await self._scripts.run(
            "read_events", keys.SECURITY_EVENTS, first=first, last=last, most=most, backwards=int(backwards)
        )
        pages = zip(STREAMS, reply.rows("pages"), strict=True)
        entries = [(entry.decode(), row, stream) for stream, page in pages for entry, row in page]
        entries.sort(key=lambda entry: _place(entry[0]), reverse=backwards)
        return [(entry, _event(stream, row)) for entry, row, stream in entries[:most]]


class _Seen:
    """The ids of the last events read."""

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._ids: set[str] = set()

    def is_new(self, event: AuditEvent) -> bool:
        """Whether the event has not been read before."""
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
    """The event in an entry of a stream, given as alternating fields and values."""
    fields = dict(zip(row[::2], row[1::2], strict=True))
    return unpacked(stream, fields[b"at"], fields[b"event"]) if fields.keys() >= {b"at", b"event"} else None
