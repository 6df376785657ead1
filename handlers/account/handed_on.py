"""What an app has handed on (RFC 8693), for the page of connected apps."""

from __future__ import annotations

from types import SimpleNamespace

from handlers.core.scopes import allowed, api_words
from handlers.core.words.wording import Wording
from store.apps.apis import Apis
from store.oauth.exchange.handed_on import HandedOn
from store.oauth.grants import Grant

MOST_ROWS = 250
"""Delegated tokens on a page, of all apps together: each costs the server some 0.2 ms."""


async def handed_on_of(apis: Apis, grant: Grant, wording: Wording, most: int) -> list[SimpleNamespace]:
    """The first `most` delegated tokens of an app, each after the one that it comes from; `depth` counts from 1."""
    below: dict[str, list[HandedOn]] = {}
    for one in grant.handed_on:
        below.setdefault(one.above, []).append(one)
    found: list[SimpleNamespace] = []
    waiting = [(1, bool(grant.budgets), one) for one in reversed(below.get("", []))]
    while waiting and len(found) < most:
        depth, budgeted, one = waiting.pop()
        budgeted = budgeted or one.limit is not None
        waiting += [(depth + 1, budgeted, child) for child in reversed(below.get(one.id, []))]
        api = await apis.active(one.actor) if one.actor != grant.client else None
        # The person may have withdrawn scopes since.
        scopes = [scope for scope in one.scopes if scope in grant.scopes]
        words = await api_words(apis, scopes)
        limit = None if budgeted else grant.spend_limit
        found.append(
            SimpleNamespace(
                id=one.id,
                depth=depth,
                name=one.name,
                api=api.name if api else "",
                scopes=allowed(scopes, limit, wording, words, budgeted=budgeted),
                spends="credits:spend" in scopes,
                spent=one.spent,
                limit=one.limit,
                ends_at=one.ends_at,
                heads=one.id in below,
            )
        )
    return found
