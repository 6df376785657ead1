"""/api/admin/v1/webhooks: deliveries of all apps, failing endpoints, and sending again."""

from __future__ import annotations

from handlers.admin.base import AdminHandler, Record
from store.operators.records import attempt_record, delivery_record, endpoint_record
from store.refused import Refused


class AdminDeliveriesHandler(AdminHandler):
    """Webhook deliveries of all apps."""

    async def get(self) -> None:
        """A page of deliveries, newest first: in a state, of an app, of a type of event, or any."""
        params = self.query("state", "app", "type", "limit", "cursor")
        limit, cursor = self.page(params)
        state, app, type = (params.get(name) or "" for name in ("state", "app", "type"))
        found = await self.store.delivery_pages.page(state, app, limit, cursor, type)
        self.write_page([delivery_record(one) for one in found.deliveries], found.cursor)


class AdminDeliveryHandler(AdminHandler):
    """One delivery."""

    async def get(self, delivery: str) -> None:
        """The delivery of `client_id`, and the last attempts at it with what was sent and answered."""
        client = self.query("client_id").require("client_id")
        found = await self.store.deliveries.read_attempts(client, delivery)
        if found is None:
            raise Refused("not_found", "There is no such delivery of this app. They are kept for up to 30 days.")
        self.write_json({**delivery_record(found[0]), "exchanges": [attempt_record(one) for one in found[1]]})


class AdminFailingHandler(AdminHandler):
    """Endpoints that fail."""

    async def get(self) -> None:
        """The endpoints whose last attempt failed, the longest first: at most 100."""
        self.query()
        found = await self.store.delivery_pages.failing(100)
        self.write_json({"items": [endpoint_record(one) for one in found.longest], "count": found.total})


class AdminSendDeliveryHandler(AdminHandler):
    """POST …/send."""

    async def post(self, delivery: str) -> None:
        """Posts the event to its app once more."""
        client = self.fields("client_id").require("client_id")
        await self.answer_once(lambda: self._send(client, delivery))

    async def _send(self, client: str, delivery: str) -> Record:
        if not await self.store.deliveries.replay(client, delivery):
            raise Refused("not_found", "There is no such delivery of this app, or it is being posted just now.")
        self.site.wake_webhooks()
        self.store.security.note("delivery_replayed_by_operator", client=client)
        found = await self.store.deliveries.read(client, delivery)
        return delivery_record(found) if found else {"id": delivery}


class AdminSendFailedHandler(AdminHandler):
    """POST …/send-failed."""

    async def post(self) -> None:
        """Posts every given-up event of an app once more, or with `dryRun` counts them."""
        params = self.fields("client_id", "dryRun")
        client, dry = params.require("client_id"), self.flag(params, "dryRun")
        await self.answer_once(lambda: self._send(client, dry))

    async def _send(self, client: str, dry: bool) -> Record:
        if await self.store.apps.find(client) is None:
            raise Refused("not_found", "No such app.")
        pages = self.store.delivery_pages
        count = await (pages.given_up(client) if dry else pages.replay_given_up(client))
        if count and not dry:
            self.site.wake_webhooks()
            self.store.security.note("delivery_replayed_by_operator", client=client, detail=f"all {count} given up")
        return {"client_id": client, "count": count, "dryRun": dry}
