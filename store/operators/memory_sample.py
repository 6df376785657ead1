"""What fills the store, by kind of key: an estimate from a sample, made in the background."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, ResponseError

from store.engine.cluster import Cluster
from store.errors import wrapped
from store.parsed_keys import read

log = logging.getLogger("latchkey.store")

SAMPLED: Final = 2000
"""Keys of a sample. Each takes two small commands."""
AT_ONCE: Final = 50
LASTS: Final = 600.0
"""Seconds after which a reader causes a new sample."""
OTHER: Final = "other"


class KindShare(NamedTuple):
    """About how many keys of a kind there are, and how many bytes they take."""

    kind: str
    keys: int
    bytes: int


class MemoryEstimate(NamedTuple):
    """`at`: when the sample was made (epoch ms); `sampled` of `keys` keys; the largest kinds first."""

    at: int
    sampled: int
    keys: int
    kinds: tuple[KindShare, ...]


class MemorySample:
    """The last estimate of this process. It costs nothing until somebody looks."""

    def __init__(self, client: Redis, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._clock = clock
        self._began = -LASTS
        self.last: MemoryEstimate | None = None

    def due(self) -> bool:
        """Whether a reader should cause a new sample; True once in ten minutes, for the first who asks."""
        if self._clock() - self._began < LASTS:
            return False
        self._began = self._clock()
        return True

    async def take(self) -> None:
        """Makes a sample. Does nothing if the store has no such commands. Raises StoreUnavailable."""
        with wrapped():
            try:
                self.last = await self._sampled()
            except (ResponseError, RedisClusterException) as error:
                log.info("the store does not say what fills it: %s", error)

    async def _sampled(self) -> MemoryEstimate:
        sizes = await self._sizes()
        total = sum(size for _, size in sizes)
        number: Counter[str] = Counter()
        weight: Counter[str] = Counter()
        sampled = 0
        for where, size in sizes:
            left = -(-SAMPLED * size // total) if total else 0
            while left > 0:
                some = min(left, AT_ONCE)
                left -= some
                found = await asyncio.gather(*(self._client.execute_command("RANDOMKEY", **where) for _ in range(some)))
                names = [name for name in found if name is not None]
                weights = await asyncio.gather(*(self._client.memory_usage(name) for name in names))
                for name, bytes_of_key in zip(names, weights, strict=True):
                    if bytes_of_key is None:
                        continue  # it ended in between
                    kind = kind_of(name)
                    sampled += 1
                    number[kind] += 1
                    weight[kind] += int(bytes_of_key)
        scale = total / sampled if sampled else 0.0
        shares = (KindShare(kind, round(number[kind] * scale), round(weight[kind] * scale)) for kind in number)
        seconds, micros = await self._client.time()
        ranked = tuple(sorted(shares, key=lambda one: -one.bytes))
        return MemoryEstimate(int(seconds) * 1000 + int(micros) // 1000, sampled, total, ranked)

    async def _sizes(self) -> list[tuple[dict[str, Any], int]]:
        """Each primary, as arguments of a command for it, with the number of its keys."""
        if not isinstance(self._client, Cluster):
            return [({}, int(await self._client.dbsize()))]
        await self._client.initialize()
        nodes = self._client.get_primaries()
        return [({"target_nodes": node}, int(await self._client.dbsize(target_nodes=node))) for node in nodes]


def kind_of(name: bytes) -> str:
    """The kind of a key as `store/parsed_keys.py` names it."""
    found = read(name.decode("utf-8", "replace"))
    return found.kind if found else OTHER
