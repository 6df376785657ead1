"""The writing half of a connection: what may be sent, who waits for it, what becomes of clients that do not read."""

from __future__ import annotations

import asyncio

from tornado.concurrent import Future
from tornado.iostream import StreamClosedError


class Outgoing(asyncio.Protocol):
    """Sends on a transport. `stall_seconds`: how long a client may take nothing of what is ready for it."""

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, stall_seconds: float) -> None:
        self._loop = loop
        self._stall_seconds = stall_seconds
        # No request is read and no answer written any more.
        self._over = False
        self._writing_paused = False
        self._writers: list[Future[None]] = []
        self._sent = 0
        self._stall: asyncio.TimerHandle | None = None
        # One for all writes that need not wait.
        self._nothing: Future[None] = loop.create_future()
        self._nothing.set_result(None)

    def closed(self) -> bool:
        """Whether nothing more reaches the client."""
        return self._over

    def close(self) -> None:
        """Cuts the connection, with whatever has not gone out."""
        self._over = True
        self._transport.abort()

    def send(self, data: bytes) -> Future[None]:
        """Sends. Returns a future that is done when more may be sent, or has StreamClosedError."""
        # A transport can be closed before it says so; uvloop's takes a write then for a mistake.
        if self._over or self._transport.is_closing():
            return self.broken()
        if data:
            self._sent += len(data)
            self._transport.write(data)
        if not self._writing_paused:
            return self._nothing
        writer: Future[None] = self._loop.create_future()
        self._writers.append(writer)
        return writer

    def broken(self) -> Future[None]:
        """What a write returns when nothing reaches the client any more."""
        writer: Future[None] = self._loop.create_future()
        _break(writer)
        return writer

    def pause_writing(self) -> None:
        """From asyncio: more is ready than the client takes."""
        self._writing_paused = True
        self.watch_stall()

    def resume_writing(self) -> None:
        """From asyncio: the client has taken most of it."""
        self._writing_paused = False
        if self._stall is not None and not self._over:
            self._stall.cancel()
            self._stall = None
        for writer in self._writers:
            if not writer.done():
                writer.set_result(None)
        self._writers.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """From asyncio: it is closed."""
        if self._stall is not None:
            self._stall.cancel()

    def watch_stall(self) -> None:
        """From now on the client must take something now and then."""
        if self._stall is None:
            taken = self._sent - self._transport.get_write_buffer_size()
            self._stall = self._loop.call_later(self._stall_seconds, self._stalled, taken)

    def _stalled(self, taken: int) -> None:
        self._stall = None
        if self._sent - self._transport.get_write_buffer_size() > taken:
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
        writer.exception()  # nobody need wait for it
