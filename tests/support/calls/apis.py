"""Calls about APIs: what they are registered with, and who may ask about tokens for them."""

from __future__ import annotations

from store.apps.api_record import ApiRegistration, ApiScope
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


def api_of(w: World) -> ApiRegistration:
    """An API that only this world has."""
    return ApiRegistration(f"https://{w.app.client_id}.example", "Orders", (ApiScope("orders", "Your orders"),))


async def registered(w: World) -> str:
    """The client id of the world's API."""
    api = api_of(w)
    if await w.store.apis.fresh(api.client_id) is None:
        await w.store.apis.create(api)
    return api.client_id


@call("apis.create", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apis.create(api_of(w))


@call("apis.find")
async def _(w: World) -> Call:
    return lambda: w.store.apis.find("api_never_read_before")


@call("apis.active")
async def _(w: World) -> Call:
    return lambda: w.store.apis.active("api_never_asked_before")


@call("apis.fresh")
async def _(w: World) -> Call:
    return lambda: w.store.apis.fresh("api_any")


@call("apis.at")
async def _(w: World) -> Call:
    return lambda: w.store.apis.at("https://nobody.example")


@call("apis.update", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.update(client_id, name="Renamed")


@call("apis.rotate_secret", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.rotate_secret(client_id)


@call("apis.delete", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.delete(client_id)


@call("apis.list")
async def _(w: World) -> Call:
    await registered(w)
    return w.store.apis.list


@call("apis.every")
async def _(w: World) -> Call:
    await registered(w)
    w.store.apis.forget()
    return w.store.apis.every
