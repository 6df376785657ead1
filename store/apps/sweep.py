"""The sweep of apps: interrupted deletions, names of apps that are gone, domains to check again.

One process sweeps every ten minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from itertools import islice

from redis.asyncio import Redis

from store import keys
from store.apps.apps import Apps
from store.apps.domains import FILE_BYTES, PATH, File, is_due, rechecked
from store.apps.registration import Registration
from store.engine.background import background, working
from store.errors import StoreError, wrapped
from store.lifetimes import APP_BEGUN, APPS_SWEEP
from store.refused import Refused

log = logging.getLogger("latchkey.apps")
Fetch = Callable[[str, int], Awaitable[File]]

ASK_SECONDS = 60.0
"""The pause before a process checks again whether a sweep is due."""
MOST_DOMAINS, DOMAINS_AT_ONCE = 200, 4
"""The most domains that a sweep checks, in all and at once. At 10 seconds each they take less time than the interval of
sweeps, and they leave places of the fetcher to owners who press the button."""


class AppSweep:
    """The background task of a server that sweeps. `fetch` takes a URL and the most bytes, and returns the file;
    without `fetch` no domain is checked. `end_idle` deletes apps that registered themselves and are no longer used."""

    def __init__(self, client: Redis, apps: Apps) -> None:
        self.fetch: Fetch | None = None
        self.end_idle: Callable[[], Awaitable[None]] | None = None
        self._client = client
        self._apps = apps
        self.asks = ASK_SECONDS

    async def sweep(self) -> None:
        """Finishes deletions that are 10 minutes old, ends idle apps and checks the domains that are due, unless a
        process began a sweep in the last 10 minutes. Raises StoreUnavailable."""
        with wrapped():
            first = await self._client.set(keys.APPS_SWEPT, "1", nx=True, px=APPS_SWEEP)
        if first:
            with working("sweep apps"):
                await self._sweep()

    async def _sweep(self) -> None:
        # A younger deletion may be in progress in another process.
        await self._apps.finish_deletions(APP_BEGUN)
        if self.end_idle:
            await self.end_idle()
        if self.fetch:
            await self._check_domains(self.fetch)

    async def _check_domains(self, fetch: Fetch) -> None:
        now = await self._apps.now()
        due = sorted(
            (app for app in await self._apps.list(themselves=False) if is_due(app, now)),
            key=lambda app: app.domain_checked,
        )
        rest = iter(due[:MOST_DOMAINS])
        while some := tuple(islice(rest, DOMAINS_AT_ONCE)):
            await asyncio.gather(*(self._check_domain(app, fetch) for app in some))

    async def _check_domain(self, app: Registration, fetch: Fetch) -> None:
        file = await fetch(f"https://{app.domain}{PATH}", FILE_BYTES)
        now = await self._apps.now()
        try:
            checked = await self._apps.change(app.client_id, lambda present: rechecked(present, app, file, now))
        except Refused:
            return  # deleted meanwhile
        if not checked.domain:
            log.info("app %s no longer proves %s: %s", app.client_id, app.domain, file.error or "another file")

    def sweeping(self) -> AbstractAsyncContextManager[None]:
        """Finishes every interrupted deletion first, and sweeps in the background of the block."""
        return background(self._keep_sweeping())

    async def _keep_sweeping(self) -> None:
        work: Callable[[], Awaitable[None]] = self._apps.finish_deletions
        while True:
            try:
                await work()
                work = self.sweep
            except StoreError as error:
                log.warning("sweep of deleted apps postponed: %s", error)
            except Exception:  # an error with one app must not stop the process
                log.exception("sweep of deleted apps postponed")
            await asyncio.sleep(self.asks)
