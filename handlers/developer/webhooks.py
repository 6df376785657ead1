"""/developer/apps/:client_id/webhooks: an app's webhook URL, its events, and its deliveries."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.core.params import Params, once, parse_pairs
from handlers.developer.apps import DeveloperPage
from handlers.developer.receivers import receivers
from store.apps.registration import Registration
from store.apps.registration_changes import own_sector
from store.apps.sectors import InvalidSector, check_told_at
from store.apps.webhooks import newest_mark
from store.phrases import Phrase
from store.refused import Refused, reason_of
from store.results import Profile
from store.webhooks.deliveries import SESSION_ENDED, WebhookEvent, new_event_id
from store.webhooks.event_types import EVENT_TYPES, EVERY, chosen_types, is_chosen
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url

PAGE = 20
TEST = "ping"
LISTED = (*EVENT_TYPES, TEST, SESSION_ENDED)
"""The event types that the list of deliveries can show alone."""
BOX = "event_"
"""The name of a box of the form, up to the event type. With no box ticked the field `chosen` still says that the form
has boxes."""
FORM = ("url", "chosen", *(BOX + name for name in EVENT_TYPES))
FILTERS = ("type", "state")
STATES = {"pending": Phrase("Waiting"), "delivered": Phrase("Delivered"), "failed": Phrase("Given up")}
"""The states of deliveries, as people choose them."""
NOTICES = {
    "saved": Phrase("Saved. Events go to this URL, including those that were waiting."),
    "off": Phrase("Saved. We no longer post events."),
    "sent": Phrase("A test event is on its way. Reload this page in a moment to see the result."),
    "again": Phrase("The event is on its way again. Reload this page in a moment to see the result."),
    "running": Phrase("This event is being posted right now."),
}
EVENT_TEXTS = (
    ("grant.revoked", Phrase("A person disconnected your app. We keep its documents for them for 30 days.")),
    (
        "tokens.revoked",
        Phrase("We revoked your app’s tokens for a person, for their safety. They need to sign in to your app again."),
    ),
    ("data.deleted", Phrase("Your app’s documents for a person were deleted.")),
    ("user.deleted", Phrase("A person deleted their account, and your app’s documents for them with it.")),
    ("app.deleted", Phrase("Your app was deleted here. Events about people’s documents follow for 30 days.")),
)


class WebhooksPage(DeveloperPage):
    """Shared by these pages."""

    async def show_webhooks(
        self,
        profile: Profile,
        app: Registration,
        *,
        typed: str | None = None,
        wrong: str | None = None,
        secret: str | None = None,
        chosen: tuple[str, ...] | None = None,
    ) -> None:
        """The page. `typed` is a URL that was refused, `wrong` why, or which action failed; `chosen` are the event
        types of the refused form. `secret` is shown once."""
        if wrong:
            self.set_status(400)
        asked = once(parse_pairs(self.request.query))
        before, type, state = (asked.get(name) or "" for name in ("before", *FILTERS))
        type, state = type if type in LISTED else "", state if state in STATES else ""
        found = await self.store.deliveries.list(app.client_id, before or None, PAGE + 1, type=type, state=state)
        now = await self.store.apps.now()
        self.render(
            "developer/webhooks.html",
            title=Phrase("Webhooks of %(app)s", app=app.name),
            signed_in=profile,
            app=app,
            url=app.webhook_url if typed is None else typed,
            wrong_url=wrong if typed is not None else None,
            wrong=wrong if typed is None else None,
            secret=secret,
            mark=newest_mark(app),
            two_sign=len(self.store.webhooks.live_secrets(app, now)) > 1,
            notice=self.notice(NOTICES),
            deliveries=found[:PAGE],
            onward=urlencode(_given(before=found[PAGE - 1].id, type=type, state=state)) if len(found) > PAGE else None,
            before=before,
            newest=urlencode(_given(type=type, state=state)),
            events=EVENT_TEXTS,
            wants=[name for name in EVENT_TYPES if is_chosen(app.webhook_events if chosen is None else chosen, name)],
            listed=LISTED,
            states=STATES,
            type_here=type,
            state_here=state,
            receivers=receivers(),
            posting=self.site.posts_events,
        )


def _given(**values: str) -> dict[str, str]:
    """The parameters of a query that have a value."""
    return {name: value for name, value in values.items() if value}


def chosen_in(params: Params) -> tuple[str, ...] | None:
    """The event types whose boxes are ticked; None if the form has no boxes."""
    if params.get("chosen") is None:
        return None
    ticked = chosen_types(name for name in EVENT_TYPES if params.get(BOX + name))
    return EVERY if ticked == EVENT_TYPES else ticked


def changed_lines(before: Registration, app: Registration) -> list[Phrase]:
    """The changes to an app's webhook, in words."""
    lines = []
    if app.webhook_url != before.webhook_url:
        url = app.webhook_url
        lines.append(Phrase("Webhook URL: %(url)s", url=url) if url else Phrase("Webhook URL removed"))
    if app.webhook_events != before.webhook_events:
        some = ", ".join(EVENT_TYPES if app.webhook_events == EVERY else app.webhook_events)
        lines.append(Phrase("Webhook events: %(types)s", types=some) if some else Phrase("Webhook events: none"))
    return lines


class WebhooksHandler(WebhooksPage):
    """The page, and the form for the URL."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_webhooks(*await self.own(client_id))

    async def post(self, client_id: str) -> None:
        """Sets the URL, or removes it if empty, and the chosen events. The first URL gets a secret, which only this
        answer shows."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        params = self.body()
        url, events = (params.get("url") or "").strip(), chosen_in(params)
        try:
            if url:
                check_webhook_url(url, loopback=self.site.on_loopback)
            if url != app.webhook_url:
                check_told_at(own_sector(app), url)
        except (InvalidWebhookUrl, InvalidSector) as error:
            return await self.show_webhooks(profile, app, typed=url, wrong=reason_of(error), chosen=events)
        before = app
        app, secret = await self.store.owned.set_webhook(
            self.require_session(), client_id, url, self.visitor, events=events
        )
        if lines := changed_lines(before, app):
            self.tell_owner(profile, before, *lines)
        if secret:
            return await self.show_webhooks(profile, app, secret=secret)
        self.see_done(f"/developer/apps/{client_id}/webhooks?{'saved' if url else 'off'}")


class SigningSecretHandler(WebhooksPage):
    """Makes a new signing secret."""

    async def post(self, client_id: str) -> None:
        """Answers with the page that shows the secret once. A repeated request is refused, because its mark no longer
        matches the newest secret."""
        self.check_same_origin()
        profile, _ = await self.own(client_id)
        params = self.body()
        mark, ends = params.require("mark"), params.get("ends")
        try:
            app, secret = await self.store.owned.rotate_webhook(
                self.require_session(), client_id, self.visitor, mark=mark, ends=ends
            )
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_webhooks(*await self.own(client_id), wrong=refusal.description)
        self.tell_owner(profile, app, Phrase("A new signing secret was created for its webhook"))
        await self.show_webhooks(profile, app, secret=secret)


class TestEventHandler(WebhooksPage):
    """Sends a test event without data."""

    async def post(self, client_id: str) -> None:
        """The event takes the path of all events."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        if not app.webhook_url:
            return await self.show_webhooks(profile, app, wrong=Phrase("Enter a URL first. Nothing was sent."))
        await self.store.limits.webhook_sent(profile.user)
        now = await self.store.apps.now()
        await self.store.deliveries.enqueue(WebhookEvent(new_event_id(), TEST, client_id, "", now))
        self.site.wake_webhooks()
        self.see_done(f"/developer/apps/{client_id}/webhooks?sent")
