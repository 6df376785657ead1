"""A store's memory: its limit, its use, and the writes refused before it is full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, ResponseError

from store.engine.cluster import Cluster
from store.errors import StoreFull, wrapped

LEAST_RESERVE: Final = 16 * 2**20
MOST_RESERVE: Final = 2**30
_CGROUP: Final = Path("/sys/fs/cgroup")
DOCUMENTS_PART: Final = 0.8
"""The part of the limit at which documents, pictures and apps stop growing: the rest is for everything else."""
PORTION: Final = 64
"""The divisor of the limit: a process that has written this part of it asks the store again."""
ROW: Final = 512
"""About how many bytes a new document takes in addition to its content."""


class Room(NamedTuple):
    """A store's memory in bytes: `used`, and the `limit` at which it refuses writes that add to it (0: none)."""

    used: int
    limit: int

    @property
    def part(self) -> float:
        """How full the store is: 1 is full."""
        return self.used / self.limit if self.limit else 0.0


class Headroom:
    """Whether the store has room for documents, pictures and new apps, as this process knows it.

    `note` takes the store's figures, `grew` the bytes that this process has written since. `wanted` is set as soon as
    these are a 64th of the limit, so each of the other processes can exceed the line by no more than that.
    """

    def __init__(self) -> None:
        self.seen = Room(0, 0)
        self.wanted = asyncio.Event()
        self._grown = 0

    @property
    def low(self) -> bool:
        """Whether the remaining room is reserved for everything else. False for a store without a limit."""
        return self.seen.limit > 0 and self.seen.used + self._grown >= self.seen.limit * DOCUMENTS_PART

    def grew(self, size: int) -> None:
        """Adds the bytes that this process has written; freed bytes show with the next `note`."""
        self._grown += max(0, size)
        if 0 < self.seen.limit < self._grown * PORTION:
            self.wanted.set()

    def note(self, room: Room) -> None:
        """Takes the figures that the store reports."""
        self.seen, self._grown = room, 0

    def require(self) -> None:
        """Raises StoreFull if there is no room."""
        if self.low:
            raise StoreFull("store: what remains is kept for signing in to apps")


def limit_of(memory: int) -> int:
    """The `maxmemory` of a store that may take `memory` bytes: the difference is the reserve."""
    return memory - min(MOST_RESERVE, max(LEAST_RESERVE, memory // 16))


def default_memory(cgroups: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> int:
    """Three quarters of the memory of this machine or of this process's control group, in bytes."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_cgroup_limits(cgroups, own)]) * 3 // 4


def _cgroup_limits(cgroups: Path, own: Path) -> Iterator[int]:
    """The limits of this process's group and the groups above it; in version 1, of the memory hierarchy."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base, name = (cgroups, "memory.max") if not controllers else (cgroups / "memory", "memory.limit_in_bytes")
        group = Path(path.strip("/"))
        for above in (group, *group.parents):
            try:
                value = (base / above / name).read_text().strip()
            except OSError:
                continue  # the root has none, and a container may not see the groups above its own
            if value.isdigit():
                yield int(value)


async def room_of(client: Redis) -> Room | None:
    """The room in the store; for a cluster, in its fullest primary. None if the store does not say. Raises
    StoreUnavailable."""
    with wrapped():
        try:
            if not isinstance(client, Cluster):
                return _room(await client.info("memory"))
            await client.initialize()
            found = [_room(await client.info("memory", target_nodes=node)) for node in client.get_primaries()]
        except (ResponseError, RedisClusterException):
            return None
    return max((one for one in found if one), key=lambda one: one.part, default=None)


def _room(info: dict[str, Any]) -> Room | None:
    if "used_memory" not in info:
        return None
    # The engine does not count buffers of replicas and of the append-only file towards its limit.
    used = int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0))
    return Room(used, int(info.get("maxmemory", 0)))
