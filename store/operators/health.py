"""The state of the store, for operators."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, ResponseError

from store import keys
from store.crypto.keyring import Keys
from store.crypto.signing_rows import Phase
from store.crypto.signing_store import SigningStore
from store.engine.cluster import Cluster
from store.engine.memory import Room, room_of
from store.errors import wrapped
from store.keystate import KeyState
from store.moments import at, timestamp
from store.operators.memory_sample import MemorySample

OLD_KEY_DAYS: Final = 365
"""Days after which a key should be replaced."""
OLD_COPY_DAYS: Final = 7
"""Days after which a snapshot should be made again."""
DAY_MS: Final = 86_400_000


class Replica(NamedTuple):
    """A replica: how many bytes of the primary's changes it lacks, and how many seconds ago it last said so."""

    address: str
    state: str
    behind: int
    seen: int

    def shown(self) -> dict[str, Any]:
        """The replica, by its public names."""
        return {"address": self.address, "state": self.state, "behindBytes": self.behind, "seenSecondsAgo": self.seen}


class Saved(NamedTuple):
    """What the store says of its files. `snapshot_at`: when it last finished one (LASTSAVE, epoch ms), 0 for never
    since it started; `log`: whether it keeps an append-only log; `failing`: whether the last write of either failed."""

    snapshot_at: int
    log: bool
    failing: bool

    def shown(self) -> dict[str, Any]:
        """The state of the files, by public names."""
        made = timestamp(at(self.snapshot_at)) if self.snapshot_at else None
        return {"snapshotAt": made, "appendOnlyLog": self.log, "failing": self.failing}


class KeyAges(NamedTuple):
    """Since when the secret key that seals is known, and since when the oldest key that signs does (epoch ms, 0 if that
    is not known), at the store's time `now`."""

    now: int
    secret: int
    signing: int

    @property
    def old_secret(self) -> bool:
        """Whether the secret key should be replaced."""
        return self._old(self.secret)

    @property
    def old_signing(self) -> bool:
        """Whether a key that signs should be replaced."""
        return self._old(self.signing)

    def _old(self, since: int) -> bool:
        return since > 0 and self.now - since > OLD_KEY_DAYS * DAY_MS

    def shown(self) -> dict[str, Any]:
        """The ages, by public names."""
        return {
            "secretSince": timestamp(at(self.secret)) if self.secret else None,
            "signingSince": timestamp(at(self.signing)) if self.signing else None,
            "replaceSecret": self.old_secret,
            "replaceSigning": self.old_signing,
        }


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
    lagging: tuple[Replica, ...] = ()
    saved: Saved | None = None

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
            "replication": [one.shown() for one in self.lagging],
            "saved": self.saved.shown() if self.saved else None,
        }


class HealthReader:
    """Reads the state of the store."""

    def __init__(self, client: Redis, keys_in_use: Keys, state: KeyState, signing: SigningStore) -> None:
        self._client = client
        self._keys = keys_in_use
        self._state = state
        self._signing = signing
        self.sample = MemorySample(client)

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
            tuple(one for node in found for one in replicas_in(node)),
            saved_in(found),
        )

    async def ages(self) -> KeyAges:
        """The ages of the keys. Raises StoreUnavailable, StoreError."""
        since = await self._state.since()
        listed = await self._signing.listed()
        with wrapped():
            seconds, _ = await self._client.time()
        signs = [one.row.first_use for one in listed if one.phase is Phase.SIGNING]
        return KeyAges(int(seconds) * 1000, since.get(self._keys.ring.front.id, 0), min(signs, default=0))

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
        persistence: Any = await self._client.info("persistence", **where)
        return {**server, **replication, **persistence}


def replicas_in(node: dict[str, Any]) -> list[Replica]:
    """The replicas that a primary names in its answer to INFO."""
    offset, found = int(node.get("master_repl_offset", 0)), []
    for number in range(int(node.get("connected_slaves", 0))):
        one = node.get(f"slave{number}")
        if isinstance(one, dict):
            address, behind = f"{one.get('ip')}:{one.get('port')}", offset - int(one.get("offset", 0))
            found.append(Replica(address, str(one.get("state")), max(0, behind), int(one.get("lag", 0))))
    return found


def saved_in(nodes: list[dict[str, Any]]) -> Saved | None:
    """What the primaries say of their files: the oldest snapshot, and a log only if all have one. None if they say
    nothing."""
    told = [one for one in nodes if "rdb_last_save_time" in one]
    if not told:
        return None
    # Before its first snapshot, an engine says when it started.
    made = [int(one["rdb_last_save_time"]) * 1000 if int(one.get("rdb_saves", 1)) else 0 for one in told]
    words = ("rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status")
    failing = any(one.get(name, "ok") != "ok" for one in told for name in words)
    return Saved(min(made), all(int(one.get("aof_enabled", 0)) for one in told), failing)
