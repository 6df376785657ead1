"""Calls about delegated tokens."""

from __future__ import annotations

from store.oauth.exchange.token_exchange import WantedToken
from tests.support.calls.apis import api_of
from tests.support.calls.prepared import Call, call
from tests.support.store.world import VISITOR, World


@call("token_exchange.exchange", "exchange_token")
async def _(w: World) -> Call:
    subject = await w.store.token_exchange.subject(w.app, (await w.tokens()).access_token, "")
    return lambda: w.store.token_exchange.exchange(w.app, subject, WantedToken(name="A helper"), None, "")


@call("token_exchange.listed", "list_delegated")
async def _(w: World) -> Call:
    return lambda: w.store.token_exchange.listed(w.user, w.app.client_id)


@call("token_exchange.subject")
async def _(w: World) -> Call:
    token = (await w.tokens()).access_token
    w.store.apps.forget()
    return lambda: w.store.token_exchange.subject(api_of(w), token, "")


@call("grants.end_handed_on", "end_delegated")
async def _(w: World) -> Call:
    subject = await w.store.token_exchange.subject(w.app, (await w.tokens()).access_token, "")
    made = await w.store.token_exchange.exchange(w.app, subject, WantedToken(), None, "")
    one = w.caller(made.access_token).family
    return lambda: w.store.grants.end_handed_on(w.session, w.app.client_id, one, VISITOR)
