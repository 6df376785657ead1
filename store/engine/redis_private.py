"""Every private name of redis-py that this program uses, each behind a name of ours.

A docstring says after "Relies on" what must hold inside redis-py. tests/repo/test_redis_private.py checks each of
these claims, so a release of redis-py that changes one fails there and nowhere else.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Iterable, KeysView
from typing import Any, cast

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.client import EMPTY_RESPONSE, NEVER_DECODE
from redis.exceptions import MovedError, ResponseError


def has_input(connection: AbstractConnection) -> bool:
    """Whether the kernel has something to read for a connection; False where it is not open.

    Relies on: `_writer` is an asyncio.StreamWriter as long as the connection is open.
    """
    writer = connection._writer
    if writer is None:
        return False
    poll = select.poll()
    poll.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def transport_of(connection: AbstractConnection) -> asyncio.Transport:
    """The transport of an open connection. Relies on: `_writer` is its asyncio.StreamWriter."""
    writer = connection._writer
    assert writer is not None
    # No test of the type: uvloop's transports are none to Python.
    return cast(asyncio.Transport, writer.transport)


def error_maker(connection: AbstractConnection) -> Callable[[str], Exception]:
    """Makes the exception of an error reply. Relies on: `_parser` has a `parse_error` that takes its text."""
    return connection._parser.parse_error


def let_go(connection: AbstractConnection) -> None:
    """Makes the connection forget its transport, which another took and has closed. Relies on: a connection without
    `_reader` and `_writer` is not open, and ends without a warning."""
    connection._reader = connection._writer = None


def cut(connection: AbstractConnection) -> None:
    """Closes a connection while somebody waits for it to read. Relies on: `_close` closes the transport and leaves the
    reader to find out."""
    connection._close()


def in_use(pool: Any) -> list[Any]:
    """The connections that were taken from a pool. Relies on: `_in_use_connections` has them all."""
    return list(pool._in_use_connections)


class NodeCommands(RedisCluster):
    """A cluster's client whose commands go another way than redis-py's.

    Relies on: `nodes_manager` has redis-py's tables. `nodes_cache` has the nodes by name and `slots_cache` the nodes of
    each slot, its owner first; `startup_nodes` has the nodes that are asked for the slots, by name, and
    `connection_kwargs` what a ClusterNode needs besides its address.
    """

    async def ask(self, node: ClusterNode, words: tuple[Any, ...]) -> Any:
        """The raw answer of a node to a command. Raises what redis-py raises."""
        raise NotImplementedError

    @property
    def slots_unread(self) -> bool:
        """Whether the next command reads the slots. Relies on: `_initialize` is true until `initialize` is done."""
        return bool(self._initialize)

    @property
    def node_names(self) -> KeysView[str]:
        """The names of the nodes in the table, the same as `ClusterNode.name`."""
        return self.nodes_manager.nodes_cache.keys()

    def node_at(self, host: str, port: int) -> ClusterNode:
        """The node at an address. A node that owns no slot yet is not in the table, and comes new."""
        return self.get_node(host=host, port=port) or self._new_node(host, port)

    def _new_node(self, host: str, port: int) -> ClusterNode:
        return ClusterNode(host, port, **self.nodes_manager.connection_kwargs)

    async def learn_owner(self, moved: MovedError) -> ClusterNode:
        """Notes a slot's owner as a redirection names it, and returns it. Relies on: `move_slot` adds a node that is
        missing, and reads the present nodes of the slot, which a slot without an owner does not have."""
        self.nodes_manager.slots_cache.setdefault(moved.slot_id, [])
        await self.nodes_manager.move_slot(moved)
        return self.nodes_manager.get_node_from_slot(moved.slot_id)

    async def read_slots(self, *, failed: str | None) -> None:
        """Reads nodes and owners again; asks the node named `failed` last. Raises RedisClusterException if no node
        answers. Relies on: `initialize` of `nodes_manager` does this, and changes no table if it raises."""
        await self.nodes_manager.initialize(last_failed_node_name=failed)

    def also_ask(self, hosts: Iterable[tuple[str, int]]) -> None:
        """Asks these addresses for the slots, too, the next time."""
        for host, port in hosts:
            node = self._new_node(host, port)
            self.nodes_manager.startup_nodes.setdefault(node.name, node)

    def ask_last(self, node: ClusterNode) -> None:
        """Puts a node at the end of the nodes. Relies on: `initialize` of a client asks the first primary."""
        self.nodes_manager.move_node_to_end_of_cached_nodes(node.name)

    async def _execute_command(self, target_node: ClusterNode, *args: Any, **options: Any) -> Any:
        """Relies on: every command without a pipeline comes here with the node that was chosen for it, and what is done
        with an answer is in `response_callbacks` and these three options."""
        try:
            answer = await self.ask(target_node, (*args[0].split(), *args[1:]))
        except ResponseError:
            if EMPTY_RESPONSE in options:
                return options[EMPTY_RESPONSE]
            raise
        for name in (EMPTY_RESPONSE, NEVER_DECODE, "keys"):
            options.pop(name, None)
        callback = target_node.response_callbacks.get(args[0])
        return callback(answer, **options) if callback else answer
