"""A replicated set that sentinels watch: redis-py asks them for the primary whenever a connection is opened."""

from __future__ import annotations

from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

from store.client import Client, Pool, connection_options, no_retry, pool_options
from store.urls import SENTINEL_LOGIN, SENTINEL_PORT, hosts_of


def connect_sentinel(url: str, timeout: float, max_connections: int) -> Client:
    """A client of the primary that the sentinels in `url` name; see `connect`. Raises ValueError, TypeError."""
    sentinels, options, service = hosts_of(url, SENTINEL_PORT)
    if not service:
        raise ValueError("the name of the service is missing")
    login = {name.removeprefix("sentinel_"): options.pop(name) for name in SENTINEL_LOGIN if name in options}
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    # They are asked one after the other, and all that, with the primary's own answer, must fit into one time limit.
    share = timeout / (len(sentinels) + 1)
    sentinel_kwargs = {**connection_options(share), "retry": no_retry(), **tls, **login}
    manager = Sentinel(sentinels, sentinel_kwargs=sentinel_kwargs)  # type: ignore[no-untyped-call]
    pool_kwargs = {**pool_options(timeout, max_connections), **options}
    pool = _PrimaryPool(service, manager, **pool_kwargs)  # type: ignore[no-untyped-call]
    return Client.on(pool, timeout)


class _PrimaryPool(SentinelConnectionPool, Pool):
    """Connections to whatever server is the primary when they are opened."""

    async def aclose(self) -> None:
        """Closes the connections to the sentinels too."""
        await super().aclose()
        await self.sentinel_manager.aclose()
