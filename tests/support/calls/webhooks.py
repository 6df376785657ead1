"""Calls about events: the outbox and the deliveries."""

from __future__ import annotations

from store import keys
from store.webhooks.attempts import WebhookExchange, WebhookResponse
from store.webhooks.deliveries import Delivery, WebhookEvent, new_event_id
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


async def wanted(client: str, event: str) -> bool:
    """Lets every app receive every event."""
    return True


async def two_events(w: World) -> None:
    """The app has lost access, and documents of an earlier connection have ended: two events."""
    await w.tokens()
    await w.revoke_app()
    ended = f"{keys.member(w.user)}:{w.app.client_id}"
    await w.store.client.zadd(keys.outbox_keys(w.user[:3])["due"], {ended: 1})
    w.store.outbox.idle = 0  # an interrupted delivery is resumed at once


RELAY = ("take_events", "enqueue_delivery", "drop_events")


@call("outbox.relay", "announce_ended", *RELAY)
async def _(w: World) -> Call:
    await two_events(w)
    await w.store.client.delete(keys.RELAYED)
    return lambda: w.store.outbox.relay(wanted)


@call("outbox.sweep", "announce_ended", *RELAY)
async def _(w: World) -> Call:
    await two_events(w)
    return lambda: w.store.outbox.sweep(wanted)


@call("outbox.relay_shards", *RELAY)
async def _(w: World) -> Call:
    await two_events(w)
    return lambda: w.store.outbox.relay_shards({w.user[:3]}, wanted)


def event(w: World) -> WebhookEvent:
    """An event for the app."""
    return WebhookEvent(
        new_event_id(), "grant.revoked", w.app.client_id, w.user, 1, {"reason": "disconnected_by_person"}
    )


async def claimed(w: World) -> Delivery:
    """A delivery in progress."""
    await w.store.deliveries.enqueue(event(w))
    return (await w.store.deliveries.claim(1000, 30))[-1]


@call("deliveries.enqueue", "enqueue_delivery")
async def _(w: World) -> Call:
    one = event(w)
    return lambda: w.store.deliveries.enqueue(one)


@call("deliveries.claim", "claim_deliveries")
async def _(w: World) -> Call:
    await w.store.deliveries.enqueue(event(w))
    return lambda: w.store.deliveries.claim(10, 30)


@call("deliveries.settle", "settle_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.settle(one.id, one.attempts, delivered=True, status=200)


@call("deliveries.put_back", "put_back_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.put_back(one.id, one.attempts, 5)


@call("deliveries.list", "list_deliveries")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.list(w.app.client_id)


@call("deliveries.read", "read_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.read(w.app.client_id, one.id)


@call("deliveries.read_attempts", "read_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    exchange = WebhookExchange("https://app.example/hook", (), b"{}", WebhookResponse((), b"busy"), 12)
    await w.store.deliveries.settle(one.id, one.attempts, delivered=True, status=200, exchange=exchange)
    return lambda: w.store.deliveries.read_attempts(w.app.client_id, one.id)


@call("deliveries.replay", "replay_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    await w.store.deliveries.settle(one.id, one.attempts, delivered=True, status=200)
    return lambda: w.store.deliveries.replay(w.app.client_id, one.id)


@call("deliveries.next_due", "next_delivery")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.next_due()


@call("deliveries.forget", "forget_deliveries")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.forget(w.app.client_id)
