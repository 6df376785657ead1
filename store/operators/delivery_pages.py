"""Pages of webhook deliveries across apps, for operators."""

from __future__ import annotations

from typing import Final, NamedTuple

from store.apps.apps import Apps
from store.operators.cursors import Cursors
from store.refused import Refused
from store.webhooks.deliveries import Deliveries, Delivery

STATES: Final = ("pending", "delivered", "failed")
MOST_APPS: Final = 200
"""Apps whose deliveries one page reads, whatever it finds."""


class DeliveryPage(NamedTuple):
    """Rows, and the cursor of the next page, "" after the last one."""

    deliveries: tuple[Delivery, ...]
    cursor: str


class DeliveryPages:
    """Lists deliveries: app by app, newest first within an app."""

    def __init__(self, apps: Apps, deliveries: Deliveries, cursors: Cursors) -> None:
        self._apps = apps
        self._deliveries = deliveries
        self._cursors = cursors

    async def page(self, state: str, app: str, limit: int, cursor: str) -> DeliveryPage:
        """Deliveries in a state, of one app or of all; both empty for any. A page may have fewer than `limit`. Raises
        Refused("invalid_request"), StoreUnavailable."""
        if state and state not in STATES:
            raise Refused("invalid_request", f"state is {', '.join(STATES)}.")
        query = f"deliveries {state} {app}"
        client, _, before = self._cursors.open(query, cursor).partition(" ")
        clients = [app] if app else [one.client_id async for one in self._apps.beyond("") if _is_told(one)]
        found: list[Delivery] = []
        for number, one in enumerate(one for one in clients if one >= client):
            if number == MOST_APPS:
                return DeliveryPage(tuple(found), self._cursors.seal(query, one))
            room = limit - len(found)
            last = before if one == client else ""
            found += await self._deliveries.list(one, last or None, room, state=state)
            if len(found) == limit:
                return DeliveryPage(tuple(found), self._cursors.seal(query, f"{one} {found[-1].id}"))
        return DeliveryPage(tuple(found), "")


def _is_told(app: object) -> bool:
    return bool(getattr(app, "webhook_url", "") or getattr(app, "backchannel_logout_uri", ""))
