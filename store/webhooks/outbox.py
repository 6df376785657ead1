"""The relay of webhook events: from the outbox of each shard to the deliveries.

The script that makes a change also writes the event (`lua/include/announce.lua`), whether or not the app has a webhook,
because a person's slot does not know the registration. A relay takes the event, asks whether the app wants it, moves it
to the deliveries in another slot, and drops it from the outbox. After an interruption the event is moved again under
the same id, and kept once. Relays of several processes share an outbox with a consumer group; the next sweep takes over
events that a relay took and did not finish.

`data.deleted` has no script of its own, because expiry deletes the data. The pair is in the due list of its shard from
the revocation on, and a sweep announces the end when its time has come and the keys are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.crypto.pairwise import KNOWS
from store.crypto.seal import new_id
from store.engine.background import background, working
from store.engine.scripts import Scripts
from store.errors import StoreError, StoreUnavailable, wrapped
from store.moments import epoch_ms
from store.webhooks.deliveries import SESSION_ENDED, Deliveries, WebhookEvent, event_id_of
from store.webhooks.relay_wakeup import RelayWakeup

log = logging.getLogger("latchkey.outbox")

SWEEP_SECONDS = 30.0
"""Between two sweeps, whichever process does them."""
ASK_SECONDS = 10.0
"""The pause before a process checks again whether a sweep is due."""
IDLE = 10_000
"""ms after which a relay that has not finished an event counts as dead."""
EVENTS_AT_ONCE = 100
ROUNDS = 100
"""The most reads from one outbox in a row. It holds some 1,000 events; events that cannot be moved must not block."""
PAIRS_AT_ONCE = 100
SHARDS_AT_ONCE = 64
"""Other work of the process waits for at most this many shards."""

Wanted = Callable[[str, str], Awaitable[bool]]
"""Whether the app with this client id receives events of this type."""
Named = Callable[[WebhookEvent, str], Awaitable[WebhookEvent]]
"""An event about a user id, as its app may know the person; the text is the app's field in the person's row
(`Subjects.in_event`)."""


class Outbox:
    """Moves events from outboxes to deliveries. Every method raises StoreUnavailable; a later sweep moves the rest. It
    also moves events of an app for which `wanted` raises another error, or of a shard with another store error."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        deliveries: Deliveries,
        named: Named,
        wakeup: RelayWakeup,
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._deliveries = deliveries
        self._named = named
        self._wakeup = wakeup
        self._consumer = new_id()
        self._moving = asyncio.Lock()
        self.idle = IDLE

    async def relay(self, wanted: Wanted) -> int:
        """Sweeps, unless a process has begun a sweep in the last 30 s. Returns how many events were moved."""
        with wrapped():
            first = await self._client.set(keys.RELAYED, "1", nx=True, px=int(SWEEP_SECONDS * 1000))
        return await self.sweep(wanted) if first else 0

    async def sweep(self, wanted: Wanted, every: Sequence[str] | None = None) -> int:
        """Visits every shard, or these: announces hosted data that has ended, and moves the events in the outbox.
        Returns how many events were moved."""
        every = keys.SHARDS if every is None else every
        moved = 0
        for start in range(0, len(every), SHARDS_AT_ONCE):
            shards = every[start : start + SHARDS_AT_ONCE]
            # Most shards have no events: one read is enough for them.
            answers = await self._batch([("EXISTS", *keys.outbox_keys(shard).values()) for shard in shards])
            some = [shard for shard, found in zip(shards, answers, strict=True) if _answer(found)]
            if not some:
                continue
            with wrapped():
                now = epoch_ms(*await self._client.time())
            waiting = await self._batch([("EXISTS", keys.outbox_keys(shard)["outbox"]) for shard in some])
            firsts = await self._batch(
                [("ZRANGE", keys.outbox_keys(shard)["due"], 0, 0, "WITHSCORES") for shard in some]
            )
            for shard, events, first in zip(some, waiting, firsts, strict=True):
                ended = False
                with _by_itself(shard):
                    ended = _ends(_answer(first), now)
                    if ended:
                        await self._tell_of_ended(shard)
                with _by_itself(shard):
                    if _answer(events) or ended:
                        moved += await self._relay_shard(shard, wanted)
        return moved

    async def relay_shards(self, shards: Collection[str], wanted: Wanted) -> int:
        """Moves the events in the outboxes of these shards. Returns how many events were moved."""
        moved = 0
        for shard in shards:
            with _by_itself(shard):
                moved += await self._relay_shard(shard, wanted)
        return moved

    @contextlib.asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Pauses moves during the block and drops hints afterwards: for a store that is emptied."""
        async with self._moving:
            yield
            self._wakeup.clear()

    @contextlib.asynccontextmanager
    async def relaying(self, wanted: Wanted, moved: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        """Relays in the background while the block runs: events of this process at once, others with each sweep. Calls
        `moved` whenever there is something new to deliver."""
        async with background(self._keep_relaying(wanted, moved)):
            yield

    async def _keep_relaying(self, wanted: Wanted, moved: Callable[[], None]) -> None:
        asked_at = float("-inf")
        while True:
            try:
                count = 0
                if time.monotonic() - asked_at >= ASK_SECONDS:
                    asked_at = time.monotonic()
                    count = await self.relay(wanted)
                if shards := await self._wakeup.take(ASK_SECONDS):
                    count += await self.relay_shards(shards, wanted)
                if count:
                    moved()
            except StoreError as error:
                log.warning("webhook relay paused: %s", error)
                await asyncio.sleep(1)
            except Exception:  # an error with one event must not stop the others
                log.exception("webhook relay paused")
                await asyncio.sleep(1)

    async def _tell_of_ended(self, shard: str) -> None:
        looked = PAIRS_AT_ONCE
        while looked == PAIRS_AT_ONCE:
            reply = await self._scripts.run(
                "announce_ended", keys.outbox_keys(shard), people=keys.member_prefix(shard), steps=PAIRS_AT_ONCE
            )
            looked = reply.number("looked")

    async def _relay_shard(self, shard: str, wanted: Wanted) -> int:
        # One at a time: a caller that finds nothing to take knows that everything was moved.
        async with self._moving:
            taken = await self._take(shard)
            if not taken:
                return 0
            with working("relay webhooks"):
                return await self._move(shard, taken, wanted)

    async def _take(self, shard: str) -> list[Any]:
        reply = await self._scripts.run(
            "take_events", keys.outbox_keys(shard), consumer=self._consumer, most=EVENTS_AT_ONCE, idle=self.idle
        )
        return reply.rows("events")

    async def _move(self, shard: str, taken: list[Any], wanted: Wanted) -> int:
        moved, stuck = 0, set[str]()
        for turn in range(ROUNDS):
            if turn and not (taken := await self._take(shard)):
                break
            done = []
            for entry, fields in taken:
                try:
                    events, entered = _events(shard, entry, fields)
                except (LookupError, ValueError):
                    log.error("the entry %s in the outbox of %s is unreadable and was dropped", entry.decode(), shard)
                    done.append(entry.decode())
                    continue
                for event in events:
                    moved += await self._move_one(event, entered, wanted, stuck)
                if not any(event.client_id in stuck for event in events):
                    done.append(entry.decode())
            await self._scripts.run("drop_events", keys.outbox_keys(shard), entries=" ".join(done))
        return moved

    async def _move_one(self, event: WebhookEvent, entered: str, wanted: Wanted, stuck: set[str]) -> bool:
        """Keeps an event, if its app wants it. Returns whether the event is new. Adds an app with an error to
        `stuck`."""
        if event.client_id in stuck:
            return False
        try:
            if await wanted(event.client_id, event.type):
                return await self._deliveries.enqueue(await self._named(event, entered))
        except StoreUnavailable:
            raise
        except Exception:  # an error with one app must not stop the others; a later sweep retries
            log.exception("events of the app %s are delayed", event.client_id)
            stuck.add(event.client_id)
        return False

    async def _batch(self, commands: list[tuple[str | int, ...]]) -> list[Any]:
        """Runs commands together; returns raw answers, for `_answer`."""
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for command in commands:
                    batch.execute_command(*command)
                found: list[Any] = await batch.execute(raise_on_error=False)
        return found


@contextlib.contextmanager
def _by_itself(shard: str) -> Iterator[None]:
    """Logs an error with one shard, so that it stops no other. Raises StoreUnavailable."""
    try:
        yield
    except StoreUnavailable:
        raise
    except StoreError as error:
        log.error("events in %s are delayed: %s", shard, error)


def _answer(found: Any) -> Any:
    """The answer to one command of a batch. Raises StoreUnavailable, StoreError."""
    if isinstance(found, Exception):
        with wrapped():
            raise found
    return found


def _events(shard: str, entry: bytes, fields: list[bytes]) -> tuple[list[WebhookEvent], str]:
    """The events of an entry, about the person's user id, and the app's field in the person's row. An event's id is the
    same on every move."""
    row = {name.decode(): value.decode() for name, value in zip(fields[::2], fields[1::2], strict=True)}
    sub, reason, at = keys.user_of(shard, row["member"].encode()), row["reason"], int(row["at"])
    if row["type"] == SESSION_ENDED:
        # A session ends once, even if a script that was cut off in a moving slot announces the end again. An app that
        # was crowded out of the session may sign in there again.
        sid, once = row["sid"], entry.decode() if reason else ""
        apps = {client: json.dumps([SESSION_ENDED, client, sub, sid, once]) for client in row["clients"].split(" ")}
        ids = {client: _id_of(identity) for client, identity in apps.items()}
        events = [WebhookEvent(one, SESSION_ENDED, client, sub, at, {"sid": sid}) for client, one in ids.items()]
        return events, KNOWS  # an app that got an ID token knows the person
    # After a failover lost writes, the end of a grace window may be announced twice; the same time gives the same id.
    once = "" if reason == "grace_over" else entry.decode()
    identity = json.dumps([row["type"], row["client"], sub, reason, at, once])
    event = WebhookEvent(_id_of(identity), row["type"], row["client"], sub, at, {"reason": reason} if reason else {})
    return [event], row.get("entered", KNOWS)  # an earlier release named the person to every app


def _id_of(identity: str) -> str:
    """The id of an event whose content is this."""
    return event_id_of(hashlib.sha256(identity.encode()).digest()[:16])


def _ends(first: list[Any], now: int) -> bool:
    """Whether the score of a sorted set's first entry, in any client's form, is in the past."""
    return bool(first) and float(first[0][1] if isinstance(first[0], (list, tuple)) else first[1]) <= now
