"""Calls about tokens, by the apps and APIs that ask."""

from __future__ import annotations

from store.oauth.portions import Allotment
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


@call("introspection.by_app", "introspect_token")
async def _(w: World) -> Call:
    access = (await w.tokens()).access_token
    return lambda: w.store.introspection.by_app(w.app, access)


@call("introspection.by_api", "introspect_token")
async def _(w: World) -> Call:
    return lambda: w.store.introspection.by_api("api_any", "lk_at_invented")


@call("introspection_windows.take", "take_portion")
async def _(w: World) -> Call:
    # A process that knows of no room asks the store before it admits a call.
    w.store.introspection_windows.allotments[w.app.client_id] = Allotment(remaining=0)
    return lambda: w.store.introspection_windows.take(w.app.client_id)
