"""A cluster: redis-py knows the nodes and the owners of slots; every command uses the connection of its node.

In redis-py's own client an unavailable node makes every next command wait until the slots are read again, and an ASKING
may use another connection than its command. Here a slow or unavailable node fails only the calls to its own slots, and
a background task reads the slots again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import AskError, ClusterDownError, MovedError, SlotNotCoveredError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from store.engine.client import connection_options, no_retry
from store.engine.pipeline import PipelinedConnection
from store.engine.redis_private import NodeCommands
from store.engine.replicas import AcknowledgedScripts, Wait, WaitingConnections
from store.engine.urls import hosts_of

log = logging.getLogger("latchkey.store")

PORT: Final = 6379
REFRESH_SECONDS: Final = 1.0
"""The shortest interval between two reads of the slots, in seconds."""

PAUSES: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Pauses in seconds before a command is sent again that did not run because its slot has moved or is moving. Most moves
of a slot take less than their sum."""


def connect_cluster(url: str, timeout: float, max_connections: int) -> Cluster:
    """A client of the cluster that the nodes in `url` belong to; see `connect`. Raises ValueError, TypeError."""
    hosts, options, path = hosts_of(url, PORT)
    if path:
        raise ValueError("a cluster has one database")
    return Cluster(hosts, timeout, max_connections=max_connections, **{**connection_options(timeout), **options})


class Cluster(NodeCommands):
    """redis-py's client of a cluster, with a pipelined connection to each node. `timeout` is in seconds."""

    def __init__(self, hosts: list[tuple[str, int]], timeout: float, **options: Any) -> None:
        self._hosts = hosts
        self._timeout = timeout
        self._pipelined: dict[str, PipelinedConnection] = {}
        self._waiting: dict[str, WaitingConnections] = {}
        self._wait: Wait | None = None
        self._turn = 0
        self._stale = False
        self._failed: str | None = None
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        super().__init__(
            startup_nodes=[ClusterNode(host, port) for host, port in hosts],
            # While a slot has no owner, the nodes themselves decide what they serve.
            require_full_coverage=False,
            retry=no_retry(),
            **options,
        )

    async def initialize(self, *args: Any, **options: Any) -> Cluster:
        """Reads the slots, unless they are known. Raises RedisClusterException, ConnectionError, TimeoutError."""
        tries = 0
        while True:
            try:
                await super().initialize(*args, **options)
                return self
            except (RedisConnectionError, RedisTimeoutError):
                # redis-py asks one node for the slots, and the first primary for its commands; that one may be away.
                primaries, tries = self.get_primaries(), tries + 1
                if tries >= len(primaries):
                    raise
                self.ask_last(primaries[0])

    @property
    def pipelined_connections(self) -> tuple[PipelinedConnection, ...]:
        """All pipelined connections of this client."""
        return (
            *self._pipelined.values(),
            *(pipelined for waiting in self._waiting.values() for pipelined in waiting.connections),
        )

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any:
        """The script's reply."""
        return await self._run(keys_and_args[0], "EVALSHA", sha, numkeys, *keys_and_args)

    async def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """The script's reply."""
        return await self._run(keys_and_args[0], "EVAL", script, numkeys, *keys_and_args)

    def acknowledged(self, wait: Wait) -> AcknowledgedScripts:
        """Runs scripts whose answers count only after replicas of their node have their writes."""
        self._wait = wait
        return AcknowledgedScripts(partial(self._run, waits=True))

    async def _run(self, key: str, *words: Any, waits: bool = False) -> Any:
        """A script, at the node that owns the slot of its first key."""
        if self.slots_unread:
            await self.initialize()
        try:
            node = self.get_node_from_key(key)
        except SlotNotCoveredError:
            self.refresh()
            raise
        assert node is not None
        # A script never follows an ASK: at the new node, a row whose key the script builds, and that has not moved yet,
        # would seem to be missing, and the server would report no error. The script waits until the slot has moved.
        return await self._call(node, words, follow_ask=False, waits=waits)

    async def ask(self, node: ClusterNode, words: tuple[Any, ...]) -> Any:
        """The answer to any other command, of the node that redis-py has chosen for it."""
        return await self._call(node, words, follow_ask=True)

    async def get_nodes_from_slot(self, command: str, *args: Any) -> list[ClusterNode]:
        """The node for a command with a key. Raises SlotNotCoveredError."""
        try:
            found: list[ClusterNode] = await super().get_nodes_from_slot(command, *args)
        except KeyError as slot:
            self.refresh()
            raise SlotNotCoveredError(f"slot {slot} has no owner") from None
        return found

    async def _call(self, node: ClusterNode, words: tuple[Any, ...], *, follow_ask: bool, waits: bool = False) -> Any:
        """The answer of the node, or of the node that it redirects to. Only a command that did not run is sent again.
        Raises TryAgainError if the slot moves for too long, ConnectionError, TimeoutError and ClusterDownError; also
        Unacknowledged if the call waits for replicas."""
        importer: ClusterNode | None = None
        for pause in (*PAUSES, None):
            try:
                if importer is None:
                    return await (self._waiting_to(node) if waits else self._pipelined_to(node)).call(*words)
                pipelined = self._pipelined_to(importer)
                return (await asyncio.gather(pipelined.call("ASKING"), pipelined.call(*words)))[1]
            except MovedError as error:
                node, importer = await self.learn_owner(error), None
                self.refresh()
            except AskError as error:
                importer = self.node_at(error.host, error.port) if follow_ask else None
            except TryAgainError:
                importer = None
            except (RedisConnectionError, RedisTimeoutError, ClusterDownError):
                self.refresh((importer or node).name)
                raise
            if pause is None:
                break
            await asyncio.sleep(pause)
        raise TryAgainError("the slot is being moved")

    def _pipelined_to(self, node: ClusterNode) -> PipelinedConnection:
        pipelined = self._pipelined.get(node.name)
        if pipelined is None:
            pipelined = self._pipelined[node.name] = PipelinedConnection(_opening(node), self._timeout)
        return pipelined

    def _waiting_to(self, node: ClusterNode) -> WaitingConnections:
        found = self._waiting.get(node.name)
        if found is None:
            assert self._wait is not None
            found = self._waiting[node.name] = WaitingConnections(_opening(node), self._timeout, self._wait)
        return found

    def get_default_node(self) -> ClusterNode:
        """The node for a command without a key: a connected primary, otherwise each in turn."""
        primaries = self.get_primaries()
        for node in primaries:
            if node.name in self._pipelined and self._pipelined[node.name].is_open:
                return node
        self._turn += 1
        return primaries[self._turn % len(primaries)] if primaries else super().get_default_node()

    def pubsub(self, **options: Any) -> PubSub:  # type: ignore[override]  # ours takes no node
        """A subscription at one of the nodes; a message published at any node reaches all of them."""
        return _Subscription(self, **options)

    def refresh(self, failed: str | None = None) -> None:
        """Reads the slots again in the background. A node that `failed` is asked last."""
        if self.slots_unread:  # the next command reads them
            return
        self._stale, self._failed = True, failed
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_slots())

    async def _read_slots(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._stale:
            await asyncio.sleep(max(0.0, self._read_at + REFRESH_SECONDS - clock()))
            self._stale, self._read_at = False, clock()
            try:
                await self.read_slots(failed=self._failed)
            except Exception as error:  # the table does not change until a node answers
                log.warning("the cluster's slots cannot be read: %s", type(error).__name__)
                self._stale = True
                # All known nodes may be gone, and the configured names may lead to new ones.
                self.also_ask(self._hosts)
            kinds: tuple[dict[str, Any], ...] = (self._pipelined, self._waiting)
            for kind in kinds:
                for name in kind.keys() - self.node_names:
                    if kind[name].is_idle:
                        await kind.pop(name).close()

    async def aclose(self) -> None:
        """Closes the pipelined connections too."""
        if self._reading is not None:
            self._stale = False
            self._reading.cancel()
            await asyncio.wait([self._reading])
        for pipelined in self._pipelined.values():
            await pipelined.close()
        for waiting in self._waiting.values():
            await waiting.close()
        self._pipelined.clear()
        self._waiting.clear()
        await super().aclose()


def _opening(node: ClusterNode) -> Callable[[], AbstractConnection]:
    """A function that opens a connection to a node."""
    settings = {**node.connection_kwargs, "retry": no_retry()}
    return lambda: node.connection_class(**settings)


class _Subscription(PubSub):
    """A subscription with its own connection, which ends with its node; the next subscription uses another node."""

    def __init__(self, cluster: Cluster, **options: Any) -> None:
        super().__init__(None, encoder=cluster.encoder, **options)  # type: ignore[arg-type]  # as redis-py's own does
        self._cluster = cluster
        self._node: ClusterNode | None = None

    async def connect(self) -> None:
        """Chooses a node, the first time. Raises ConnectionError, TimeoutError."""
        if self._node is None:
            await self._cluster.initialize()
            self._node = self._cluster.get_default_node()
            settings = {**self._node.connection_kwargs, "retry": no_retry()}
            self.connection_pool = ConnectionPool(self._node.connection_class, **settings)
        try:
            await super().connect()  # type: ignore[no-untyped-call]  # what it inherits has none
        except (RedisConnectionError, RedisTimeoutError):
            self._cluster.refresh(self._node.name)
            raise
