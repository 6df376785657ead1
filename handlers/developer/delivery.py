"""/developer/apps/:client_id/webhooks/:delivery: one delivery, the attempts at it, and sending it again."""

from __future__ import annotations

import codecs
import json
import re

from handlers.core.params import once, parse_pairs
from handlers.developer.webhooks import NOTICES, WebhooksPage
from outbound.webhooks.retries import ATTEMPTS
from outbound.webhooks.signing import body_of
from store.oauth.logout_tokens import EVENT
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.attempts import Attempt
from store.webhooks.deliveries import SESSION_ENDED, Delivery

_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Characters that no text for people has."""


class DeliveryHandler(WebhooksPage):
    """The page of one delivery."""

    async def get(self, client_id: str, delivery_id: str) -> None:
        """Shows the delivery and its attempts, one of them in full: the last, or the one in the query."""
        profile, app = await self.own(client_id)
        found, attempts = await self.delivery(client_id, delivery_id)
        asked = once(parse_pairs(self.request.query)).get("attempt") or ""
        chosen = next((one for one in attempts if str(one.number) == asked), attempts[-1] if attempts else None)
        logout = found.type == SESSION_ENDED
        self.render(
            "developer/delivery.html",
            title=Phrase("%(event)s, webhook of %(app)s", event=found.type, app=app.name),
            signed_in=profile,
            app=app,
            one=found,
            body=claims_of(self.site.base_url, found) if logout else body_of_event(found),
            most=None if logout else ATTEMPTS,
            attempts=attempts,
            chosen=chosen,
            sent=text_of(chosen.exchange.body) if chosen else "",
            received=answer_of(chosen) if chosen else "",
            url=app.backchannel_logout_uri if logout else app.webhook_url,
            notice=self.notice(NOTICES),
        )

    async def delivery(self, client_id: str, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
        """Raises Refused("not_found")."""
        found = await self.store.deliveries.read_attempts(client_id, delivery_id)
        if found is None:
            raise Refused("not_found", Phrase("This delivery no longer exists. We keep deliveries for up to 30 days."))
        return found


def claims_of(issuer: str, delivery: Delivery) -> str:
    """What is the same in every logout token of a delivery."""
    issued = {"iss": issuer, "aud": delivery.client_id, "sub": delivery.sub}
    return json.dumps({**issued, "sid": delivery.details.get("sid", ""), "events": {EVENT: {}}}, indent=2)


def body_of_event(delivery: Delivery) -> str:
    """The body of a webhook event."""
    body = body_of(delivery.type, delivery.occurred_at, delivery.client_id, delivery.sub, delivery.details)
    return body.decode()


def text_of(body: bytes, *, cut: bool = False) -> str | None:
    """A body as text for a page; None if it is no UTF-8 text. A body that was `cut` may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(body, final=not cut)
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


def answer_of(attempt: Attempt) -> str | None:
    """The body of an answer as text; None if it is no text."""
    answer = attempt.exchange.answer
    return text_of(answer.body, cut=attempt.cut) if answer else ""


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
