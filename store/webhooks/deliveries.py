"""Webhook deliveries: kept until apps have them, and for 30 days so that owners can view and resend them.

All deliveries are in one slot. They are few, one event for each app that a person leaves, and one script finds the due
ones for any process.
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
from store.engine.memory import Headroom
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.lifetimes import ATTEMPT, DELIVERY
from store.webhooks.attempts import KEPT, NO_EXCHANGE, Attempts, WebhookExchange, attempts_of
from store.webhooks.attempts import SHOWN as SHOWN_ATTEMPTS

log = logging.getLogger("latchkey.deliveries")

SHOWN = 200
"""The finished deliveries kept for an app: of more in its list, older ones go when they are done."""
MOST = 1000
"""The most deliveries kept for an app, done or not. Beyond it the oldest are given up, so an app whose server is gone
takes some 500 KB, and the 20 apps of an owner some 10 MB."""
MOST_OVERALL = 100_000
"""The newest deliveries of all apps that operators can list: some 10 MB of ids."""
ERROR_LENGTH = 200
AT_ONCE = 100
SESSION_ENDED = "session.ended"
"""The event that is posted as a logout token (OpenID Connect Back-Channel Logout 1.0), with `sid` among its details."""
LARGEST = 10**15
"""The largest number in a row: as a time (epoch ms) it is in the year 33658."""


def event_id_of(seed: bytes) -> str:
    """The id of an event: 16 bytes as 22 letters, digits and underscores. It has no hyphens, because a command line
    reads an id with a leading hyphen as an option."""
    return base64.urlsafe_b64encode(seed).rstrip(b"=").decode().replace("-", "_")


def new_event_id() -> str:
    """A new unique id of an event."""
    return event_id_of(secrets.token_bytes(16))


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event for an app: about this person (`sub`), at this time (epoch ms). `details` may have `reason`."""

    id: str
    type: str
    client_id: str
    sub: str
    occurred_at: int
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of an event to an app, with the event's id. Times are epoch ms. `attempts` counts all attempts,
    `tries` those since the last manual resend. `state` is pending, delivered or failed; `next_attempt_at` is also None
    while an attempt is in progress. `last_status` is the HTTP status of the last finished attempt, None without an
    answer; `last_error` says what went wrong."""

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
    """Keeps, claims and settles deliveries. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, headroom: Headroom | None = None) -> None:
        self._scripts = scripts
        self._headroom = headroom or Headroom()

    async def enqueue(self, event: WebhookEvent) -> bool:
        """Keeps an event, due at once; False if it was kept before."""
        reply = await self._scripts.run(
            "enqueue_delivery",
            {
                **keys.delivery(event.id),
                "listed": keys.deliveries(event.client_id)["listed"],
                "newest": keys.DELIVERIES_NEWEST,
            },
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
            overall=MOST_OVERALL,
        )
        return reply.word == "ok"

    async def claim(self, most: int, lease_seconds: float) -> list[Delivery]:
        """Claims at most `most` due deliveries and begins an attempt at each. Nobody else gets them during the lease;
        settle each within it, or it is due again. The returned `attempts` is the attempt's number, an argument of
        `settle`. Unreadable deliveries are given up."""
        reply = await self._scripts.run(
            "claim_deliveries",
            {"due": keys.DELIVERIES_DUE},
            prefix=keys.DELIVERY_PREFIX,
            most=most,
            lease=round(lease_seconds * 1000),
        )
        found = []
        for delivery_id, flat in reply.rows("rows"):
            one = readable(delivery_id.decode(), flat)
            if one is None:
                await self._give_up(delivery_id.decode(), flat)
            else:
                found.append(one)
        return found

    async def _give_up(self, delivery_id: str, flat: list[bytes]) -> None:
        """Settles an unreadable delivery as failed. If the store does not take that now, the next claim retries."""
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
        exchange: WebhookExchange = NO_EXCHANGE,
    ) -> bool:
        """Ends an attempt, and records it with what was exchanged unless the store is short of memory. If not
        `delivered`, the next attempt is due in `retry_in` seconds, or with None the delivery has failed for good. False
        for a delivery that is gone, and for an attempt whose lease ended before another attempt; but a late success
        still counts."""
        args = exchange.args()
        outcome = "delivered" if delivered else "failed" if retry_in is None else "retry"
        reply = await self._scripts.run(
            "settle_delivery",
            {**keys.delivery(delivery_id), "failing": keys.ENDPOINTS_FAILING},
            id=delivery_id,
            attempt=attempt,
            outcome=outcome,
            status="" if status is None else status,
            error=error[:ERROR_LENGTH],
            retry_in=round((retry_in or 0) * 1000),
            apps=keys.deliveries("")["listed"],
            most=0 if self._headroom.low else KEPT,
            keep=ATTEMPT,
            **args,
        )
        self._headroom.grew(sum(len(value) for value in args.values() if not isinstance(value, int)))
        return reply.word == "ok"

    async def put_back(self, delivery_id: str, attempt: int, seconds: float) -> bool:
        """Gives back a claimed delivery without an attempt: it does not count, and is due again in `seconds`. False as
        with `settle`."""
        reply = await self._scripts.run(
            "put_back_delivery", keys.delivery(delivery_id), id=delivery_id, attempt=attempt, wait=round(seconds * 1000)
        )
        return reply.word == "ok"

    async def list(
        self, client_id: str, before: str | None = None, most: int = 50, *, type: str = "", state: str = ""
    ) -> list[Delivery]:
        """Readable deliveries of an app, newest first; for the next page, pass the last id as `before`. With `type` or
        `state`, only those of this type of event, or in this state."""
        found: list[Delivery] = []
        while True:
            room = most - len(found)
            reply = await self._scripts.run(
                "list_deliveries",
                {"listed": keys.deliveries(client_id)["listed"]},
                prefix=keys.DELIVERY_PREFIX,
                before=before or "",
                most=room,
                type=type,
                state=state,
            )
            rows = reply.rows("rows")
            found += [one for delivery_id, flat in rows if (one := readable(delivery_id.decode(), flat))]
            # A page shortened by skipped rows would look like the last page.
            if len(rows) < room or len(found) == most:
                return found
            before = rows[-1][0].decode()

    async def read(self, client_id: str, delivery_id: str) -> Delivery | None:
        """A delivery of this app; None for any other, and for an unreadable one."""
        found = await self._read(client_id, delivery_id, 0)
        return found[0] if found else None

    async def read_attempts(self, client_id: str, delivery_id: str) -> tuple[Delivery, Attempts] | None:
        """A delivery as `read` has it, with the last recorded attempts at it, oldest first."""
        return await self._read(client_id, delivery_id, SHOWN_ATTEMPTS)

    async def _read(self, client_id: str, delivery_id: str, most: int) -> tuple[Delivery, Attempts] | None:
        reply = await self._scripts.run(
            "read_delivery",
            {
                "delivery": keys.delivery(delivery_id)["delivery"],
                "attempts": keys.deliveries(client_id)["attempts"],
            },
            id=delivery_id,
            client=client_id,
            most=most,
            kept=KEPT,
            keep=ATTEMPT,
        )
        if reply.word == "not_found":
            return None
        found = readable(delivery_id, reply.rows("row"))
        return (found, attempts_of(reply.rows("attempts"))) if found else None

    async def replay(self, client_id: str, delivery_id: str) -> bool:
        """Makes a delivery of this app due now, whatever its state, and resets its tries. False if there is no such
        delivery, and while an attempt is in progress."""
        reply = await self._scripts.run("replay_delivery", keys.delivery(delivery_id), id=delivery_id, client=client_id)
        return reply.word == "ok"

    async def next_due(self) -> int | None:
        """ms until the next delivery is due, 0 if one is; None if none waits. An attempt in progress counts as due when
        its lease ends."""
        reply = await self._scripts.run("next_delivery", {"due": keys.DELIVERIES_DUE})
        return None if reply.word == "none" else reply.number("wait")

    async def forget(self, client_id: str) -> None:
        """Drops all deliveries of an app that is being deleted, in bounded steps."""
        word = "more"
        while word == "more":
            reply = await self._scripts.run(
                "forget_deliveries",
                {
                    "due": keys.DELIVERIES_DUE,
                    **keys.deliveries(client_id),
                    "newest": keys.DELIVERIES_NEWEST,
                    "failing": keys.ENDPOINTS_FAILING,
                },
                prefix=keys.DELIVERY_PREFIX,
                steps=AT_ONCE,
                client=client_id,
            )
            word = reply.word


def readable(delivery_id: str, flat: list[bytes]) -> Delivery | None:
    """The delivery in a row; None, and an error in the log, for a row that cannot be read."""
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
