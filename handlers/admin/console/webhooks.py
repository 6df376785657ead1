"""/admin/webhooks: deliveries of all apps, which endpoints fail, and sending events again."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.core.params import once, parse_pairs
from handlers.developer.delivery import answer_of, body_of_event, claims_of, text_of
from handlers.developer.webhooks import LISTED
from outbound.webhooks.retries import ATTEMPTS
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.deliveries import SESSION_ENDED

WEBHOOKS = "/admin/webhooks"
PAGE = 40
STATES: dict[str, str] = {
    "failing": Phrase("Failing"),
    "waiting": Phrase("Waiting"),
    "failed": Phrase("Given up"),
    "delivered": Phrase("Delivered"),
}
NOTICES = {
    "again": Phrase("The event is on its way again. Reload this page in a moment to see the result."),
    "running": Phrase("This event is being posted right now."),
    "all": Phrase("The events are on their way again. Reload this page in a moment to see the result."),
}


class ConsoleWebhooksHandler(ConsolePage):
    """The list of deliveries."""

    async def get(self) -> None:
        """Shows which endpoints fail, and a page of deliveries: in a `state`, of an `app`, of a `type` of event."""
        params = self.asked()
        chosen = {name: (params.get(name) or "").strip()[:64] for name in ("state", "app", "type")}
        if chosen["state"] not in STATES:
            chosen["state"] = ""
        if chosen["type"] not in LISTED:
            chosen["type"] = ""
        cursor, pages = params.get("cursor") or "", self.store.delivery_pages
        found = await pages.page(chosen["state"], chosen["app"], PAGE, cursor, chosen["type"])
        failing = await pages.failing()
        shown = [one.client_id for one in found.deliveries] + [one.client_id for one in failing.longest]
        names = await self.names_of(shown)
        self.show_page(
            "admin/webhooks.html",
            WEBHOOKS,
            Phrase("Webhooks"),
            chosen=chosen,
            states=STATES,
            chips=chips_of(WEBHOOKS, chosen, state=STATES),
            types=LISTED,
            failing=failing,
            names=names,
            deliveries=found.deliveries,
            posting=self.site.posts_events,
            filtered=filtered,
            first=f"?{filtered(**chosen)}" if cursor else "",
            onward=f"?{filtered(**chosen, cursor=found.cursor)}" if found.cursor else "",
            notice=self.notice(NOTICES),
        )


def filtered(**values: str) -> str:
    """The query of a list with these filters; empty ones are left out."""
    return urlencode({name: value for name, value in values.items() if value})


class ConsoleDeliveryHandler(ConsolePage):
    """One delivery."""

    async def get(self, client_id: str, delivery_id: str) -> None:
        """Shows the delivery and its attempts, one of them in full: the last, or the one in the query."""
        read = await self.store.deliveries.read_attempts(client_id, delivery_id)
        if read is None:
            raise Refused("not_found", Phrase("This delivery no longer exists. We keep deliveries for up to 30 days."))
        found, attempts = read
        asked = once(parse_pairs(self.request.query)).get("attempt") or ""
        chosen = next((one for one in attempts if str(one.number) == asked), attempts[-1] if attempts else None)
        app, logout = await self.store.apps.find(client_id), found.type == SESSION_ENDED
        self.show_page(
            "admin/delivery.html",
            WEBHOOKS,
            Phrase("%(event)s, webhook of %(app)s", event=found.type, app=app.name if app else client_id),
            scripts=True,
            app_name=app.name if app else client_id,
            one=found,
            body=claims_of(self.site.base_url, found) if logout else body_of_event(found),
            most=None if logout else ATTEMPTS,
            attempts=attempts,
            chosen=chosen,
            sent=text_of(chosen.exchange.body) if chosen else "",
            received=answer_of(chosen) if chosen else "",
            url=_url_of(app, logout),
            notice=self.notice(NOTICES),
        )


def _url_of(app: Registration | None, logout: bool) -> str:
    """The URL that the event goes to; "" for none."""
    if app is None:
        return ""
    return app.backchannel_logout_uri if logout else app.webhook_url


class ConsoleSendAgainHandler(ConsolePage):
    """…/again."""

    async def post(self, client_id: str, delivery_id: str) -> None:
        """Posts the event at once, whatever its state. Refused while it is being posted."""
        self.body()
        if await self.store.deliveries.read(client_id, delivery_id) is None:
            raise Refused("not_found", Phrase("This delivery no longer exists. We keep deliveries for up to 30 days."))
        sent = await self.store.deliveries.replay(client_id, delivery_id)
        if sent:
            self.site.wake_webhooks()
            self.store.security.note("delivery_replayed_by_operator", client=client_id)
        self.see_done(f"{WEBHOOKS}/{client_id}/{delivery_id}?{'again' if sent else 'running'}")


class ConsoleSendFailedHandler(ConsolePage):
    """…/send-failed."""

    async def get(self, client_id: str) -> None:
        """Says how many events of the app were given up."""
        app = await self._known(client_id)
        count = await self.store.delivery_pages.given_up(client_id)
        self.show_page("admin/send_failed.html", WEBHOOKS, Phrase("Send given-up events again"), app=app, count=count)

    async def post(self, client_id: str) -> None:
        """Posts all of them."""
        self.body()
        await self._known(client_id)
        count = await self.store.delivery_pages.replay_given_up(client_id)
        if count:
            self.site.wake_webhooks()
            self.store.security.note("delivery_replayed_by_operator", client=client_id, detail=f"all {count} given up")
        self.see_done(f"{WEBHOOKS}?app={client_id}&all")

    async def _known(self, client_id: str) -> Registration:
        app = await self.store.apps.find(client_id)
        if app is None:
            raise Refused("not_found", Phrase("There is no such app."))
        return app
