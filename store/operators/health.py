"""The state of the store, for operators."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, ResponseError

from store import keys
from store.engine.cluster import Cluster
from store.engine.memory import Room, room_of
from store.errors import wrapped


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """`engine` and `version` are empty if the store does not say. `nodes`: primaries; `replicas`: those that are
    connected to them. `answered_ms`: how long one command took. `webhooks_waiting`: deliveries that are due, now or
    later."""

    engine: str
    version: str
    nodes: int
    replicas: int
    uptime_seconds: int
    answered_ms: float
    room: Room | None
    webhooks_waiting: int

    def shown(self) -> dict[str, Any]:
        """The figures of the store, by their public names."""
        return {
            "engine": self.engine,
            "version": self.version,
            "nodes": self.nodes,
            "replicas": self.replicas,
            "uptimeSeconds": self.uptime_seconds,
            "answeredInMs": self.answered_ms,
            "usedBytes": self.room.used if self.room else None,
            "limitBytes": self.room.limit or None if self.room else None,
        }


class HealthReader:
    """Reads the state of the store."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def read(self) -> StoreHealth:
        """The state now. Raises StoreUnavailable."""
        began = time.perf_counter()
        with wrapped():
            waiting: int = await self._client.zcard(keys.DELIVERIES_DUE)
        answered = round((time.perf_counter() - began) * 1000, 3)
        found = await self._nodes()
        first = found[0] if found else {}
        return StoreHealth(
            str(first.get("server_name") or ("redis" if "redis_version" in first else "")),
            str(first.get("valkey_version") or first.get("redis_version", "")),
            max(1, len(found)),
            sum(int(one.get("connected_slaves", 0)) for one in found),
            int(first.get("uptime_in_seconds", 0)),
            answered,
            await room_of(self._client),
            waiting,
        )

    async def _nodes(self) -> list[dict[str, Any]]:
        """The answers of the primaries about themselves; empty if they say nothing."""
        with wrapped():
            try:
                if not isinstance(self._client, Cluster):
                    return [await self._info()]
                await self._client.initialize()
                return [await self._info(target_nodes=node) for node in self._client.get_primaries()]
            except (ResponseError, RedisClusterException):
                return []

    async def _info(self, **where: Any) -> dict[str, Any]:
        server: Any = await self._client.info("server", **where)
        replication: Any = await self._client.info("replication", **where)
        return {**server, **replication}
