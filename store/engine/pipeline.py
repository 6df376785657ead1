"""Script calls on few connections: what one turn of the event loop asks for travels together, answers come in order.

redis-py opens the connection: address, TLS, authentication. Then the pipeline takes its transport over, writes what has
gathered in one piece, and hands each reply to the call that waits for it. Nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

MOST_CALLS = 10_000
"""Calls that wait on a connection for their answers, at most: beyond, the store is slower than what comes in. They are
bounded in bytes by what the HTTP server lets in: so many connections, a body each."""

_NOTHING = object()


class PipelinedConnection(asyncio.Protocol):
    """One connection that is opened when it is first needed, and again after it was lost. `timeout` is in seconds, for
    connecting and for each answer."""

    def __init__(self, connect: Callable[[], AbstractConnection], timeout: float) -> None:
        # Asking for it costs a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._timeout = timeout
        self._connection: AbstractConnection | None = None
        self._transport: asyncio.Transport | None = None
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
        """Whether no call waits."""
        return not self._waiting

    @property
    def queue(self) -> int:
        """Calls that wait for their answer."""
        return len(self._waiting)

    @property
    def server(self) -> tuple[str, int] | None:
        """Host and port of the server it is connected to, where that is by TCP."""
        host, port = getattr(self._connection, "host", None), getattr(self._connection, "port", None)
        return (host, port) if host and port else None

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """The reply to a command. Raises redis-py's errors: ResponseError for what the server said, ConnectionError and
        TimeoutError where the answer was lost."""
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

    def _flush(self) -> None:
        """Sends what has gathered."""
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
        """Whether the server closed an idle connection. Asking the kernel also finds what the loop has not come round
        to yet, so a restart of the store costs no request."""
        assert self._transport is not None
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def _open(self) -> None:
        try:
            self._abandon()
            connection = self._connect()
            async with asyncio.timeout(self._timeout):
                await connection.connect()
            writer = connection._writer
            assert writer is not None
            # No test of the type: uvloop's transports are none to Python.
            transport = cast(asyncio.Transport, writer.transport)
            self._reader = hiredis.Reader(
                protocolError=InvalidResponse, replyError=connection._parser.parse_error, notEnoughData=_NOTHING
            )
            self._connection, self._transport = connection, transport
            transport.set_protocol(self)
        except TimeoutError:
            self._fail(RedisTimeoutError("no connection to the store in time"))
        except Exception as error:  # whatever kept it from opening, the calls that wait for it must hear of it
            self._fail(error)
        finally:
            self._opening = None
        # Without another look: a server that hangs up on everybody would be asked for ever.
        if self._gathered and self._transport is not None:
            self._send(self._transport)

    def data_received(self, data: bytes) -> None:
        """Replies, each for the oldest call that waits."""
        reader, waiting = self._reader, self._waiting
        assert reader is not None
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _NOTHING:
                self._answered += 1
                future = waiting.popleft()
                if future.done():  # its caller went away; the answer had to be read all the same
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                    if isinstance(reply, ReadOnlyError):
                        # This is a primary no more: what it would say to the calls behind this one is of the past.
                        self.drop("the server is a replica")
                        return
                else:
                    future.set_result(reply)
        except (InvalidResponse, IndexError):
            self._lose(RedisConnectionError("the store does not keep to the protocol"))

    def connection_lost(self, exc: Exception | None) -> None:
        """What was sent may have run; what was not goes over the next connection."""
        if self._transport is not None:
            self._lose(RedisConnectionError("the connection to the store was lost"))

    def _look(self) -> None:
        """Ends a connection on which an answer is overdue."""
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
        """Drops the connection; the calls that were sent over it fail."""
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
        """Every call fails: there is no connection."""
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
            connection._reader = connection._writer = None

    def drop(self, reason: str) -> None:
        """Leaves the server: the calls under way fail, and the next one opens a connection anew."""
        self._lose(RedisConnectionError(reason))

    async def close(self) -> None:
        """Drops the connection; calls that wait fail."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            self._opening = None
        self._fail(RedisConnectionError("the store was closed"))
