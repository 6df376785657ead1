"""Pipelined script calls: calls of one turn of the event loop share a write, and answers arrive in order.

redis-py opens the connection: address, TLS, authentication. Then the pipeline takes over its transport, sends all
gathered calls in one write, and hands each reply to the call that waits for it. Nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from store.engine.redis_private import error_maker, let_go, transport_of

MOST_CALLS = 10_000
"""The most calls that wait on a connection for their answers: with more, the store is slower than the incoming load.
The HTTP server bounds their bytes: it limits connections, and each has one body."""

_NOTHING = object()


class PipelinedConnection(asyncio.Protocol):
    """One connection, opened on first use and again after a loss. `timeout` is in seconds, for connecting and for each
    answer."""

    def __init__(self, connect: Callable[[], AbstractConnection], timeout: float) -> None:
        # Asking for the loop costs a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._timeout = timeout
        self._connection: AbstractConnection | None = None
        self._transport: asyncio.Transport | None = None
        # The kernel's word on the connection's input.
        self._input = select.poll()
        self._reader: hiredis.Reader | None = None
        self._gathered: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._sent: deque[tuple[float, int]] = deque()
        self._answered = 0
        self._asked = 0
        self._flushing = False
        self._opening: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._transport is not None

    @property
    def is_idle(self) -> bool:
        """Whether no call is waiting."""
        return not self._waiting

    @property
    def queue(self) -> int:
        """Calls that wait for their answer."""
        return len(self._waiting)

    @property
    def server(self) -> tuple[str, int] | None:
        """Host and port of the connected server, if the connection is TCP."""
        host, port = getattr(self._connection, "host", None), getattr(self._connection, "port", None)
        return (host, port) if host and port else None

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """The reply to a command. Raises redis-py's errors: ResponseError for an error of the server, ConnectionError
        and TimeoutError if the answer was lost."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if len(self._waiting) >= MOST_CALLS:
            future.set_exception(RedisConnectionError("too many calls wait for the store"))
            return future
        self._gathered.append(hiredis.pack_command(words))
        self._waiting.append(future)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
        return future

    async def answers(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """The replies to commands that share a write, or the exceptions in their places."""
        calls = [self.call(*words) for words in commands]
        try:
            if waiting := [call for call in calls if not call.done()]:
                await asyncio.wait(waiting[-1:])  # answers keep their order, so the others have theirs
        finally:
            for call in calls:
                call.cancel()  # nothing, unless the caller goes
        return [call.exception() or call.result() for call in calls]

    def _flush(self) -> None:
        """Sends the gathered calls."""
        self._flushing = False
        if self._opening is not None or not self._gathered:
            return
        idle = len(self._waiting) == len(self._gathered)
        if self._transport is None or (idle and self._was_closed()):
            self._opening = asyncio.ensure_future(self._open())
            return
        self._send(self._transport)

    def _send(self, transport: asyncio.Transport) -> None:
        self._asked += len(self._gathered)
        self._sent.append((self._loop.time(), self._asked))
        transport.write(b"".join(self._gathered))
        self._gathered.clear()
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._look)

    def _was_closed(self) -> bool:
        """Whether the server has closed an idle connection. The kernel also knows of a close that the loop has not read
        yet, so a restart of the store costs no request."""
        return bool(self._input.poll(0))

    async def _open(self) -> None:
        try:
            self._abandon()
            connection = self._connect()
            async with asyncio.timeout(self._timeout):
                await connection.connect()
            transport = transport_of(connection)
            self._reader = hiredis.Reader(
                protocolError=InvalidResponse, replyError=error_maker(connection), notEnoughData=_NOTHING
            )
            self._input = select.poll()
            self._input.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
            self._connection, self._transport = connection, transport
            transport.set_protocol(self)
        except TimeoutError:
            self._fail(RedisTimeoutError("no connection to the store in time"))
        except Exception as error:  # whatever the cause, the waiting calls must fail with it
            self._fail(error)
        finally:
            self._opening = None
        # No second check here: with a server that closes every connection, it would loop for ever.
        if self._gathered and self._transport is not None:
            self._send(self._transport)

    def data_received(self, data: bytes) -> None:
        """Takes replies, each for the oldest waiting call."""
        reader, waiting = self._reader, self._waiting
        assert reader is not None
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _NOTHING:
                self._answered += 1
                future = waiting.popleft()
                if future.done():  # the caller has gone; the answer had to be read all the same
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                    if isinstance(reply, ReadOnlyError):
                        # The server is no longer a primary: its answers to the later calls would be out of date.
                        self.drop("the server is a replica")
                        return
                else:
                    future.set_result(reply)
        except (InvalidResponse, IndexError):
            self._lose(RedisConnectionError("the store does not keep to the protocol"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails the sent calls, which may have run; unsent calls use the next connection."""
        if self._transport is not None:
            self._lose(RedisConnectionError("the connection to the store was lost"))

    def _look(self) -> None:
        """Drops a connection with an overdue answer."""
        self._watch = None
        while self._sent and self._sent[0][1] <= self._answered:
            self._sent.popleft()
        if not self._sent:
            return
        left = self._sent[0][0] + self._timeout - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look)
        else:
            self._lose(RedisTimeoutError("the store did not answer in time"))

    def _lose(self, error: Exception) -> None:
        """Drops the connection; the calls sent over it fail."""
        self._abandon()
        unsent = len(self._gathered)
        lost = [self._waiting.popleft() for _ in range(len(self._waiting) - unsent)]
        for future in lost:
            if not future.done():
                future.set_exception(error)
        if unsent and not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _fail(self, error: Exception) -> None:
        """Fails every call, because there is no connection."""
        self._gathered.clear()
        self._lose(error)

    def _abandon(self) -> None:
        transport, connection = self._transport, self._connection
        self._transport = self._connection = self._reader = None
        self._sent.clear()
        self._asked = self._answered = 0
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if transport is not None:
            transport.abort()
        if connection is not None:
            let_go(connection)

    def drop(self, reason: str) -> None:
        """Leaves the server: the calls in progress fail, and the next call opens a new connection."""
        self._lose(RedisConnectionError(reason))

    async def close(self) -> None:
        """Drops the connection; waiting calls fail."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            self._opening = None
        self._fail(RedisConnectionError("the store was closed"))
