"""Sends the security log to an OpenTelemetry collector, event by event in their order, at least once.

Each process has one exporter, and one of them at a time has the turn (`store/accounts/audit/export_turn.py`). It reads
a page of the log, sends it in batches, and then notes the position in the store. So after a crash, the next one sends
that page again: an event may arrive twice, with the same `latchkey.event.id`, and none is left out. The same holds
after a failover that lost entries, also if the clock of the new node is behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

import orjson

from observability.spans import working
from outbound.log_collector import CollectorAnswer
from store.accounts.audit.export_turn import Exported, ExportTurn, ExportTurns
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_reading import SecurityEvents, TrailPosition
from store.engine.background import background
from store.errors import StoreError
from store.operators.trail_formats import otlp_request

log = logging.getLogger("latchkey.security")

POLL_SECONDS: Final = 2.0
"""Between two reads, once everything was sent."""
ASK_SECONDS: Final = 5.0
"""Between two questions of a process that waits for its turn, and of one that waits for the collector."""
AWAY_SECONDS: Final = 5.0
"""The pause after the store did not answer."""
EACH: Final = 50
"""Events of each stream and shard in a page, so at most a thousand in memory."""
BATCH: Final = 200
"""Events in a request: some 200 KB, below what collectors and proxies in front of them take."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LONGEST_ASKED: Final = 300.0
"""Seconds of pause that a collector may ask for."""


class Collector(Protocol):
    """Where events go."""

    @property
    def host(self) -> str:
        """Its name in the log."""

    async def send(self, body: bytes, count: int) -> CollectorAnswer:
        """Sends a request with `count` events. Raises nothing except cancellation."""


class _TurnLost(Exception):
    """Another process has the turn by now."""


class AuditExport:
    """The exporter of a process."""

    def __init__(self, events: SecurityEvents, turns: ExportTurns, collector: Collector) -> None:
        self._events, self._turns, self._collector = events, turns, collector
        self._done: Exported | None = None
        self._began: TrailPosition | None = None
        self._seen_at, self._behind = time.monotonic(), 0.0
        self._failures = self._refusals = 0
        self._why = ""
        self.watch: Callable[[str, int], None] = lambda outcome, count: None
        """Called with events that were sent, or refused by the collector, and how many."""

    @property
    def behind(self) -> float:
        """How many seconds the export is behind the log, whichever process has the turn."""
        return self._behind + time.monotonic() - self._seen_at

    @asynccontextmanager
    async def exporting(self) -> AsyncIterator[None]:
        """Exports in the background while the block runs; then another process continues at once."""
        try:
            async with background(self._keep()):
                yield
        finally:
            if self._done is not None:
                with contextlib.suppress(StoreError):
                    await self._turns.hold(self._done, 0)

    async def _keep(self) -> None:
        while True:
            try:
                pause = await self.round()
            except StoreError as error:
                log.warning("the export of the security log waits for the store: %s", error)
                pause = AWAY_SECONDS
            except Exception:  # whatever it is, the export continues, and retries this
                log.exception("the export of the security log waits")
                self._done, pause = None, AWAY_SECONDS
            await asyncio.sleep(pause)

    async def round(self) -> float:
        """Sends a page of the log, if it is this process's turn. Returns the seconds until the next round. Raises
        StoreError."""
        try:
            return await self._round()
        except _TurnLost:
            # What was sent and not noted is sent again by the process that has the turn.
            self._done = None
            return ASK_SECONDS

    async def _round(self) -> float:
        turn = await self._hold(self._done)
        position = self._done.position if self._done else turn.position
        if position is None:
            # The first export of all: what came before is in the files of `audit export`.
            self._done = Exported(await self._events.end(), turn.now)
            return 0.0
        self._began = turn.position
        page, after, more = await self._events.after(position, EACH, sure=True)
        if page:
            with working("export security log"):
                await self._send(page)
        self._done = Exported(after, _time_of(after) if more else turn.now)
        return 0.0 if more else POLL_SECONDS

    async def _hold(self, done: Exported | None = None) -> ExportTurn:
        """Takes the turn or keeps it. Raises _TurnLost."""
        turn = await self._turns.hold(done)
        self._behind, self._seen_at = max(0, turn.now - turn.at) / 1000 if turn.at else 0.0, time.monotonic()
        if turn.busy:
            raise _TurnLost
        return turn

    async def _keep_turn(self) -> None:
        """Keeps the turn amid a page. Raises _TurnLost, also if another process had the turn meanwhile and noted
        more: the end of this page would set its position back."""
        noted = (await self._hold()).position
        # A store that lost the position gets it again after the page.
        if noted is not None and noted != self._began:
            raise _TurnLost

    async def _send(self, events: Sequence[AuditEvent]) -> None:
        """Sends events, until each has arrived or is refused. Raises _TurnLost, StoreError."""
        waiting = [events[start : start + BATCH] for start in range(0, len(events), BATCH)][::-1]
        while waiting:
            batch = waiting.pop()
            answer = await self._post(batch)
            if answer.outcome == "sent":
                self._refusals = 0
                self._count(len(batch) - answer.rejected, answer.rejected)
            elif len(batch) > 1:
                # One event that the collector cannot take must not take others with it.
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
            else:
                log.error("the collector %s refused an event of the security log: %s", self._collector.host, answer.why)
                self._count(0, 1)
                # A collector that refuses everything gets an event a minute: somebody sees the alert before much is
                # gone.
                self._refusals += 1
                await self._wait(_pause(self._refusals))

    async def _post(self, batch: Sequence[AuditEvent]) -> CollectorAnswer:
        """Sends a batch as often as it takes. Raises as `_send`."""
        body = orjson.dumps(otlp_request(batch))
        while True:
            await self._keep_turn()
            answer = await self._collector.send(body, len(batch))
            if answer.outcome != "later":
                if self._failures:
                    log.info("the collector %s takes the security log again", self._collector.host)
                self._failures, self._why = 0, ""
                return answer
            self._failures += 1
            if answer.why != self._why:
                self._why = answer.why
                log.warning("the security log waits for the collector %s: %s", self._collector.host, answer.why)
            await self._wait(max(_pause(self._failures), min(answer.pause, LONGEST_ASKED)))

    async def _wait(self, seconds: float) -> None:
        """Waits, and keeps the turn meanwhile."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, ASK_SECONDS))
            await self._keep_turn()

    def _count(self, sent: int, refused: int) -> None:
        for outcome, count in (("sent", sent), ("refused", refused)):
            if count:
                self.watch(outcome, count)


def _pause(failures: int) -> float:
    """The seconds before a retry, uneven so that servers don't meet."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 10))
    return longest * (0.5 + secrets.randbelow(501) / 1000)


def _time_of(position: TrailPosition) -> int:
    """The time in ms of the last entry before a position."""
    return max(int(one.partition("-")[0]) for one in position)
