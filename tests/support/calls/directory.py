"""Calls of the index of people: its relay, its rebuild, and searches."""

from __future__ import annotations

from typing import Any

from store import keys
from store.directory.relay import Listed
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.world import World

RELAY = ("take_changed", "change_section", "settle_changed")


async def noted(w: World) -> World:
    """The world, with its person noted for the relay, and no lease of an earlier one."""
    await w.store.client.hset(keys.changed(w.user)["changed"], keys.member(w.user), "old@example.com\tOld\n")
    await w.store.client.delete(keys.directory_relay(w.user[:3])["relaying"])
    return w


def person(w: World) -> Listed:
    """The person of a world."""
    return Listed(w.user, w.email, "Ada Lovelace")


@call("directory.search", "read_section", "summarise_person")
async def _(w: World) -> Call:
    await w.store.directory_relay.repeat([w.user])
    return lambda: w.store.directory.search(w.email[:6], by="address")


@call("directory.matching", "read_section", "summarise_person")
async def _(w: World) -> Call:
    await w.store.directory_relay.repeat([w.user])
    return lambda: w.store.directory.matching(w.email[:6], "", 10)


@call("directory.add_many", "change_section", "settle_changed")
async def _(w: World) -> Call:
    return lambda: w.store.directory.add_many([person(w)])


@call("directory_relay.relay", *RELAY)
async def _(w: World) -> Call:
    await noted(w)
    return lambda: w.store.directory_relay.relay([w.user[:3]])


@call("directory_relay.sweep", *RELAY)
async def _(w: World) -> Call:
    await noted(w)
    return lambda: w.store.directory_relay.sweep([w.user[:3]])


@call("directory_relay.repeat", *RELAY)
async def _(w: World) -> Call:
    await noted(w)
    return lambda: w.store.directory_relay.repeat([w.user])


@call("directory_relay.hinted", *RELAY)
async def _(w: World) -> Call:
    await w.store.directory_relay.hinted()
    await noted(w)
    assert w.store.scripts.changed is not None
    w.store.scripts.changed(keys.changed(w.user)["changed"])
    return w.store.directory_relay.hinted


@call("directory_relay.write", "change_section")
async def _(w: World) -> Call:
    return lambda: w.store.directory_relay.write([person(w)])


@call("directory_relay.settle", "settle_changed")
async def _(w: World) -> Call:
    await noted(w)
    return lambda: w.store.directory_relay.settle(w.user[:3], [person(w)])


@call("directory_rebuild.begin", "begin_rebuild")
async def _(w: World) -> Call:
    return w.store.directory_rebuild.begin


@call("directory_rebuild.fill", "mark_people", *RELAY)
async def _(w: World) -> Call:
    await noted(w)
    await w.store.client.set(keys.DIRECTORY_REBUILD, len(keys.SHARDS) - 1)
    shard = keys.SHARDS[-1]
    await w.store.client.hset(keys.directory_relay(shard)["changed"], "0" * 29, "old@example.com\tOld\n")

    async def filled() -> list[Any]:
        return await drained(w.store.directory_rebuild.fill())

    return filled


@call("directory_rebuild.clean", "read_section", *RELAY)
async def _(w: World) -> Call:
    await w.store.directory_relay.write([person(w)._replace(email=f"left-{w.email}")])

    async def cleaned() -> list[Any]:
        return await drained(w.store.directory_rebuild.clean())

    return cleaned


@call("directory_rebuild.said_of")
async def _(w: World) -> Call:
    return lambda: w.store.directory_rebuild.said_of([w.user])
