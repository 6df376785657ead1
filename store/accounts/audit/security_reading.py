"""Reads and follows the security log, with its shards, streams and days merged into one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

from store import keys
from store.accounts.audit.logged_event import AuditEvent, unpacked
from store.accounts.audit.trail import FIRST_NUMBER, STREAMS
from store.engine.scripts import Scripts
from store.events.declared_event import EventStream
from store.lifetimes import DAY

PAGE: Final = 250
"""Events of each stream in one read."""
CAME: Final = 5
"""The same for a reader elsewhere that follows: some 100 events in an answer."""
MOST_READS: Final = 20
"""Reads for one page of a list."""
VISITS: Final = 32
"""Days of one read."""
LATEST: Final = DAY
"""ms after an event in which its entry comes: a store may be away for some time."""
LOOK_BACK: Final = 5 * 60 * 1000
"""ms before a reader's last entry from which it reads a shard again that has lost that entry: more than clocks of nodes
differ."""
POLL_SECONDS: Final = 0.5
"""The pause between two reads of `follow`."""
_SEEN: Final = 5_000
"""Remembered ids, to recognise events stored twice: as many as a process resends after a lost answer."""
SOURCES: Final = keys.TRAIL_SHARDS + 1
"""The shards, and the streams of earlier releases."""

EventFilter = Callable[[AuditEvent], bool]
TrailPosition = tuple[str, ...]
"""The entry after which a reader continues in each source."""
EntryPlace = tuple[int, int]


class _Entry(NamedTuple):
    place: EntryPlace
    stream: EventStream
    row: list[bytes]

    @property
    def id(self) -> str:
        return _id(self.place)

    def event(self) -> AuditEvent | None:
        """The event in the entry, given as alternating fields and values."""
        fields = dict(zip(self.row[::2], self.row[1::2], strict=True))
        if not fields.keys() >= {b"at", b"event"}:
            return None
        return unpacked(self.stream, fields[b"at"], fields[b"event"], self.id)


class _Part(NamedTuple):
    """Entries of a source, in order, and the last place up to which they are all; None for everything there is."""

    entries: list[_Entry]
    whole: EntryPlace | None
    gone: EntryPlace | None = None
    """Where its reader is, if its last entry was lost and no other is there."""


class SecurityEvents:
    """The events that the store has received from all processes. Methods raise StoreUnavailable.

    Ids of entries rise over the streams of a shard (`lua/accounts/audit/append_trail.lua`), and no two shards have the
    same. So everything is merged by id, and one id marks the position of a reader that goes back in time. A reader that
    waits for new events has a position in each shard, since the clocks of nodes differ.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def newest(
        self, most: int | None, since: int = 0, wanted: EventFilter = lambda event: True
    ) -> list[AuditEvent]:
        """The newest wanted events, oldest first: at most `most`, none from before `since` (epoch milliseconds)."""
        found: list[AuditEvent] = []
        seen, until = _Seen(), "+"
        while until and (most is None or len(found) < most):
            page, until = await self._back(until, since)
            found += (event for one in page if (event := one.event()) and _fits(event, since, wanted, seen))
        return found[:most][::-1]

    async def page(
        self, most: int, since: int = 0, wanted: EventFilter = lambda event: True, until: str = "+"
    ) -> tuple[list[AuditEvent], str]:
        """At most `most` wanted events, newest first, and the position of the next page, "" at the end. Reads at most
        MOST_READS pages of each stream, so it may find fewer."""
        found: list[AuditEvent] = []
        seen = _Seen()
        for _ in range(MOST_READS):
            page, until = await self._back(until, since)
            for one in page:
                event = one.event()
                if event and _fits(event, since, wanted, seen):
                    found.append(event)
                    if len(found) == most:
                        return found, f"({one.id}"
            if not until:
                break
            await asyncio.sleep(0)
        return found, until

    async def one(self, entry: str) -> AuditEvent | None:
        """The event at this place in the log; None if it has expired."""
        parts = await self._parts([entry] * SOURCES, entry, backwards=False, most=1)
        return next((found.event() for part in parts for found in part.entries), None)

    async def pieces(
        self, since: int = 0, until: int | None = None, wanted: EventFilter = lambda event: True
    ) -> AsyncIterator[list[AuditEvent]]:
        """Yields the wanted events from `since` and before `until` (epoch milliseconds), oldest first, in pieces of
        bounded size. A piece may be empty."""
        seen, begin = _Seen(), str(since)
        last = "+" if until is None else str(until + LATEST)
        while begin:
            parts = await self._parts([begin] * SOURCES, last, backwards=False)
            entries, end = _up_to(parts)
            events = (one.event() for one in entries)
            yield [
                event
                for event in events
                if event and (until is None or event.at_ms < until) and _fits(event, since, wanted, seen)
            ]
            begin = f"({_id(end)}" if end else ""

    async def end(self) -> TrailPosition:
        """The position after the newest entry."""
        parts = await self._parts(["+"] * SOURCES, "-", backwards=True, most=1)
        return tuple(part.entries[0].id if part.entries else "0-0" for part in parts)

    async def follow(
        self, after: TrailPosition | str, since: int = 0, wanted: EventFilter = lambda event: True
    ) -> AsyncGenerator[AuditEvent | None]:
        """Yields wanted events as they arrive, without end: after a position or the entry `after`, and not from before
        `since` (epoch milliseconds). Yields None whenever nothing more is available."""
        seen = _Seen()
        position: TrailPosition = (after,) * SOURCES if isinstance(after, str) else after
        while True:
            entries, position, more = await self.after(position)
            for one in entries:
                if one and _fits(one, since, wanted, seen):
                    yield one
            if not more:
                yield None
                await asyncio.sleep(POLL_SECONDS)

    async def start(self, since: int | None = None) -> TrailPosition:
        """The position before the events from `since` on (epoch milliseconds); without it, after all that are there."""
        # An entry is never older than its event.
        return await self.end() if since is None else (f"{max(0, since - 1)}-0",) * SOURCES

    async def came(
        self, position: TrailPosition, since: int = 0, wanted: EventFilter = lambda event: True
    ) -> tuple[list[AuditEvent], TrailPosition, bool]:
        """The wanted events after a position, oldest first, the position after them, and whether there is more to read
        by now: this reads at most MOST_READS small pages. An event that was stored twice, or is read again after a
        failover, comes twice."""
        for _ in range(MOST_READS):
            entries, position, more = await self.after(position, CAME, sure=True)
            found = [one for one in entries if _fits(one, since, wanted, _Seen())]
            if found or not more:
                return found, position, more
            await asyncio.sleep(0)
        return [], position, True

    async def after(
        self, position: TrailPosition, most: int | None = None, *, sure: bool = False
    ) -> tuple[list[AuditEvent], TrailPosition, bool]:
        """A page of the events after a position, the position after them, and whether there are more by now. The page
        has about `most` events of each stream in each source. With `sure`, the position is one that this method or
        `end` gave: a shard that has lost its entry is read again from LOOK_BACK before, so events may come twice."""
        parts = await self._sure_parts(position, most) if sure else await self._parts_after(position, most)
        entries, end = _up_to(parts)
        taken = [one.event() for one in entries]
        # A source without entries has days whose logs have ended.
        places = (
            max((one.place for one in part.entries if end is None or one.place <= end), default=None)
            if part.entries
            else part.gone or part.whole
            for part in parts
        )
        after = tuple(_id(place) if place else one for place, one in zip(places, position, strict=True))
        return [one for one in taken if one], after, end is not None

    async def _parts_after(self, position: TrailPosition, most: int | None) -> list[_Part]:
        return await self._parts([f"({one}" for one in position], "+", backwards=False, most=most)

    async def _sure_parts(self, position: TrailPosition, most: int | None) -> list[_Part]:
        """As `_parts_after`, for a reader that must miss nothing. Ids of a shard rise, but not over the failover to a
        replica that lacks the newest entries and whose clock is behind: new entries may then have ids before the
        reader's position. The entry of the position is gone in that case, so each read begins with it."""
        most = (most or PAGE) + 1
        checked = [
            place < keys.TRAIL_SHARDS and _place(one.encode())[1] >= FIRST_NUMBER for place, one in enumerate(position)
        ]
        begins = [one if sure else f"({one}" for one, sure in zip(position, checked, strict=True)]
        parts = await self._parts(begins, "+", backwards=False, most=most)
        for shard, (one, sure) in enumerate(zip(position, checked, strict=True)):
            if not sure:
                continue
            last = _place(one.encode())
            rest = [entry for entry in parts[shard].entries if entry.place != last]
            if len(rest) < len(parts[shard].entries):
                parts[shard] = parts[shard]._replace(entries=rest)
                continue
            back = (max(0, last[0] - LOOK_BACK), 0)
            again = await self._shard(shard, _id(back), "+", most, backwards=False)
            # Without entries, the position becomes one that has none: it is not looked for again.
            parts[shard] = again if again.entries else again._replace(gone=back)
        return parts

    async def _back(self, until: str, since: int) -> tuple[list[_Entry], str]:
        """Entries from `until` back in time, newest first, and where the next ones begin; "" at the end."""
        parts = await self._parts([until] * SOURCES, str(since), backwards=True)
        end = max((part.whole for part in parts if part.whole), default=None)
        entries = (one for part in parts for one in part.entries if end is None or one.place >= end)
        return sorted(entries, reverse=True), f"({_id(end)}" if end else ""

    async def _parts(
        self, begins: Sequence[str], last: str, *, backwards: bool, most: int | None = None
    ) -> list[_Part]:
        most = most or PAGE
        sources = [
            *(
                self._shard(shard, begin, last, most, backwards=backwards)
                for shard, begin in enumerate(begins[: keys.TRAIL_SHARDS])
            ),
            self._old(begins[-1], last, most, backwards=backwards),
        ]
        return await asyncio.gather(*sources)

    async def _shard(self, shard: int, begin: str, last: str, most: int, *, backwards: bool) -> _Part:
        past = int(backwards)
        reply = await self._scripts.run(
            "read_trail", keys.trail(shard), begin=begin, last=last, most=most, visits=VISITS, backwards=past
        )
        day = reply.text("day")
        edge = None
        if day:
            begins = int(day) * DAY
            edge = (begins if backwards else begins + DAY, 0)  # no entry has this number
        return _part(reply.rows("pages"), most, edge, backwards=backwards)

    async def _old(self, begin: str, last: str, most: int, *, backwards: bool) -> _Part:
        """A part of the streams of earlier releases. They end 90 days after the last server that wrote them."""
        past = int(backwards)
        reply = await self._scripts.run(
            "read_events", keys.OLD_TRAIL, first=begin, last=last, most=most, backwards=past
        )
        return _part(reply.rows("pages"), most, None, backwards=backwards)


def _part(pages: Sequence[list[Any]], most: int, edge: EntryPlace | None, *, backwards: bool) -> _Part:
    """The part in the pages of a source. `edge`: where its last day ends, if there are more."""
    entries = [
        [_Entry(_place(entry), stream, row) for entry, row in page] for stream, page in zip(STREAMS, pages, strict=True)
    ]
    ends = [page[-1].place for page in entries if len(page) >= most]
    ends += [edge] if edge else []
    whole = (max(ends) if backwards else min(ends)) if ends else None
    return _Part(sorted((one for page in entries for one in page), reverse=backwards), whole)


def _up_to(parts: Sequence[_Part]) -> tuple[list[_Entry], EntryPlace | None]:
    """The entries up to the place where all parts are whole, and that place, in a reader that goes forward."""
    end = min((part.whole for part in parts if part.whole), default=None)
    return sorted(one for part in parts for one in part.entries if end is None or one.place <= end), end


def _fits(event: AuditEvent, since: int, wanted: EventFilter, seen: _Seen) -> bool:
    return event.at_ms >= since and wanted(event) and seen.is_new(event)


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


def _place(entry: bytes) -> EntryPlace:
    at, _, number = entry.partition(b"-")
    return int(at), int(number)


def _id(place: EntryPlace) -> str:
    return f"{place[0]}-{place[1]}"
