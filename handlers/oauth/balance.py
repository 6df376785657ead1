"""GET /api/v1/credits/balance and GET /api/v1/apps. SPEC 2.4."""

from __future__ import annotations

import asyncio

from handlers.core.api import ApiHandler
from handlers.core.format import iso
from store.credits.credits import CURRENCY, SCALE
from store.oauth.resources import plain_names


class BalanceHandler(ApiHandler):
    """The person's credits."""

    async def get(self) -> None:
        """Answers with the balance, in micro-dollars."""
        balance, window = await self.store.credits.balance(await self.caller(), self.needed)
        self.write_window(window)
        limit = balance.app_limit
        self.write_json(
            {
                "spendable": balance.spendable,
                "held": balance.held,
                "paid": balance.paid,
                "currency": CURRENCY,
                "scale": SCALE,
                "appLimit": limit
                and {"limit": limit.limit, "period": "month", "used": limit.used, "resetsAt": iso(limit.resets_at)},
            }
        )


class ConnectedAppsHandler(ApiHandler):
    """The other apps that the person has connected."""

    async def get(self) -> None:
        """Answers with the apps that are still registered, newest first."""
        rows, window = await self.store.grants.connected(await self.caller(), self.needed)
        self.write_window(window)
        # The store looks up all apps that are not cached at once, at most MOST_CONNECTED.
        found = await asyncio.gather(*(self.store.apps.active(row.client) for row in rows))
        apps = []
        for row, app in zip(rows, found, strict=True):
            if app is not None:
                apps.append(
                    {
                        "client_id": app.wire_id,
                        "name": app.name,
                        "homepage": app.homepage,
                        "scopes": list(plain_names(row.scopes)),
                        "connectedAt": iso(row.connected_at),
                        "lastUsedAt": row.last_used_at and iso(row.last_used_at),
                    }
                )
        self.write_json({"apps": apps})
