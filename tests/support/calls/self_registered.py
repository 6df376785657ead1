"""Calls about apps that register themselves."""

from __future__ import annotations

from typing import Any

from store.apps.registration import DYNAMIC, Registration
from store.lifetimes import UNUSED_APP
from tests.support.calls.prepared import Call, call
from tests.support.store.world import CALLBACK, World


async def registered(w: World, *, kept: bool = False) -> Registration:
    """A new app that registered itself, which somebody has allowed if it is `kept`."""
    facts: dict[str, Any] = {"redirect_uris": (CALLBACK,), "scopes": (), "pkce_required": True, "origin": DYNAMIC}
    app = Registration(f"{w.app.client_id}-self", "Itself", public=True, **facts)
    themselves = w.store.self_registered
    await themselves.claim(app.client_id, UNUSED_APP)
    assert await themselves.save(app, b"", UNUSED_APP)
    if kept:
        await themselves.keep(app)
    return app


@call("apps.row")
async def _(w: World) -> Call:
    return lambda: w.store.apps.row(w.app.client_id)


@call("self_registered.filled")
async def _(w: World) -> Call:
    app = await registered(w)
    w.store.apis.forget()
    return lambda: w.store.self_registered.filled(app)


@call("self_registered.claim", "claim_client")
async def _(w: World) -> Call:
    return lambda: w.store.self_registered.claim("newly-come", UNUSED_APP)


@call("self_registered.save", "save_client")
async def _(w: World) -> Call:
    app = await registered(w)
    packed, _row = await w.store.apps.row(app.client_id)
    return lambda: w.store.self_registered.save(app, packed, UNUSED_APP)


@call("self_registered.keep", "keep_client", "note_client_use")
async def _(w: World) -> Call:
    app = await registered(w)
    return lambda: w.store.self_registered.keep(app)


@call("self_registered.used", "note_client_use")
async def _(w: World) -> Call:
    app = await registered(w, kept=True)
    return lambda: w.store.self_registered.used(app)


@call("self_registered.drop", "drop_client")
async def _(w: World) -> Call:
    app = await registered(w)
    return lambda: w.store.self_registered.drop(app)


@call("self_registered.end_idle")
async def _(w: World) -> Call:
    return lambda: w.store.self_registered.end_idle()


@call("self_registered.put", "save_client")
async def _(w: World) -> Call:
    app = await registered(w)
    return lambda: w.store.self_registered.put(app, 1, UNUSED_APP)


@call("document_fetches.begin")
async def _(w: World) -> Call:
    return lambda: w.store.document_fetches.begin("newly-come")


@call("document_fetches.state")
async def _(w: World) -> Call:
    return lambda: w.store.document_fetches.state("newly-come")


@call("document_fetches.failed")
async def _(w: World) -> Call:
    return lambda: w.store.document_fetches.failed("newly-come", "a reason")


@call("document_fetches.ended")
async def _(w: World) -> Call:
    return lambda: w.store.document_fetches.ended("newly-come")


@call("limits.client_document", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.client_document("192.0.2.7", "app.example")


@call("initial_tokens.create")
async def _(w: World) -> Call:
    return lambda: w.store.initial_tokens.create(None, 0, "For tests")


@call("initial_tokens.list")
async def _(w: World) -> Call:
    await w.store.initial_tokens.create(None, 0)
    return lambda: w.store.initial_tokens.list()


@call("initial_tokens.revoke")
async def _(w: World) -> Call:
    made, _token = await w.store.initial_tokens.create(None, 0)
    return lambda: w.store.initial_tokens.revoke(made.id)


@call("limits.register_client", "take_networks", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.register_client("192.0.2.7")
