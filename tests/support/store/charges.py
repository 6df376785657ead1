"""Credits spent in tests: an app's holds and charges."""

from __future__ import annotations

from store import keys
from store.apps.registration import Registration
from store.credits.calls import CallEstimate, Hold
from store.credits.prices import Price, TokenCounts
from store.lifetimes import AI
from store.results import Caller
from store.wiring import Store

SCOPES = ("credits:spend",)
DOLLAR = 1_000_000
# A dollar per million tokens, so a token costs a micro-dollar.
PRICE = Price("v1", DOLLAR, DOLLAR)


async def hold(store: Store, user: str, app: Registration, amount: int) -> Hold:
    """A hold of this many micro-dollars, whatever the window says."""
    tokens = await store.tokens.mint(user, app, SCOPES)
    token = store.tokens.open_access(tokens.access_token)
    assert token is not None
    await store.client.delete(keys.limit(user, AI.name))
    estimate = CallEstimate("echo-1", PRICE, 1, amount - 1, 1, 60_000)
    held = await store.calls.hold(Caller.of(token, SCOPES), "credits:spend", estimate)
    assert isinstance(held, Hold)
    assert held.amount == amount
    return held


async def charge(store: Store, user: str, app: Registration, amount: int, searches: int = 0) -> None:
    """A ledger entry over this many micro-dollars: one token in, the others out, and free web searches."""
    tokens = TokenCounts(1, amount - 1, web_search=searches)
    charged = await store.calls.settle(await hold(store, user, app, amount), tokens)
    assert charged is not None
    assert charged.charged == amount
