"""What an app has handed on (RFC 8693), for the page of connected apps."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import NamedTuple

from handlers.core.scopes import allowed, api_words
from handlers.core.words.wording import Wording
from store.apps.apis import Apis
from store.oauth.exchange.handed_on import HandedOn
from store.oauth.grants import Grant

ROWS = 12
"""Delegated tokens on a page: of the app that the address names, otherwise of all apps together. One takes up to 0.8 KB
of the page."""


class Placed(NamedTuple):
    """A delegated token in its tree. `depth` counts from 1; `budgeted`: a budget bounds it; `heads`: others come from
    it."""

    depth: int
    budgeted: bool
    one: HandedOn
    heads: bool


def in_tree(grant: Grant) -> list[Placed]:
    """The delegated tokens of an app, each after the one that it comes from."""
    below: dict[str, list[HandedOn]] = {}
    for one in grant.handed_on:
        below.setdefault(one.above, []).append(one)
    found: list[Placed] = []
    waiting = [(1, bool(grant.budgets), one) for one in reversed(below.get("", []))]
    while waiting:
        depth, budgeted, one = waiting.pop()
        budgeted = budgeted or one.limit is not None
        waiting += [(depth + 1, budgeted, child) for child in reversed(below.get(one.id, []))]
        found.append(Placed(depth, budgeted, one, one.id in below))
    return found


async def shown_helpers(apis: Apis, grant: Grant, wording: Wording, placed: Iterable[Placed]) -> list[SimpleNamespace]:
    """Delegated tokens of an app as the page shows them."""
    found: list[SimpleNamespace] = []
    for depth, budgeted, one, heads in placed:
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
                heads=heads,
            )
        )
    return found
