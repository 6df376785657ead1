"""What apps are told by webhook, until they have it, and for 30 days to be looked at and sent again.

All of it lies in one slot: there is little of it, an event for each app that a person leaves, and so one script finds
what is due, whichever process asks.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from store import keys
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.lifetimes import DELIVERY

log = logging.getLogger("latchkey.deliveries")

SHOWN = 200
"""Deliveries of an app that are kept; older ones go when they are done."""
MOST = 1000
"""Deliveries of an app that are kept, done or not: beyond it the oldest are given up, so that an app whose server is
gone takes some 500 KB, and the 20 of an owner some 10 MB."""
ERROR_LENGTH = 200
AT_ONCE = 100
LARGEST = 10**15
"""No number of a row is larger: as a time (epoch ms) it lies in the year 33658."""


def event_id_of(seed: bytes) -> str:
    """The id of an event: 16 bytes, of 22 letters, digits and underscores. No hyphens: on a command line, an id that
    begins with one is an option."""
    return base64.urlsafe_b64encode(seed).rstrip(b"=").decode().replace("-", "_")


def new_event_id() -> str:
    """One that nothing else has."""
    return event_id_of(secrets.token_bytes(16))


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """What an app is told: of this person (`sub`), at this time (epoch ms). `details` may hold `reason`."""

    id: str
    type: str
    client_id: str
    sub: str
    occurred_at: int
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to an app, under the event's id. Times are epoch ms. `attempts` were begun in all, `tries`
    since it was last sent off by hand; `state` is pending, delivered or failed; `next_attempt_at` is None also while an
    attempt is under way. `last_status` is the HTTP status of the newest attempt that has ended, None where there was
    no answer; `last_error` says what went wrong with it."""

    id: str
    client_id: str
    type: str
    sub: str
    occurred_at: int
    details: dict[str, str]
    created_at: int
    attempts: int
    tries: int
    state: str
    next_attempt_at: int | None
    last_attempt_at: int | None
    last_status: int | None
    last_error: str


class Deliveries:
    """Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def enqueue(self, event: WebhookEvent) -> bool:
        """Keeps an event, due at once; False for one that was kept before."""
        reply = await self._scripts.run(
            "enqueue_delivery",
            {**keys.delivery(event.id), "listed": keys.deliveries(event.client_id)},
            id=event.id,
            client=event.client_id,
            type=event.type,
            sub=event.sub,
            occurred_at=event.occurred_at,
            details=json.dumps(dict(event.details)),
            keep=DELIVERY,
            most=SHOWN,
            bound=MOST,
            prefix=keys.DELIVERY_PREFIX,
        )
        return reply.word == "ok"

    async def claim(self, most: int, lease_seconds: float) -> list[Delivery]:
        """Begins an attempt at each of at most so many that are due. They are nobody else's for as long as the lease,
        in which each is to be settled; where that does not happen they are due again. `attempts` of what is returned is
        the number of the attempt, which `settle` asks for. What cannot be read is given up."""
        reply = await self._scripts.run(
            "claim_deliveries",
            {"due": keys.DELIVERIES_DUE},
            prefix=keys.DELIVERY_PREFIX,
            most=most,
            lease=round(lease_seconds * 1000),
        )
        found = []
        for delivery_id, flat in reply.rows("rows"):
            one = _readable(delivery_id.decode(), flat)
            if one is None:
                await self._give_up(delivery_id.decode(), flat)
            else:
                found.append(one)
        return found

    async def _give_up(self, delivery_id: str, flat: list[bytes]) -> None:
        """Where the store does not take it now, the next claim tries it again."""
        attempt = int(dict(zip(flat[::2], flat[1::2], strict=True))[b"attempts"])
        with contextlib.suppress(StoreError):
            await self.settle(delivery_id, attempt, delivered=False, error="It could not be read.")

    async def settle(
        self,
        delivery_id: str,
        attempt: int,
        *,
        delivered: bool,
        status: int | None = None,
        error: str = "",
        retry_in: float | None = None,
    ) -> bool:
        """Ends an attempt. Where it was not `delivered` the next one is due in so many seconds, or it has failed for
        good (None). False for a delivery that is gone, and for an attempt whose lease was over and that was followed by
        another; but what was delivered counts as that."""
        outcome = "delivered" if delivered else "failed" if retry_in is None else "retry"
        reply = await self._scripts.run(
            "settle_delivery",
            keys.delivery(delivery_id),
            id=delivery_id,
            attempt=attempt,
            outcome=outcome,
            status="" if status is None else status,
            error=error[:ERROR_LENGTH],
            retry_in=round((retry_in or 0) * 1000),
        )
        return reply.word == "ok"

    async def put_back(self, delivery_id: str, attempt: int, seconds: float) -> bool:
        """Gives back what was claimed and not attempted: the attempt does not count, and is due again in so many
        seconds. False as with `settle`."""
        reply = await self._scripts.run(
            "put_back_delivery", keys.delivery(delivery_id), id=delivery_id, attempt=attempt, wait=round(seconds * 1000)
        )
        return reply.word == "ok"

    async def list(self, client_id: str, before: str | None = None, most: int = 50) -> list[Delivery]:
        """Deliveries of an app that can be read, the newest first; the next page is of those `before` the last id."""
        found: list[Delivery] = []
        while True:
            asked = most - len(found)
            reply = await self._scripts.run(
                "list_deliveries",
                {"listed": keys.deliveries(client_id)},
                prefix=keys.DELIVERY_PREFIX,
                before=before or "",
                most=asked,
            )
            rows = reply.rows("rows")
            found += [one for delivery_id, flat in rows if (one := _readable(delivery_id.decode(), flat))]
            # A page that is short of what was passed over would look like the last one.
            if len(rows) < asked or len(found) == most:
                return found
            before = rows[-1][0].decode()

    async def read(self, client_id: str, delivery_id: str) -> Delivery | None:
        """A delivery of this app; None for any other, and for one that cannot be read."""
        reply = await self._scripts.run("read_delivery", keys.delivery(delivery_id), client=client_id)
        return None if reply.word == "not_found" else _readable(delivery_id, reply.rows("row"))

    async def replay(self, client_id: str, delivery_id: str) -> bool:
        """Has a delivery of this app tried again now, whatever became of it; its tries begin anew. False where there is
        no such delivery, and while an attempt is under way."""
        reply = await self._scripts.run("replay_delivery", keys.delivery(delivery_id), id=delivery_id, client=client_id)
        return reply.word == "ok"

    async def next_due(self) -> int | None:
        """ms until something is due, 0 where it is; None where nothing waits. An attempt under way counts as due when
        its lease ends."""
        reply = await self._scripts.run("next_delivery", {"due": keys.DELIVERIES_DUE})
        return None if reply.word == "none" else reply.number("wait")

    async def forget(self, client_id: str) -> None:
        """Drops all of an app that is being deleted, in bounded steps."""
        word = "more"
        while word == "more":
            reply = await self._scripts.run(
                "forget_deliveries",
                {"due": keys.DELIVERIES_DUE, "listed": keys.deliveries(client_id)},
                prefix=keys.DELIVERY_PREFIX,
                steps=AT_ONCE,
            )
            word = reply.word


def _readable(delivery_id: str, flat: list[bytes]) -> Delivery | None:
    try:
        return _delivery(delivery_id, flat)
    except (LookupError, ValueError, RecursionError):
        log.error("the delivery %s cannot be read", delivery_id)
        return None


def _delivery(delivery_id: str, flat: list[bytes]) -> Delivery:
    row = {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}
    details: dict[str, str] = json.loads(row["details"])
    if not isinstance(details, dict):
        raise ValueError("details")
    return Delivery(
        delivery_id,
        row["client"],
        row["type"],
        row["sub"],
        _number(row["occurred_at"]),
        details,
        _number(row["created_at"]),
        _number(row["attempts"]),
        _number(row["tries"]),
        row["state"],
        _number_or_none(row, "next_attempt_at"),
        _number_or_none(row, "last_attempt_at"),
        _number_or_none(row, "last_status"),
        row.get("last_error", ""),
    )


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= LARGEST:
        raise ValueError("a number")
    return number


def _number_or_none(row: dict[str, str], name: str) -> int | None:
    return _number(row[name]) if row.get(name) else None
