"""Every private name of redis-py that this program uses, each behind a name of ours.

A docstring says after "Relies on" what must hold inside redis-py. tests/repo/test_redis_private.py checks each of
these claims, so a release of redis-py that changes one fails there and nowhere else.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Any, cast

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.client import EMPTY_RESPONSE, NEVER_DECODE
from redis.exceptions import ResponseError


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
    """A cluster's client whose commands go another way than redis-py's."""

    async def ask(self, node: ClusterNode, words: tuple[Any, ...]) -> Any:
        """The raw answer of a node to a command. Raises what redis-py raises."""
        raise NotImplementedError

    @property
    def slots_unread(self) -> bool:
        """Whether the next command reads the slots. Relies on: `_initialize` is true until `initialize` is done."""
        return bool(self._initialize)

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
