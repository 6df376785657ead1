"""Facts about each call: how to prepare it, and the scripts that it runs."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from store.wiring import Store
from tests.support.store.world import World

Call = Callable[[], Awaitable[Any]]
Prepare = Callable[[World], Awaitable[Call]]

# These are not store calls. `follow` never returns: tests/apps/test_app_cache.py tests it. `judge` does not use the
# store, and `fresh` uses it once a minute.
_NOT_NOUNS = {"client", "keys", "hasher", "scripts", "sealer", "checks"}
_APART = {"announcements.follow", "people.judge", "hash_prices.fresh"}

CALLS: dict[str, Prepared] = {}


@dataclass(frozen=True, slots=True)
class Prepared:
    """The preparation of one call of a method, and the scripts that the call runs."""

    method: str
    scripts: tuple[str, ...]
    prepare: Prepare


def methods_of(store: Store) -> set[str]:
    """The public asynchronous methods of every noun, as `noun.method`."""
    store.wire_all()
    return {
        f"{noun}.{name}"
        for noun, owner in vars(store).items()
        if noun not in _NOT_NOUNS and not noun.startswith("_")
        for name, method in inspect.getmembers(type(owner))
        if not name.startswith("_") and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))
    } - _APART


def call(method: str, *scripts: str) -> Callable[[Prepare], Prepare]:
    """Registers the preparation of a call of `method`, which runs `scripts`."""

    def enter(prepare: Prepare) -> Prepare:
        CALLS[method] = Prepared(method, scripts, prepare)
        return prepare

    return enter


async def drained(found: AsyncIterator[Any]) -> list[Any]:
    """All items of an iterator."""
    return [item async for item in found]
