"""Calls about tokens, and about the apps and APIs that ask."""

from __future__ import annotations

from math import inf

from store.crypto.seal import new_id
from store.oauth.client_assertions import Proof
from store.oauth.portions import Allotment
from store.oauth.resources import MCP
from store.results import Caller, Window
from tests.support.calls.apis import api_of, registered
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World

ISSUER = "https://id.example"


@call("introspection.by_app", "introspect_token")
async def _(w: World) -> Call:
    access = (await w.tokens()).access_token
    return lambda: w.store.introspection.by_app(w.app, access, ISSUER)


@call("introspection.by_api", "introspect_token")
async def _(w: World) -> Call:
    return lambda: w.store.introspection.by_api(api_of(w), "lk_at_invented", ISSUER)


@call("app_tokens.issue", "issue_app_token")
async def _(w: World) -> Call:
    api = await registered(w)
    app = await w.store.apps.update(w.app.client_id, api_scopes=(f"{api}/orders",))
    # A portion in hand, so that the call takes none in the background.
    windows = w.store.app_tokens.windows
    windows.allotments[app.client_id] = Allotment(windows.group.limit, left=100, remaining=600, ends=inf)
    return lambda: w.store.app_tokens.issue(app, api, (), ISSUER)


@call("mcp_messages.admit", "check_token")
async def _(w: World) -> Call:
    tokens = await w.store.tokens.mint(w.user, w.app, ("profile",), api=MCP)
    token = w.store.tokens.open_access(tokens.access_token)
    assert token is not None
    caller = Caller.of(token, w.app.scopes)._replace(resource=MCP)
    return lambda: w.store.mcp_messages.admit(caller, "profile")


@call("introspection_windows.take", "take_portion")
async def _(w: World) -> Call:
    # A process that knows of no room asks the store before it admits a call.
    windows = w.store.introspection_windows
    windows.allotments[w.app.client_id] = Allotment(limit=windows.group.limit, remaining=0)
    return lambda: windows.take(w.app.client_id)


@call("client_windows.take", "take_portion")
async def _(w: World) -> Call:
    windows = w.store.client_windows
    windows.allotments[w.app.client_id] = Allotment(limit=windows.group.limit, remaining=0)
    return lambda: windows.take(w.app.client_id)


@call("limits.public_client", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.public_client(w.app.client_id, "192.0.2.1")


@call("client_assertions.use", "use_assertion")
async def _(w: World) -> Call:
    return lambda: w.store.client_assertions.use(w.app.client_id, Proof(new_id(), 60_000))


@call("pushed.push", "push_request")
async def _(w: World) -> Call:
    return lambda: w.store.pushed.push(w.app.client_id, "scope=profile", Window(600, 599, 0))


@call("pushed.open", "open_pushed")
async def _(w: World) -> Call:
    request_uri = await w.store.pushed.push(w.app.client_id, "scope=profile", Window(600, 599, 0))
    pushed = w.store.pushed.id_of(w.app.client_id, request_uri)
    return lambda: w.store.pushed.open(w.app.client_id, pushed, new_id())


@call("pushed.end", "end_pushed")
async def _(w: World) -> Call:
    request_uri = await w.store.pushed.push(w.app.client_id, "scope=profile", Window(600, 599, 0))
    pushed = w.store.pushed.id_of(w.app.client_id, request_uri)
    return lambda: w.store.pushed.end(w.app.client_id, pushed)


@call("pushed.reopen", "reopen_pushed")
async def _(w: World) -> Call:
    request_uri = await w.store.pushed.push(w.app.client_id, "scope=profile", Window(600, 599, 0))
    pushed = w.store.pushed.id_of(w.app.client_id, request_uri)
    await w.store.pushed.end(w.app.client_id, pushed, 60_000)
    return lambda: w.store.pushed.reopen(w.app.client_id, pushed)
