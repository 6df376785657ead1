"""A client of one server: scripts share a pipelined connection, everything else uses redis-py's pool."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from store.engine.pipeline import PipelinedConnection
from store.engine.redis_private import has_input
from store.engine.replicas import AcknowledgedScripts, Wait, WaitingConnections

POOL_WAIT: Final = 2.0
"""Seconds that a call waits for a free connection before the store counts as unavailable."""


def no_retry() -> Retry:
    """No retries: the client library never sends a call twice, because a script with a lost reply may have run."""
    return Retry(NoBackoff(), 0)


def connection_options(timeout: float) -> dict[str, Any]:
    """Options of every connection. `timeout` is in seconds, for connecting and for each reply."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "health_check_interval": 0,
        "decode_responses": False,
        # With RESP3, redis-py 8 enables maintenance notifications and reuses connections that the server closed.
        "protocol": 2,
        "client_name": "latchkey",
    }


def pool_options(timeout: float, max_connections: int) -> dict[str, Any]:
    """Options of a pool of at most `max_connections` such connections."""
    return {
        **connection_options(timeout),
        "timeout": POOL_WAIT,
        "max_connections": max_connections,
        "retry": no_retry(),
        "retry_on_error": [],
        "retry_on_timeout": False,
    }


class Client(Redis):
    """redis-py's client, except that scripts and GET share a pipelined connection, many in one write. Scripts that wait
    for replicas have their own connections."""

    pipelined: PipelinedConnection
    waiting: WaitingConnections | None = None
    _call_timeout: float

    @classmethod
    def on(cls, pool: BlockingConnectionPool, timeout: float) -> Client:
        """A client that owns the pool. Raises TypeError for unknown options."""
        pool.make_connection()
        client = cls(connection_pool=pool)
        client.auto_close_connection_pool = True
        client.pipelined = PipelinedConnection(pool.make_connection, timeout)
        client._call_timeout = timeout
        return client

    def acknowledged(self, wait: Wait) -> AcknowledgedScripts:
        """Runs scripts whose answers count only after replicas have their writes."""
        connect = self.connection_pool.make_connection
        self.waiting = waiting = WaitingConnections(connect, self._call_timeout, wait)
        return AcknowledgedScripts(lambda _, *words: waiting.call(*words))

    @property
    def pipelined_connections(self) -> tuple[PipelinedConnection, ...]:
        """All pipelined connections of this client."""
        return (self.pipelined, *(self.waiting.connections if self.waiting else ()))

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply."""
        return self.pipelined.call(b"EVALSHA", sha, numkeys, *keys_and_args)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply."""
        return self.pipelined.call(b"EVAL", script, numkeys, *keys_and_args)

    def get(self, name: Any) -> Awaitable[Any]:
        """The value of a key."""
        return self.pipelined.call(b"GET", name)

    async def answers(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """The replies to commands that are sent together, or the exceptions in their places: many commands cost much
        less than in a pipeline of redis-py."""
        return await self.pipelined.answers(commands)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Closes the pipelined connections too."""
        await self.pipelined.close()
        if self.waiting:
            await self.waiting.close()
        await super().aclose(close_connection_pool)


class Pool(BlockingConnectionPool):
    """A pool whose calls wait for a connection, and never get one that the server has closed."""

    async def ensure_connection(self, connection: AbstractConnection) -> None:
        """Replace an idle connection that the server has closed.

        redis-py checks what the event loop has read so far. The kernel also knows of a close that the loop has not
        read yet, so a restart of the store costs no request.
        """
        # With no command under way, input is an end of file or debris.
        if has_input(connection):
            await connection.disconnect(nowait=True)
        await super().ensure_connection(connection)
