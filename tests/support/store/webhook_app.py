"""An app with a webhook, its receiver, and the process that posts, on a store in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from outbound.address_policy import AddressPolicy
from outbound.webhooks.channels import SignLogout
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from store.apps.registration import Registration
from store.apps.webhooks import Target
from store.webhooks.deliveries import Delivery, WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.receiver import Receiver

Found = TypeVar("Found")
USER = "0" * 32
ISSUER = "https://id.example"


class Hooked:
    """One app with its own receiver. `secret` is the newest signing secret."""

    store: Store
    receiver: Receiver
    client_id: str
    secret: str

    @classmethod
    async def make(
        cls,
        store: Store,
        client_id: str = "web",
        receiver: Receiver | None = None,
        *,
        owner: str = "",
        host: str = "127.0.0.1",
    ) -> Hooked:
        """Registers an app. A listening `receiver` may be shared."""
        self = cls()
        self.store, self.client_id = store, client_id
        self.receiver = receiver or Receiver()
        if not self.receiver.listens:
            await self.receiver.start()
        url = self.receiver.url.replace("127.0.0.1", host) + "?token=hidden"
        app = Registration(client_id, "Web", ("https://web.example/cb",), ("profile",), webhook_url=url, owner=owner)
        begun, secret = store.webhooks.begun(app)
        await store.apps.create(begun)
        assert secret
        self.secret = secret
        return self

    async def tell(self, number: int = 1, type: str = "grant.revoked") -> str:
        """Queues this many events; returns the id of the last one."""
        for _ in range(number):
            event = WebhookEvent(
                new_event_id(), type, self.client_id, USER, await self.store.apps.now(), {"reason": "because"}
            )
            assert await self.store.deliveries.enqueue(event)
        return event.id

    async def delivery(self, delivery_id: str) -> Delivery:
        found = await self.store.deliveries.read(self.client_id, delivery_id)
        assert found
        return found

    async def settled(self, delivery_id: str, attempts: int, engine: WebhookSender | None = None) -> Delivery:
        """The delivery after this many attempts."""

        async def done() -> Delivery | None:
            if engine:
                engine.wake()
            found = await self.delivery(delivery_id)
            over = found.state != "pending" or found.next_attempt_at is not None
            return found if found.attempts >= attempts and over else None

        return await until(done)


async def until(attempt: Callable[[], Awaitable[Found | None]], seconds: float = 15.0) -> Found:
    """The first true answer."""
    async with asyncio.timeout(seconds):
        while not (answer := await attempt()):
            await asyncio.sleep(0.02)
    return answer


def signs_logouts(store: Store) -> SignLogout:
    """Signs logout tokens for an issuer of the tests."""

    async def sign(delivery: Delivery, target: Target, now: int) -> str:
        facts = delivery.client_id, delivery.sub, delivery.details["sid"], target.algorithm
        return await store.logout_tokens.sign(ISSUER, *facts, now)

    return sign


def engine_on(store: Store, target: Any = None, most: int = 16, **limits: float) -> WebhookSender:
    """The sender of webhooks, with loopback allowed."""
    seconds: dict[str, Any] = {"connect": 2, "whole": 3, **limits}
    poster = Poster(AddressPolicy(loopback=True), most, **seconds)
    return WebhookSender(store.deliveries, target or store.webhooks.target, poster, most, signs_logouts(store))
