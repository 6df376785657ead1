"""Calls about delegated tokens."""

from __future__ import annotations

from store.oauth.token_exchange import WantedToken
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


@call("token_exchange.exchange", "exchange_token")
async def _(w: World) -> Call:
    subject = await w.store.token_exchange.subject(w.app, (await w.tokens()).access_token, "")
    return lambda: w.store.token_exchange.exchange(w.app, subject, WantedToken(name="A helper"), None, "")


@call("token_exchange.subject")
async def _(w: World) -> Call:
    token = (await w.tokens()).access_token
    return lambda: w.store.token_exchange.subject(w.app, token, "")
