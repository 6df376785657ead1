"""/developer/apps/:client_id/webhooks: an app's webhook URL, and its deliveries."""

from __future__ import annotations

import json

from handlers.account.reauth_forms import GuardedPage
from handlers.core import mails
from handlers.core.params import once, parse_pairs
from outbound.webhooks.retries import ATTEMPTS
from outbound.webhooks.signing import body_of
from store.apps.registration import Registration
from store.apps.webhooks import newest_mark
from store.oauth.logout_tokens import EVENT
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile
from store.webhooks.deliveries import SESSION_ENDED, Delivery, WebhookEvent, new_event_id
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url

PAGE = 20
TEST = "ping"
NOTICES = {
    "saved": "Saved. Events go there from now on, those that wait as well.",
    "off": "Saved. No events are posted from now on.",
    "sent": "A test event is on its way. Reload this page in a moment to see the result.",
    "again": "The event is on its way again. Reload this page in a moment to see the result.",
    "running": "The event is being posted right now.",
}
EVENT_TEXTS = (
    ("grant.revoked", "A person disconnected your app. Its documents for them are kept here for 30 days."),
    (
        "tokens.revoked",
        "Your app’s tokens for a person ended, for their safety. They have to sign in to your app again.",
    ),
    ("data.deleted", "Your app’s documents for a person are gone."),
    ("user.deleted", "A person deleted their account, and your app’s documents for them are gone."),
    ("app.deleted", "Your app was deleted here. Events about its people’s documents follow for 30 days."),
)


class WebhooksPage(GuardedPage):
    """Shared by these pages."""

    async def show_webhooks(
        self,
        profile: Profile,
        app: Registration,
        *,
        typed: str | None = None,
        wrong: str | None = None,
        secret: str | None = None,
    ) -> None:
        """The page. `typed` is a URL that was refused, `wrong` why, or which action failed. `secret` is shown once."""
        if wrong:
            self.set_status(400)
        before = once(parse_pairs(self.request.query)).get("before") or ""
        found = await self.store.deliveries.list(app.client_id, before or None, PAGE + 1)
        now = await self.store.apps.now()
        self.render(
            "developer/webhooks.html",
            title=f"Webhooks of {app.name}",
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
            onward=found[PAGE - 1].id if len(found) > PAGE else None,
            before=before,
            events=EVENT_TEXTS,
            posting=self.site.posts_events,
        )

    async def own(self, client_id: str) -> tuple[Profile, Registration]:
        """The person who is signed in, and their app. Raises SignedOut, Refused("not_found")."""
        return await self.store.owned.find(self.require_session(), client_id)


class WebhooksHandler(WebhooksPage):
    """The page, and the form for the URL."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_webhooks(*await self.own(client_id))

    async def post(self, client_id: str) -> None:
        """Sets the URL, or removes it if empty. The first URL gets a secret, which only this answer shows."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        url = (self.body().get("url") or "").strip()
        try:
            if url:
                check_webhook_url(url, loopback=self.site.on_loopback)
        except InvalidWebhookUrl as error:
            return await self.show_webhooks(profile, app, typed=url, wrong=str(error))
        before = app
        app, secret = await self.store.owned.set_webhook(self.require_session(), client_id, url, self.visitor)
        if url != before.webhook_url:
            line = Phrase("Webhook URL: %(url)s", url=url) if url else Phrase("Webhook URL removed")
            mails.app_changed(self.site, profile, before, [line], self.visitor)
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
        line = Phrase("A new signing secret was created for its webhook")
        mails.app_changed(self.site, profile, app, [line], self.visitor)
        await self.show_webhooks(profile, app, secret=secret)


class TestEventHandler(WebhooksPage):
    """Sends a test event without data."""

    async def post(self, client_id: str) -> None:
        """The event takes the path of all events."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        if not app.webhook_url:
            return await self.show_webhooks(profile, app, wrong="Name a URL first. Nothing was sent.")
        await self.store.limits.webhook_sent(profile.user)
        now = await self.store.apps.now()
        await self.store.deliveries.enqueue(WebhookEvent(new_event_id(), TEST, client_id, "", now))
        self.site.wake_webhooks()
        self.see_done(f"/developer/apps/{client_id}/webhooks?sent")


class DeliveryHandler(WebhooksPage):
    """The page of one delivery."""

    async def get(self, client_id: str, delivery_id: str) -> None:
        """Shows the delivery, with the exact body."""
        profile, app = await self.own(client_id)
        found = await self.delivery(client_id, delivery_id)
        logout = found.type == SESSION_ENDED
        self.render(
            "developer/delivery.html",
            title=f"{found.type}, webhook of {app.name}",
            signed_in=profile,
            app=app,
            one=found,
            body=self.claims_of(found) if logout else body_of_event(found),
            most=None if logout else ATTEMPTS,
            url=app.backchannel_logout_uri if logout else app.webhook_url,
            notice=self.notice(NOTICES),
        )

    def claims_of(self, delivery: Delivery) -> str:
        """What is the same in every logout token of a delivery."""
        issued = {"iss": self.site.base_url, "aud": delivery.client_id, "sub": delivery.sub}
        return json.dumps({**issued, "sid": delivery.details.get("sid", ""), "events": {EVENT: {}}}, indent=2)

    async def delivery(self, client_id: str, delivery_id: str) -> Delivery:
        """Raises Refused("not_found")."""
        found = await self.store.deliveries.read(client_id, delivery_id)
        if found is None:
            raise Refused("not_found", "This delivery no longer exists: deliveries are kept for at most 30 days.")
        return found


def body_of_event(delivery: Delivery) -> str:
    """The body of a webhook event."""
    body = body_of(delivery.type, delivery.occurred_at, delivery.client_id, delivery.sub, delivery.details)
    return body.decode()


class ReplayHandler(DeliveryHandler):
    """Posts an event again."""

    async def post(self, client_id: str, delivery_id: str) -> None:
        """Posts at once, whatever the last status. Refused while the event is being posted."""
        self.check_same_origin()
        profile, _ = await self.own(client_id)
        await self.delivery(client_id, delivery_id)
        await self.store.limits.webhook_sent(profile.user)
        sent = await self.store.deliveries.replay(client_id, delivery_id)
        self.site.wake_webhooks()
        self.see_done(f"/developer/apps/{client_id}/webhooks/{delivery_id}?{'again' if sent else 'running'}")
