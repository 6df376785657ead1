"""Webhook deliveries of all apps, for operators: lists, failing endpoints, and sending given-up ones again."""

from __future__ import annotations

from typing import Final, NamedTuple

from store import keys
from store.engine.scripts import Scripts
from store.operators.cursors import Cursors
from store.refused import Refused
from store.webhooks.deliveries import MOST, Delivery, readable

STATES: Final = ("pending", "failing", "waiting", "failed", "delivered")
"""`pending` is `failing`, after an attempt that failed, or else `waiting`; `failed` are given up."""
STEPS: Final = 2000
"""Deliveries that one page reads, whatever it finds."""
SHOWN_ENDPOINTS: Final = 20


class DeliveryPage(NamedTuple):
    """Rows, and the cursor of the next page, "" after the last one."""

    deliveries: tuple[Delivery, ...]
    cursor: str


class FailingEndpoint(NamedTuple):
    """An endpoint of an app whose last attempt failed: `events` or `logout`, and since when (epoch ms)."""

    client_id: str
    endpoint: str
    since: int


class FailingEndpoints(NamedTuple):
    """The endpoints that have failed for the longest time, and how many fail in all."""

    longest: tuple[FailingEndpoint, ...]
    total: int


class DeliveryPages:
    """Deliveries across apps. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, cursors: Cursors) -> None:
        self._scripts = scripts
        self._cursors = cursors

    async def page(self, state: str, app: str, limit: int, cursor: str, type: str = "") -> DeliveryPage:
        """Deliveries, newest first: in a state, of one app, of one type of event; empty for any. A page may have fewer
        than `limit`, even none. Raises Refused("invalid_request")."""
        if state and state not in STATES:
            raise Refused("invalid_request", f"state is {', '.join(STATES)}.")
        query = f"deliveries {state} {app} {type}"
        reply = await self._scripts.run(
            "browse_deliveries",
            {"list": keys.deliveries(app)["listed"] if app else keys.DELIVERIES_NEWEST},
            prefix=keys.DELIVERY_PREFIX,
            before=self._cursors.open(query, cursor),
            most=limit,
            steps=STEPS,
            type=type,
            state=state,
        )
        rows = [readable(delivery_id.decode(), flat) for delivery_id, flat in reply.rows("rows")]
        onward = reply.text("onward")
        return DeliveryPage(tuple(filter(None, rows)), self._cursors.seal(query, onward) if onward else "")

    async def failing(self, most: int = SHOWN_ENDPOINTS) -> FailingEndpoints:
        """The endpoints that fail, the longest first, at most `most`."""
        reply = await self._scripts.run("list_failing_endpoints", {"failing": keys.ENDPOINTS_FAILING}, most=most)
        found = []
        for name, since in reply.rows("rows"):
            client, _, endpoint = name.decode().partition(" ")
            found.append(FailingEndpoint(client, endpoint, int(since)))
        return FailingEndpoints(tuple(found), reply.number("count"))

    async def given_up(self, app: str) -> int:
        """How many deliveries of an app were given up."""
        return await self._given_up(app, "")

    async def replay_given_up(self, app: str) -> int:
        """Makes every given-up delivery of an app due now, and returns how many these are."""
        return await self._given_up(app, "1")

    async def _given_up(self, app: str, replay: str) -> int:
        reply = await self._scripts.run(
            "replay_failed_deliveries",
            {"listed": keys.deliveries(app)["listed"], "due": keys.DELIVERIES_DUE},
            prefix=keys.DELIVERY_PREFIX,
            bound=MOST + 10,
            replay=replay,
        )
        return reply.number("count")
