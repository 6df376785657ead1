"""The security log: what happened to accounts, apps and the store, for the operator.

An event is counted and written to the process's log at once, and queued. A background task sends the queue to the logs
in the store about once a second, so no request waits for it, and `latchkey audit` reads it there. Until then, the event
of a script that records it is in a note of that script (`store/accounts/audit/recorded.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from store import parsed_keys
from store.accounts.audit.classes import cause_of, gatherings
from store.accounts.audit.logged_event import AuditEvent, clean
from store.accounts.audit.noted import NotedEvent
from store.accounts.audit.sign_in_failures import sign_in_failure
from store.accounts.audit.trail import TrailWriter
from store.crypto.fingerprints import Fingerprints
from store.crypto.keyring import Keys
from store.engine.background import background, working
from store.engine.scripts import Reply, Scripts, Value
from store.engine.security_outcomes import OUTCOMES, WORDS
from store.errors import StoreError
from store.events.declared_event import Declared, EventStream
from store.lifetimes import FACTOR
from store.security_events import EVENTS

log = logging.getLogger("latchkey.security")

FLUSH_SECONDS: Final = 1.0
"""How long a batch collects events after its first one."""
AWAY_SECONDS: Final = 5.0
"""The pause before a retry, after the store did not take a batch."""
BATCH: Final = 200
"""Events in one batch."""
QUEUED: Final[dict[EventStream, int]] = {"strangers": 2_000, "people": 1_500, "sensitive": 1_000, "operator": 500}
"""Events of each stream that may wait in a process; later ones are lost, and counted."""
_WINDOWS: Final = {"guesses": FACTOR.name}
"""Limits other than windows, by the kind of their key."""


class Origin(NamedTuple):
    """The origin of the running request: address, agent and request id. `actor` overrides the event's own, for the
    operator's acts. `by`: the key or person that acts for the operator. `network`: the address or /64 that counts as
    one place; if empty, the address."""

    address: str = ""
    agent: str = ""
    request_id: str = ""
    actor: str = ""
    network: str = ""
    by: str = ""


class AskedBy(NamedTuple):
    """The part of the origin that the script of an act notes: `actor`, `request_id` and `by` of Origin."""

    actor: str = ""
    request_id: str = ""
    by: str = ""


@dataclass(slots=True)
class _Waiting:
    event: AuditEvent
    since: float


class SecurityLog:
    """Takes events without a call to the store; `flush` sends them. Events that a killed process has not sent are lost
    to the store; only the process's log has them."""

    def __init__(self, scripts: Scripts, secret_keys: Keys) -> None:
        self.fingerprints = Fingerprints(secret_keys)
        """Of addresses that people typed, and of other texts that records must not show."""
        self.trail = TrailWriter(scripts)
        self._queue: deque[_Waiting] = deque()
        self._queued: Counter[EventStream] = Counter()
        self._lost: Counter[EventStream] = Counter()
        self._gathered = gatherings()
        self._dropped: list[tuple[str, str]] = []
        self.writer = secrets.token_hex(4)
        """The name of this process in the ids of its events."""
        self._number = 0
        self._something = asyncio.Event()
        self.origin: Callable[[], Origin] = Origin
        """Returns the origin of the running request."""
        self.asked_by: Callable[[], AskedBy] = AskedBy
        """Returns the part of it that scripts note, which takes no time to find out."""
        self.settle_notes: Callable[[Iterable[tuple[str, str]]], Awaitable[None]] | None = None
        """Drops notes of scripts whose events are in the log."""
        self.tell: Callable[[AuditEvent], None] = lambda event: None
        """Called with each event at once, for the process's log."""
        self.watch: Callable[[str, str, int], None] = lambda event, result, count: None
        """Called with each event at once, for the metrics: name, result, count."""
        self.watch_failure: Callable[[str], None] = lambda reason: None
        """Called with each failed sign-in at once, for the metrics: one of REASONS."""

    def heard(self, script: str, reply: Reply, known: Mapping[str, str], args: Mapping[str, Value]) -> None:
        """Notes the event in a script's answer: one recorded in a person's activity, or an outcome that no activity
        has."""
        outcome = OUTCOMES.get((script, reply.word))
        detail = outcome.detail if outcome else ""
        if outcome and outcome.event == "link_issued":
            parsed = parsed_keys.read(known["link"])
            detail = parsed.name if parsed else ""
        for row in reply.noted:
            trail, name, client, address, agent, note, more = (one.decode("utf-8", "replace") for one in row)
            declared, recorded = EVENTS.get(name), ((trail[1:4], note),) if note else ()
            if declared is None or declared.logged:
                about, outcome = ("", outcome) if not outcome or outcome.event != name else (detail, None)
                facts = {"person": parsed_keys.owner(trail), "client": client, "address": address, "agent": agent}
                self.note(name, **facts, detail=more or about, recorded=recorded)
            else:
                self._dropped += recorded
                self._something.set()
        if reply.word in WORDS:
            self._refused(WORDS[reply.word], script, known, args)
        elif outcome:
            self.note(outcome.event, person=parsed_keys.owner(known["user"]), detail=detail)

    def note(
        self,
        name: str,
        *,
        person: str = "",
        client: str = "",
        address: str = "",
        agent: str = "",
        typed: str = "",
        detail: str = "",
        recorded: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Notes an event. `typed` is an e-mail address that somebody typed; only its fingerprint is kept. AuditEvent
        explains `recorded`."""
        origin = self.origin()
        declared = EVENTS.get(name) or Declared(name, name)
        # Also made for a known person: the timing must reveal nothing.
        fingerprint = self.fingerprints.of(typed) if typed else ""
        event = AuditEvent(
            declared.name,
            declared.result,
            declared.severity,
            origin.actor or declared.actor,
            recorded[0][1] if recorded else self._next_id(),
            # Commands are the operator's acts, even if other actors can cause the same event.
            "operator" if origin.actor else declared.stream,
            person=person,
            client=clean(client),
            address=clean(address or origin.address),
            agent=clean(agent or origin.agent, 100),
            typed="" if person else fingerprint,
            detail=clean(detail, 200),
            request_id=clean(origin.request_id),
            by=clean(origin.by, 150),
            recorded=recorded,
        )
        self.watch(event.event, event.result, event.count)
        if event.result == "refused" and (reason := sign_in_failure(event.event, event.detail)):
            self.watch_failure(reason)
        for one in self._gather(event, declared, origin.network or event.address):
            self._take(one, time.monotonic())

    async def flush(self) -> None:
        """Sends the queue. Raises StoreUnavailable, StoreError; unsent events stay in the queue, in order."""
        self._end_windows(time.monotonic())
        while self._queue:
            for stream, count in self._lost.items():
                self._put(self._lost_event(stream, count), time.monotonic())
            self._lost.clear()
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            now = time.monotonic()
            try:
                sent = [(one.event, max(0, round((now - one.since) * 1000))) for one in batch]
                await self.trail.append(sent)
            except BaseException:
                # Some may have been stored all the same: readers use the ids to skip the duplicates.
                self._queue.extendleft(reversed(batch))
                raise
            self._queued.subtract(one.event.stream for one in batch)
            self._dropped += (note for one in batch for note in one.event.recorded)
        for gathering in self._gathered.values():
            self._dropped += gathering.excess
            gathering.excess.clear()
        if self._dropped and self.settle_notes:
            # A note that stays is put into the log once more, where readers skip it.
            dropped, self._dropped = self._dropped, []
            await self.settle_notes(dropped)

    def noted_as(self) -> str:
        """What a script notes with its events: the id of the first of them, and who asked for it in which request."""
        asked = self.asked_by()
        return f"{self._next_id()}\t{asked.actor}\t{asked.request_id}\t{asked.by}"

    def put_back(self, found: NotedEvent, age: int) -> None:
        """Queues an event that a script noted `age` seconds ago, and whose process has not put it into the log."""
        declared = EVENTS.get(found.event) or Declared(found.event, found.event)
        event = found.as_logged(declared)
        if not declared.logged:
            self._dropped += event.recorded
            self._something.set()
        elif self._queued[event.stream] < QUEUED[event.stream]:
            self._put(event, time.monotonic() - age)

    def settle(self) -> None:
        """Queues the counts of open windows: the process ends, so nothing more comes."""
        self._end_windows(float("inf"))

    @property
    def waiting(self) -> int:
        """Events that the store has not received yet."""
        return len(self._queue)

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Flushes in the background while the block runs, and once more after it."""
        try:
            async with background(self._keep_flushing()):
                yield
        finally:
            self.settle()
            await self._flush_quietly()

    async def _keep_flushing(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_a_window_ends()):
                    await self._something.wait()
            self._something.clear()
            await asyncio.sleep(FLUSH_SECONDS)
            if not await self._flush_quietly():
                self._something.set()
                await asyncio.sleep(AWAY_SECONDS)

    def _until_a_window_ends(self) -> float | None:
        """Seconds until the next window ends; None without an open window."""
        ends = [end for gathering in self._gathered.values() if (end := gathering.next_end) is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    async def _flush_quietly(self) -> bool:
        try:
            with working("write security log"):
                await self.flush()
        except StoreError as error:
            log.warning("%d security events wait for the store: %s", self.waiting, error)
            return False
        return True

    def _take(self, event: AuditEvent, since: float) -> None:
        self.tell(event)
        if self._queued[event.stream] >= QUEUED[event.stream]:
            self._lost[event.stream] += event.count
        else:
            self._put(event, since)

    def _put(self, event: AuditEvent, since: float) -> None:
        self._queue.append(_Waiting(event, since))
        self._queued[event.stream] += 1
        self._something.set()

    def _gather(self, event: AuditEvent, declared: Declared, network: str) -> Iterable[AuditEvent]:
        """The events to log now: none for a repetition, which is logged later with a count."""
        gathering = self._gathered.get((event.stream, declared.counted))
        if gathering is None or (declared.counted != "by_cause" and not event.person):
            return (event,)
        self._something.set()  # schedules the end of its window
        return gathering.take(event, cause_of(event, declared, network), time.monotonic())

    def _end_windows(self, now: float) -> None:
        """Queues the counts of windows that have ended."""
        for gathering in self._gathered.values():
            for event in gathering.ended(now):
                self._take(event, time.monotonic())

    def _refused(self, event: str, script: str, known: Mapping[str, str], args: Mapping[str, Value]) -> None:
        key, detail, client = known.get("user", ""), script, str(args.get("client", ""))
        if event == "limited":
            windows = (known[name] for name in ("presented", "window", "narrow", "guesses") if known.get(name))
            key = next(windows, key)
            if parsed := parsed_keys.read(key):
                detail = parsed.name or _WINDOWS.get(parsed.kind, parsed.kind)
                client = client or parsed.client
        if not client and "grant" in known and (grant := parsed_keys.read(known["grant"])):
            client = grant.client
        self.note(event, person=parsed_keys.owner(key), client=client, detail=detail)

    def _lost_event(self, stream: EventStream, count: int) -> AuditEvent:
        declared = EVENTS["events_lost"]
        event = AuditEvent(
            declared.name,
            declared.result,
            declared.severity,
            declared.actor,
            self._next_id(),
            stream,
            detail=stream,
            count=count,
        )
        self.watch(event.event, event.result, count)
        self.tell(event)
        return event

    def _next_id(self) -> str:
        self._number += 1
        return f"{self.writer}{self._number:x}"
