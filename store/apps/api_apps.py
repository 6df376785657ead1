"""Which apps registered scopes of an API: a list in the API's slot, which follows the registrations of apps.

An entry is written before the app's registration and removed after it. So after any interruption the list has the app,
and reading it drops an entry without the scopes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.apps.api_scopes import parse_qualified
from store.apps.registration import Registration
from store.errors import wrapped
from store.lifetimes import APP_BEGUN


class ListedApps(NamedTuple):
    """The newest entries of a list: client ids and times of entry (s); how many there are; the store's time (s)."""

    entries: tuple[tuple[str, int], ...]
    total: int
    now: int


def apis_of(app: Registration | None) -> frozenset[str]:
    """The client ids of the APIs whose scopes an app registered."""
    return frozenset(parse_qualified(scope).api for scope in app.api_scopes) if app else frozenset()


class ApiApps:
    """The lists. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def enter(self, app: str, apis: Iterable[str]) -> None:
        """Enters an app that is about to register scopes of these APIs."""
        for api in sorted(apis):
            with wrapped():
                now, _ = await self._client.time()
                await self._client.zadd(keys.api_apps(api), {app: now}, nx=True)

    async def leave(self, app: str, apis: Iterable[str]) -> None:
        """Removes an app that no longer has scopes of these APIs."""
        for api in sorted(apis):
            with wrapped():
                await self._client.zrem(keys.api_apps(api), app)

    async def newest(self, api: str, most: int) -> ListedApps:
        """The `most` newest apps of an API."""
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                batch.zrevrange(keys.api_apps(api), 0, most - 1, withscores=True)
                batch.zcard(keys.api_apps(api))
                found: list[Any] = await batch.execute()
            now, _ = await self._client.time()
        return ListedApps(tuple((app.decode(), int(since)) for app, since in found[0]), found[1], now)

    async def drop_stale(self, api: str, entry: tuple[str, int], now: int) -> None:
        """Removes an entry whose app has no scope of the API, unless it is younger than any registration takes."""
        if entry[1] * 1000 + APP_BEGUN < now * 1000:
            await self.leave(entry[0], [api])
