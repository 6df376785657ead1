"""What the security log has in the store."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis

from store.engine.restored import every_key


async def logs(client: Redis) -> list[bytes]:
    """The keys of the logs of all days, streams and shards."""
    found = [key async for some in every_key(client) for key in map(_raw, some)]
    return sorted([key for key in found if key.startswith(b"{audit:") and await client.type(key) == b"stream"])


async def logged(client: Redis) -> list[Any]:
    """Every entry of the security log."""
    return [entry for log in await logs(client) for entry in await client.xrange(log) or ()]


def _raw(key: str | bytes) -> bytes:
    return key if isinstance(key, bytes) else key.encode()
