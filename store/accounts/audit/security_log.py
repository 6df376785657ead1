"""The security log: what happened to accounts, apps and the store, for the operator.

An event is counted and written to the process's log at once, and queued. A background task sends the queue to streams
in the store within a second, so no request waits for it, and `latchkey audit` reads it there.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import orjson

from store import keys, parsed_keys
from store.accounts.audit.gathering import Gathering
from store.accounts.audit.logged_event import AuditEvent
from store.crypto.keyring import Keys, SecretKey
from store.engine.background import background
from store.engine.scripts import Reply, Scripts, Value
from store.engine.security_outcomes import OUTCOMES, WORDS
from store.errors import StoreError
from store.events.declared_event import Counted, Declared, EventStream
from store.lifetimes import DAY, FACTOR
from store.security_events import EVENTS

log = logging.getLogger("latchkey.security")

FLUSH_SECONDS: Final = 0.5
"""How long a batch collects events after its first one."""
AWAY_SECONDS: Final = 5.0
"""The pause before a retry, after the store did not take a batch."""
BATCH: Final = 200
"""Events in one batch."""
QUEUED: Final[dict[EventStream, int]] = {"strangers": 2_000, "people": 1_500, "sensitive": 1_000, "operator": 500}
"""Events of each stream that may wait in a process; later ones are lost, and counted."""
KEPT: Final[dict[EventStream, int]] = {"strangers": 10_000, "people": 20_000, "sensitive": 20_000, "operator": 10_000}
"""Events of each stream in the store."""
KEPT_MS: Final = 90 * DAY
"""How long an event stays in the store, in ms."""
SHORT_SECONDS: Final = 10.0
"""Repetitions by strangers within this time are one event with a count."""
LONG_SECONDS: Final = 3600.0
"""The same for people's and sensitive events. The first ones of each window are logged one by one:"""
PEOPLE_SINGLES: Final = 3
SENSITIVE_SINGLES: Final = 5
MOST_CAUSES: Final = 100
"""Causes of strangers' events that are distinguished at once: a flood makes at most twice this number of events in
`SHORT_SECONDS`, from however many addresses it comes."""
MOST_ACTS: Final = 5_000
"""The same for acts of people, for each class in `_gatherings`. A further cause ends the oldest window early."""
MOST_OF_ONE: Final = 10
"""Causes of one person's refused calls, by app and script, that are distinguished in `LONG_SECONDS`: a person may have
dozens of apps. Beyond `MOST_ACTS` of all people, a refused call is counted without its person."""
MOST_PLACES: Final = 5
"""The same for a person's sign-ins of one kind, by network and browser."""
MOST_APPS: Final = 5
"""The same for a person's replays of one kind, by app."""
MOST_OF_A_PERSON: Final[dict[EventStream, int]] = {"people": 280, "sensitive": 310}
"""Events of one person in `LONG_SECONDS` from the first, in a process: the sum over all kinds. Each kind has its own
bound, since with a common one somebody could hide an event behind noise of other kinds."""
_WINDOWS: Final = {"guesses": FACTOR.name}
"""Limits other than windows, by the kind of their key."""
_PURPOSE: Final = b"latchkey security log"


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


@dataclass(slots=True)
class _Waiting:
    event: AuditEvent
    since: float


class SecurityLog:
    """Takes events without a call to the store; `flush` sends them. Events that a killed process has not sent are lost
    to the store; only the process's log has them."""

    def __init__(self, scripts: Scripts, secret_keys: Keys) -> None:
        self._scripts = scripts
        self._keys = secret_keys
        self._queue: deque[_Waiting] = deque()
        self._queued: Counter[EventStream] = Counter()
        self._lost: Counter[EventStream] = Counter()
        self._gathered = _gatherings()
        self._begun = secrets.token_hex(4)
        self._number = 0
        self._something = asyncio.Event()
        self.origin: Callable[[], Origin] = Origin
        """Returns the origin of the running request."""
        self.tell: Callable[[AuditEvent], None] = lambda event: None
        """Called with each event at once, for the process's log."""
        self.watch: Callable[[str, str, int], None] = lambda event, result, count: None
        """Called with each event at once, for the metrics: name, result, count."""

    def heard(self, script: str, reply: Reply, known: Mapping[str, str], args: Mapping[str, Value]) -> None:
        """Notes the event in a script's answer: one recorded in a person's activity, or an outcome that no activity
        has."""
        for trail, event, client, address, agent in reply.noted:
            name = event.decode("utf-8", "replace")
            declared = EVENTS.get(name)
            if declared is None or declared.logged:
                self.note(
                    name,
                    person=parsed_keys.owner(trail.decode()),
                    client=client.decode("utf-8", "replace"),
                    address=address.decode("utf-8", "replace"),
                    agent=agent.decode("utf-8", "replace"),
                )
        if reply.word in WORDS:
            self._refused(WORDS[reply.word], script, known, args)
        elif outcome := OUTCOMES.get((script, reply.word)):
            detail = outcome.detail
            if outcome.event == "link_issued":
                parsed = parsed_keys.read(known["link"])
                detail = parsed.name if parsed else ""
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
    ) -> None:
        """Notes an event. `typed` is an e-mail address that somebody typed; only its fingerprint is kept."""
        origin = self.origin()
        declared = EVENTS.get(name) or Declared(name, name)
        # Also made for a known person: the timing must reveal nothing.
        fingerprint = _fingerprint(self._keys.ring.front, typed) if typed else ""
        event = AuditEvent(
            declared.name,
            declared.result,
            declared.severity,
            origin.actor or declared.actor,
            self._next_id(),
            # Commands are the operator's acts, even if other actors can cause the same event.
            "operator" if origin.actor else declared.stream,
            person=person,
            client=_clean(client),
            address=_clean(address or origin.address),
            agent=_clean(agent or origin.agent, 100),
            typed="" if person else fingerprint,
            detail=_clean(detail, 200),
            request_id=_clean(origin.request_id),
            by=_clean(origin.by, 150),
        )
        self.watch(event.event, event.result, event.count)
        for one in self._gather(event, declared, origin.network or event.address):
            self._take(one, time.monotonic())

    def fingerprints(self, typed: str) -> list[str]:
        """The fingerprints of a typed address, under each secret key, the one in use first. Nobody without the keys can
        test a guess against them, because people type passwords into that field."""
        return [_fingerprint(key, typed) for key in self._keys.ring.keys]

    async def flush(self) -> None:
        """Sends the queue. Raises StoreUnavailable, StoreError; unsent events stay in the queue, in order."""
        self._end_windows(time.monotonic())
        while self._queue:
            for stream, count in self._lost.items():
                self._put(self._lost_event(stream, count), time.monotonic())
            self._lost.clear()
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            now = time.monotonic()
            sent = [(one.event.stream, max(0, round((now - one.since) * 1000)), one.event.packed()) for one in batch]
            try:
                await self._scripts.run(
                    "append_events",
                    keys.SECURITY_EVENTS,
                    most=orjson.dumps(KEPT).decode(),
                    keep=KEPT_MS,
                    batch=orjson.dumps(sent).decode(),
                )
            except BaseException:
                # Some may have been stored all the same: readers use the ids to skip the duplicates.
                self._queue.extendleft(reversed(batch))
                raise
            self._queued.subtract(one.event.stream for one in batch)

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
        counted = declared.counted
        gathering = self._gathered.get((event.stream, counted))
        if gathering is None or (counted != "by_cause" and not event.person):
            return (event,)
        self._something.set()  # schedules the end of its window
        return gathering.take(event, _who(event, counted, network), time.monotonic())

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
        return f"{self._begun}{self._number:x}"


def _gatherings() -> dict[tuple[EventStream, Counted], Gathering]:
    """The windows of each class of events. Each class has its own table, so a flood of one class ends no window of
    another."""
    people = partial(Gathering, singles=PEOPLE_SINGLES, seconds=LONG_SECONDS, causes=MOST_ACTS)
    sensitive = partial(Gathering, singles=SENSITIVE_SINGLES, seconds=LONG_SECONDS, causes=MOST_ACTS)
    return {
        ("strangers", "by_cause"): Gathering(singles=1, seconds=SHORT_SECONDS, causes=MOST_CAUSES, lumps=True),
        ("people", "by_person"): people(),
        ("people", "by_place"): people(of_one=MOST_PLACES),
        ("people", "by_cause"): people(singles=1, lumps=True, of_one=MOST_OF_ONE),
        ("sensitive", "by_person"): sensitive(),
        ("sensitive", "by_app"): sensitive(of_one=MOST_APPS),
    }


def _who(event: AuditEvent, counted: Counted, network: str) -> tuple[str, ...]:
    """The parts of an event's cause. A person may have dozens of apps, so the cause of most acts is the person alone: a
    count for each app would bound too little."""
    if counted == "by_person":
        return (event.person,)
    if counted == "by_place":
        return (event.person, network, event.agent)
    return (event.person or network, event.client)


def _clean(text: str, most: int = 64) -> str:
    """The text, truncated, without characters that could control a terminal or end a line."""
    cut = text[:most]
    return cut if cut.isprintable() else "".join(char if char.isprintable() else "?" for char in cut)


def _fingerprint(key: SecretKey, typed: str) -> str:
    digest = hmac.digest(key.derive(_PURPOSE, 32), typed.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:12]).decode()
