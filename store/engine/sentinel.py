"""A replicated set under sentinels: redis-py asks them for the primary whenever it opens a connection."""

from __future__ import annotations

import asyncio
import logging
from copy import copy
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

from store.engine.client import Client, Pool, connection_options, no_retry, pool_options
from store.engine.redis_private import cut, in_use
from store.engine.urls import SENTINEL_LOGIN, SENTINEL_PORT, hosts_of

log = logging.getLogger("latchkey.store")

SWITCH: Final = "+switch-master"
"""The channel where a sentinel announces a new primary."""

LOOK_SECONDS: Final = 1.0
"""The longest interval, in seconds, between two questions to the sentinel for the primary."""


def connect_sentinel(url: str, timeout: float, max_connections: int) -> Client:
    """A client of the primary that the sentinels in `url` name; see `connect`. Raises ValueError, TypeError."""
    sentinels, options, service = hosts_of(url, SENTINEL_PORT)
    if not service:
        raise ValueError("the name of the service is missing")
    login = {name.removeprefix("sentinel_"): options.pop(name) for name in SENTINEL_LOGIN if name in options}
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    # Sentinels are asked in turn. All their answers and the primary's must fit into one time limit.
    share = timeout / (len(sentinels) + 1)
    asking = {**connection_options(share), "retry": no_retry(), **tls, **login}
    kept = {**pool_options(timeout, max_connections), **options}
    manager = Sentinels(sentinels, sentinel_kwargs=asking)  # type: ignore[no-untyped-call]  # its base has no types
    pool = _PrimaryPool(service, manager, **kept)  # type: ignore[no-untyped-call]  # nor has the base of this
    return _PrimaryClient.on(pool, timeout)


class Sentinels(Sentinel):
    """The sentinels, asked in their order."""

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Host and port of the primary. Raises MasterNotFoundError.

        redis-py notes the index of a sentinel before it waits for the answer, and uses that index afterwards to move it
        to the front. With two calls at once, this drops a sentinel for good. Here each call has its own list.
        """
        own = copy(self)
        own.sentinels = list(self.sentinels)
        found: tuple[str, int] = await super(Sentinels, own).discover_master(service_name)
        self.sentinels.sort(key=lambda one: one is not own.sentinels[0])
        return found


class _PrimaryPool(SentinelConnectionPool, Pool):
    """Connections to the server that is the primary when they open."""

    async def aclose(self) -> None:
        """Closes the connections to the sentinels too."""
        await super().aclose()
        await self.sentinel_manager.aclose()


class _PrimaryClient(Client):
    """A client that leaves a server as soon as a sentinel reports another primary. Until the old primary becomes a
    replica, which takes some ten seconds after a manual failover, it would acknowledge writes that are then lost."""

    _pool: Any
    _following: asyncio.Task[None]

    @classmethod
    def on(cls, pool: Any, timeout: float) -> _PrimaryClient:
        """A client that owns the pool. Raises TypeError for unknown options."""
        client = super().on(pool, timeout)
        assert isinstance(client, _PrimaryClient)
        client._pool = pool
        client._following = asyncio.ensure_future(client._follow())
        return client

    async def _follow(self) -> None:
        """Listens at the sentinel that redis-py asks first; runs until cancelled."""
        sentinels: list[Redis] = self._pool.sentinel_manager.sentinels
        while True:
            sentinel = sentinels[0]
            try:
                async with sentinel.pubsub() as channel:
                    await channel.subscribe(SWITCH)
                    while sentinel is sentinels[0]:
                        await self._leave_if_replaced()
                        await channel.get_message(ignore_subscribe_messages=True, timeout=LOOK_SECONDS)
            except Exception as error:  # this sentinel, or every one, is unavailable: the next may answer
                log.debug("a sentinel cannot be asked: %s", type(error).__name__)
                if sentinel is sentinels[0]:
                    sentinels.append(sentinels.pop(0))
                await asyncio.sleep(LOOK_SECONDS)

    async def _leave_if_replaced(self) -> None:
        primary = await self._pool.get_master_address()  # cuts idle connections to another server
        for pipelined in self.pipelined_connections:
            if pipelined.is_open and pipelined.server != primary:
                pipelined.drop("another server is the primary")
        for connection in in_use(self._pool):  # a subscription, above all
            if connection.is_connected and (connection.host, connection.port) != primary:
                cut(connection)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Stops listening too."""
        # One cancellation may not be enough: the driver swallows one that arrives while it connects.
        while not self._following.done():
            self._following.cancel()
            await asyncio.wait([self._following], timeout=0.05)
        await super().aclose(close_connection_pool)
