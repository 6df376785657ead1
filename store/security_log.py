"""The security log: what happened to accounts, apps and the store, for the operator.

An event is counted and written to the process's log at once, and queued. A background task sends the queue to a stream
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
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, NamedTuple

import orjson

from store import keys
from store.beside import beside
from store.errors import StoreError
from store.keyring import Keys, SecretKey
from store.lifetimes import DAY, FACTOR
from store.scripts import Reply, Scripts, Value
from store.security_events import EVENTS, GATHERED, OUTCOMES, TOGETHER, WORDS, Declared

log = logging.getLogger("latchkey.security")

FLUSH_SECONDS: Final = 0.5
"""From the first event of a batch to its sending."""
AWAY_SECONDS: Final = 5.0
"""Until a store that did not take a batch is asked again."""
BATCH: Final = 200
"""Events that are sent at once."""
MOST_QUEUED: Final = 5_000
"""Events that wait in a process; later ones are lost, and counted."""
MOST_KEPT: Final = 20_000
"""Events in the store."""
KEPT_MS: Final = 90 * DAY
"""ms that an event stays in the store."""
WINDOW_SECONDS: Final = 10.0
"""Events of one kind and cause within this time are one event with a count."""
MOST_WINDOWS: Final = 1_000
"""Causes of refusals that are told apart at once."""
MOST_ACTS: Final = 5_000
"""The same for acts of people; further ones are events of their own, since who acts must not be lost."""
_WINDOWS: Final = {"guesses": FACTOR.name}
"""Limits that are no windows, by the kind of their key."""
_PURPOSE: Final = b"latchkey security log"


class Origin(NamedTuple):
    """Where the running request comes from: address, agent and request id. `actor` where that is not for the event to
    say: the operator's commands."""

    address: str = ""
    agent: str = ""
    request_id: str = ""
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `at_ms` is in epoch milliseconds; `id` tells it from all others. `typed` is a keyed fingerprint of an
    address that belongs to nobody; `count` events of the same cause are one."""

    event: str
    result: str
    severity: str
    actor: str
    id: str
    at_ms: int = 0
    person: str = ""
    client: str = ""
    address: str = ""
    agent: str = ""
    typed: str = ""
    detail: str = ""
    request_id: str = ""
    count: int = 1

    def packed(self) -> str:
        """The event as the store keeps it, at most some 800 bytes: JSON without the time and empty fields."""
        fields = {name: value for name, value in asdict(self).items() if value not in ("", 0)}
        return orjson.dumps(fields).decode()


@dataclass(slots=True)
class _Waiting:
    event: Event
    since: float


class SecurityLog:
    """Takes events, without a call to the store; `flush` sends them. What a process could not send when it is killed is
    lost to the store, and stands in its log alone."""

    def __init__(self, scripts: Scripts, secret_keys: Keys) -> None:
        self._scripts = scripts
        self._keys = secret_keys
        self._queue: deque[_Waiting] = deque()
        self._lost = 0
        self._windows: dict[tuple[str, ...], _Waiting] = {}
        self._acts: dict[tuple[str, ...], _Waiting] = {}
        self._begun = secrets.token_hex(4)
        self._number = 0
        self._something = asyncio.Event()
        self.origin: Callable[[], Origin] = Origin
        """Asked where the running request comes from."""
        self.tell: Callable[[Event], None] = lambda event: None
        """Hears of each event at once, for the process's log."""
        self.watch: Callable[[str, str, int], None] = lambda event, result, count: None
        """Hears of each event, for the metrics: name, result, count."""

    def heard(self, script: str, reply: Reply, known: Mapping[str, str], args: Mapping[str, Value]) -> None:
        """Notes what the answer of a script says: what it recorded in a person's activity, or an outcome that is in no
        activity."""
        for trail, event, client, address, agent in reply.noted:
            name = event.decode("utf-8", "replace")
            declared = EVENTS.get(name)
            if declared is None or declared.logged:
                self.note(
                    name,
                    person=keys.owner(trail.decode()),
                    client=client.decode("utf-8", "replace"),
                    address=address.decode("utf-8", "replace"),
                    agent=agent.decode("utf-8", "replace"),
                )
        if reply.word in WORDS:
            self._refused(WORDS[reply.word], script, known, args)
        elif outcome := OUTCOMES.get((script, reply.word)):
            name, detail = outcome
            if name == "link_issued":
                spelt = keys.read(known["link"])
                detail = spelt.name if spelt else ""
            self.note(name, person=keys.owner(known["user"]), detail=detail)

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
        """Notes an event. `typed` is the e-mail address that somebody typed, of which a fingerprint is kept."""
        origin = self.origin()
        declared = EVENTS.get(name) or Declared(name, name)
        # Made for somebody who is known, too: how long it takes must not tell.
        fingerprint = _fingerprint(self._keys.ring.front, typed) if typed else ""
        event = Event(
            declared.name,
            declared.result,
            declared.severity,
            origin.actor or declared.actor,
            self._next_id(),
            person=person,
            client=_clean(client),
            address=_clean(address or origin.address),
            agent=_clean(agent or origin.agent, 100),
            typed="" if person else fingerprint,
            detail=_clean(detail, 200),
            request_id=_clean(origin.request_id),
        )
        if (name in TOGETHER or (person and name in GATHERED)) and not self._is_first(event):
            return
        self._take(event, time.monotonic())

    def fingerprints(self, typed: str) -> list[str]:
        """What stands for an address that somebody typed, under each secret key, the one in use first. Nobody without
        the keys can test a guess against it: people type passwords into that field."""
        return [_fingerprint(key, typed) for key in self._keys.ring.keys]

    async def flush(self) -> None:
        """Sends what waits. Raises StoreUnavailable, StoreError; then it waits on, in its order."""
        self._end_windows(time.monotonic())
        while self._queue:
            if self._lost:
                lost, self._lost = self._lost, 0
                self._queue.append(_Waiting(self._lost_event(lost), time.monotonic()))
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            now = time.monotonic()
            sent = [(max(0, round((now - one.since) * 1000)), one.event.packed()) for one in batch]
            try:
                await self._scripts.run(
                    "append_events",
                    keys.SECURITY_EVENTS,
                    most=MOST_KEPT,
                    keep=KEPT_MS,
                    batch=orjson.dumps(sent).decode(),
                )
            except BaseException:
                # Those that were stored all the same have an id, by which a reader passes over the second one.
                self._queue.extendleft(reversed(batch))
                raise

    def settle(self) -> None:
        """Takes what was counted so far as it is: at the end, nothing more comes."""
        self._end_windows(float("inf"))

    @property
    def waiting(self) -> int:
        """Events that the store has not received yet."""
        return len(self._queue)

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Sends in the background of the block, and once more behind it."""
        try:
            async with beside(self._keep_flushing()):
                yield
        finally:
            self.settle()
            await self._flush_quietly()

    async def _keep_flushing(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            if not await self._flush_quietly():
                await asyncio.sleep(AWAY_SECONDS)
            if not self._queue and not self._windows and not self._acts:
                self._something.clear()

    async def _flush_quietly(self) -> bool:
        try:
            await self.flush()
        except StoreError as error:
            log.warning("%d security events wait for the store: %s", self.waiting, error)
            return False
        return True

    def _take(self, event: Event, since: float) -> None:
        self.watch(event.event, event.result, event.count)
        self.tell(event)
        if len(self._queue) >= MOST_QUEUED:
            self._lost += event.count
            return
        self._queue.append(_Waiting(event, since))
        self._something.set()

    def _is_first(self, event: Event) -> bool:
        """Whether an event is the first of its cause for a while; any other is counted."""
        cause: tuple[str, ...] = (event.event, event.detail, event.person or event.address, event.client)
        now = time.monotonic()
        windows = self._windows if event.event in TOGETHER else self._acts
        if windows is self._acts:
            cause = (event.event, event.detail, event.person)  # a person has apps by the dozen
            if cause not in windows and len(windows) >= MOST_ACTS:
                return True
        elif cause not in windows and len(windows) >= MOST_WINDOWS:
            cause = (event.event, event.detail)  # what causes it is lost, how often it happens is not
        found = windows.get(cause)
        if found is None:
            windows[cause] = _Waiting(replace(event, count=0), now)
            self._something.set()
            return True
        client = found.event.client if found.event.client == event.client else ""
        found.event = replace(found.event, count=found.event.count + 1, client=client)
        return False

    def _end_windows(self, now: float) -> None:
        """Takes what was counted in the windows that are over."""
        for windows in (self._windows, self._acts):
            for cause, found in tuple(windows.items()):
                if now - found.since < WINDOW_SECONDS:
                    continue
                del windows[cause]
                if found.event.count:
                    self._take(replace(found.event, id=self._next_id(), request_id=""), time.monotonic())

    def _refused(self, event: str, script: str, known: Mapping[str, str], args: Mapping[str, Value]) -> None:
        key, detail, client = known.get("user", ""), script, str(args.get("client", ""))
        if event == "limited":
            windows = (known[name] for name in ("presented", "window", "narrow", "guesses") if known.get(name))
            key = next(windows, key)
            if spelt := keys.read(key):
                detail = spelt.name or _WINDOWS.get(spelt.kind, spelt.kind)
                client = client or spelt.client
        if not client and "grant" in known and (grant := keys.read(known["grant"])):
            client = grant.client
        self.note(event, person=keys.owner(key), client=client, detail=detail)

    def _lost_event(self, count: int) -> Event:
        declared = EVENTS["events_lost"]
        event = Event(declared.name, declared.result, declared.severity, declared.actor, self._next_id(), count=count)
        self.watch(event.event, event.result, count)
        self.tell(event)
        return event

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._begun}{self._number:x}"


def _clean(text: str, most: int = 64) -> str:
    """The text, cut, with nothing in it that could steer a terminal or end a line."""
    return "".join(char if char.isprintable() else "?" for char in text[:most])


def _fingerprint(key: SecretKey, typed: str) -> str:
    digest = hmac.digest(key.derive(_PURPOSE, 32), typed.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:12]).decode()
