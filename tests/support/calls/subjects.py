"""Calls about what apps and APIs call a person. Each begins in a process that has not read the salt yet."""

from __future__ import annotations

from store import keys
from store.webhooks.deliveries import WebhookEvent
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World

SECTOR = "app.example"
SID = "0" * 22


async def fresh(w: World) -> World:
    """The world before its first pairwise id."""
    await w.store.client.hdel(keys.KEYRING, "pairwise")
    w.store.pairwise._salt = b""
    return w


@call("pairwise.prepare", "keep_salt")
async def _(w: World) -> Call:
    return (await fresh(w)).store.pairwise.prepare


@call("pairwise.for_app", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.pairwise.for_app(w.app.client_id, w.user)


@call("pairwise.for_sector", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.pairwise.for_sector(SECTOR, w.user)


@call("pairwise.reseal", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    await w.store.client.hset(keys.KEYRING, "pairwise", "0" * 64)  # as an earlier release kept it
    return w.store.pairwise.reseal


@call("subjects.prepare", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.subjects.prepare(SECTOR)


@call("subjects.of", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.subjects.of(w.app.client_id, SECTOR, w.user)


@call("subjects.at_api", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.subjects.at_api("orders.example", SECTOR, w.user)


@call("pairwise.session_for", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.pairwise.session_for(SECTOR, SID)


@call("pairwise.session_behind", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.pairwise.session_behind(SECTOR, SID)


@call("subjects.session", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.subjects.session(SECTOR, SID)


@call("subjects.session_behind", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    return lambda: w.store.subjects.session_behind(SECTOR, SID)


@call("subjects.in_event", "keep_salt")
async def _(w: World) -> Call:
    await fresh(w)
    event = WebhookEvent("evt_1", "tokens.revoked", w.app.client_id, w.user, 1, {})
    return lambda: w.store.subjects.in_event(event, "0")
