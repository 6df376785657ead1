"""Deletions of apps that broke off, and names of apps that are gone: one process looks for them every ten minutes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from redis.asyncio import Redis

from store import keys
from store.apps import Apps
from store.beside import beside
from store.errors import StoreError, wrapped
from store.lifetimes import APP_BEGUN, APPS_SWEEP

log = logging.getLogger("latchkey.apps")

ASK_SECONDS = 60.0
"""How often a process asks whether it is time for a sweep."""


class AppSweep:
    """The background task of a server that ends what others left open."""

    def __init__(self, client: Redis, apps: Apps) -> None:
        self._client = client
        self._apps = apps
        self.asks = ASK_SECONDS

    async def sweep(self) -> None:
        """Finishes deletions that are 10 minutes old, unless a process began a sweep in the last 10 minutes. Raises
        StoreUnavailable."""
        with wrapped():
            first = await self._client.set(keys.APPS_SWEPT, "1", nx=True, px=APPS_SWEEP)
        if first:
            # A younger one may be under way in another process.
            await self._apps.finish_deletions(APP_BEGUN)

    def sweeping(self) -> AbstractAsyncContextManager[None]:
        """Finishes every deletion that is open at the start, then sweeps beside the block."""
        return beside(self._keep_sweeping())

    async def _keep_sweeping(self) -> None:
        work: Callable[[], Awaitable[None]] = self._apps.finish_deletions
        while True:
            try:
                await work()
                work = self.sweep
            except StoreError as error:
                log.warning("the sweep of deleted apps waits: %s", error)
            except Exception:  # whatever is wrong with one app, the process serves on
                log.exception("the sweep of deleted apps waits")
            await asyncio.sleep(self.asks)
