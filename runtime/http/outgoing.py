"""The writing half of a connection: what may be sent, who waits, and how slow clients are cut off."""

from __future__ import annotations

import asyncio

from tornado.concurrent import Future
from tornado.iostream import StreamClosedError

from runtime.http.slow import Slow

LEAST_TAKEN = 65_536
"""Bytes that a client must read within its time limit, unless less is ready for it."""


class Outgoing(asyncio.Protocol):
    """Writes to a transport. `stall_seconds`: the time that a client has to read what is ready, or LEAST_TAKEN
    bytes."""

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, slow: Slow, stall_seconds: float) -> None:
        self._loop = loop
        self._slow = slow
        self._stall_seconds = stall_seconds
        # True once no request is read and no answer written any more.
        self._over = False
        self._writing_paused = False
        self._writers: list[Future[None]] = []
        self._sent = 0
        self._stall: asyncio.TimerHandle | None = None
        # One future for all writes that need not wait.
        self._nothing: Future[None] = loop.create_future()
        self._nothing.set_result(None)

    def closed(self) -> bool:
        """Whether nothing more can reach the client."""
        return self._over

    def close(self) -> None:
        """Cuts the connection and drops unsent output."""
        self._over = True
        self._transport.abort()

    def send(self, data: bytes) -> Future[None]:
        """Sends. Returns a future that is done when more may be sent, or fails with StreamClosedError."""
        # A transport can be closed before it reports this, and uvloop treats a write to it as a mistake.
        if self._over or self._transport.is_closing():
            return self.broken()
        if data:
            self._sent += len(data)
            self._transport.write(data)
        if not self._writing_paused:
            return self._nothing
        self._note_buffered()
        writer: Future[None] = self._loop.create_future()
        self._writers.append(writer)
        return writer

    def broken(self) -> Future[None]:
        """The result of a write that cannot reach the client."""
        writer: Future[None] = self._loop.create_future()
        _break(writer)
        return writer

    def pause_writing(self) -> None:
        """Called by asyncio: the client reads more slowly than the server writes."""
        self._writing_paused = True
        self._note_buffered()
        self.watch_stall()

    def resume_writing(self) -> None:
        """Called by asyncio: the client has read most of the output."""
        self._writing_paused = False
        self._slow.buffers(self, 0)
        if self._stall is not None and not self._over:
            self._stall.cancel()
            self._stall = None
        for writer in self._writers:
            if not writer.done():
                writer.set_result(None)
        self._writers.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        self._slow.buffers(self, 0)
        if self._stall is not None:
            self._stall.cancel()

    def _note_buffered(self) -> None:
        # uvloop reports that it is closed only in the next turn of the loop.
        if not self._transport.is_closing():
            self._slow.buffers(self, self._buffered())

    def _buffered(self) -> int:
        """Bytes held for a client that does not read its answer."""
        return self._transport.get_write_buffer_size()

    def watch_stall(self) -> None:
        """From now on the client must read what is ready."""
        if self._stall is None:
            taken = self._sent - self._transport.get_write_buffer_size()
            self._stall = self._loop.call_later(self._stall_seconds, self._stalled, taken)

    def _stalled(self, taken: int) -> None:
        self._stall = None
        if self._sent - self._transport.get_write_buffer_size() >= taken + LEAST_TAKEN:
            self.watch_stall()
        else:
            self.close()

    def _break_writers(self) -> None:
        self._over = True
        for writer in self._writers:
            _break(writer)
        self._writers.clear()


def _break(writer: Future[None]) -> None:
    if not writer.done():
        writer.set_exception(StreamClosedError())
        writer.exception()  # otherwise asyncio logs it as never retrieved
