"""A client's connection. Requests arrive one after the other, and answers leave in the same order.

The application has one request at a time. Meanwhile the connection reads ahead up to a limit, so that it notices at
once when the client hangs up. Beyond the limit, it stops reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from tornado.concurrent import Future
from tornado.httputil import HTTPInputError
from tornado.log import app_log, gen_log

from runtime.http.body import Body, Chunked, Sized
from runtime.http.deadline import Deadline
from runtime.http.exchange import Exchange
from runtime.http.head import CHUNKED, Overlong, check_beginning, read_head
from runtime.http.outgoing import Outgoing
from runtime.http.protocols import Server

BACKLOG_BYTES = 65_536
"""Bytes that a client may send ahead. A little more arrives, because data comes in pieces."""
# A connection that is closing discards what the client still sends, within these limits.
LINGER_SECONDS = 2.0
LINGER_BYTES = 2**20


class Connection(Outgoing):
    """One connection. The application gets it in place of Tornado's IOStream, and can close it."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, context: object) -> None:
        super().__init__(loop, server.slow, server.limits.stall_seconds)
        self.context = context
        """The client's address, in the form that Tornado's requests need."""
        self._server = server
        self._limits = server.limits
        self._deadline = Deadline(loop, self._expired)
        # Bytes that have arrived but are unread, and how many bytes of an unfinished head have been checked.
        self._buffer = b""
        self._scanned = 0
        self._exchange: Exchange | None = None
        self._body: Body | None = None
        # Bytes of the body that the application has received.
        self._received = 0
        # True while nothing is read from the buffer, because the application or the client must act first.
        self._waiting = False
        self._reading_paused = False
        # How many bytes were discarded while closing; None unless the connection is closing.
        self._passed_over: int | None = None

    @property
    def socket(self) -> Any:
        """The socket, for facts about the client. With TLS, its `getpeercert` returns the client's certificate."""
        return self._transport.get_extra_info("ssl_object") or self._transport.get_extra_info("socket")

    def set_nodelay(self, value: bool) -> None:
        """Does nothing: asyncio's transports never delay small writes."""

    # Opening and closing.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)
        # A writer waits until the system has taken all bytes, as with an IOStream. (At 0, a TLS transport would pause
        # forever.)
        self._transport.set_write_buffer_limits(high=1, low=0)
        self._server.opened(self)
        self._deadline.set(self._limits.idle_seconds)

    def eof_received(self) -> None:
        """Called by asyncio: the client has hung up. A client that closes only its sending side looks the same."""
        if self._exchange is not None:
            self.close()
        else:
            self.watch_stall()
        self._gone()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        super().connection_lost(exc)
        self._gone()
        self._deadline.cancel()
        self._server.on_close(self)

    def _gone(self) -> None:
        self._buffer = b""
        self._break_writers()
        self._end_exchange(gone=True)

    def _end_exchange(self, *, gone: bool) -> None:
        exchange, self._exchange, self._body = self._exchange, None, None
        if exchange is not None:
            try:
                exchange.end(gone=gone)
            except Exception:
                app_log.error("Uncaught exception", exc_info=True)

    def leave(self) -> None:
        """Closes the connection once all output is sent, or at once if a request is in progress."""
        if self._exchange is not None:
            self.close()
        else:
            self._part(unread=False)

    def patience(self) -> float | None:
        """When the connection is cut if nothing arrives, in the loop's time; None while a request is in progress."""
        return self._deadline.at if self._exchange is None and not self._over else None

    def expects(self, since: float) -> bool:
        """Whether it was opened or answered after `since`, in the loop's time, or has sent part of a head."""
        if self._exchange is not None or self._over or self._deadline.at is None:
            return False
        return bool(self._scanned) or self._deadline.at - self._limits.idle_seconds > since

    @property
    def at_work(self) -> bool:
        """Whether a request is unanswered. Its body may still be arriving."""
        return self._exchange is not None

    # Requests.

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._over:
            if self._passed_over is not None:
                self._passed_over += len(data)
                if self._passed_over > LINGER_BYTES:
                    self._transport.abort()
            return
        self._buffer = self._buffer + data if self._buffer else data
        if not self._waiting:
            self._advance()
        elif self._writing_paused:
            self._note_buffered()
        if self._waiting and len(self._buffer) > BACKLOG_BYTES and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def _advance(self) -> None:
        """Processes what has arrived, as far as possible."""
        if not self._over and not self._waiting:
            self._guarded(self._begin if self._exchange is None else self._read_body)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except HTTPInputError as error:
            self._refuse(error)
        except Exception:
            app_log.error("Uncaught exception", exc_info=True)
            self.close()
            self._end_exchange(gone=True)

    def _begin(self) -> None:
        """Starts the next request if its head is complete."""
        data = self._buffer
        # Waits for three bytes, because one blank line may come first.
        end = data.find(b"\r\n\r\n", max(self._scanned - 3, 2)) + 4
        if end < 4 or end > self._limits.head_bytes:
            if data and not self._scanned:
                self._deadline.set(self._limits.head_seconds)
            check_beginning(data, self._scanned, self._limits.head_bytes)
            self._scanned = len(data)
            self._slow.buffers(self, len(data))
            self._resume_reading()
            return
        if self._scanned:
            self._scanned = 0
            self._slow.buffers(self, 0)
        self._buffer = data[end:]
        refusal = self._server.turn_away(data[:end]) if end == len(data) else None
        if refusal is not None:
            self.send(refusal)
            return self._settle()
        head = read_head(data[:end])
        self._deadline.set(None)
        exchange = self._exchange = Exchange(self, head, self._limits.body_bytes, self._limits.body_seconds)
        if self._server.closing:
            exchange.keep_alive = False
        self._body = None if head.length == 0 else Chunked() if head.length == CHUNKED else Sized(head.length)
        delegate = exchange.delegate = self._server.start_request(self, exchange)
        exchange.delegate_waits = True
        taken = delegate.headers_received(head.start_line, head.headers)
        step = self._read_body
        if head.length:
            step = partial(self._begin_body, exchange, head.length, head.expects_continue)
        if self._done(taken, exchange, step):
            step()

    def _begin_body(self, exchange: Exchange, length: int, expects_continue: bool) -> None:
        """Starts to read the body. The delegate has read the head, and may have set limits for this body."""
        if length > exchange.max_body_size:
            raise HTTPInputError("Content-Length too long")
        # RFC 9110 10.1.1: no 100 Continue to a client that has already sent part of the body.
        if expects_continue and not self._buffer and not exchange.answering:
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._deadline.set(exchange.body_timeout)
        self._received = 0
        self._read_body()

    def _read_body(self) -> None:
        """Passes the delegate the bytes of the body that have arrived, and reports the end."""
        exchange, body = self._exchange, self._body
        assert exchange is not None and exchange.delegate is not None
        delegate = exchange.delegate
        while body is not None and not body.done:
            piece, self._buffer = body.read(self._buffer, self._limits.piece_bytes, exchange.max_body_size)
            if piece:
                self._received += len(piece)
                if not self._done(delegate.data_received(piece), exchange, self._read_body):
                    return
            elif not body.done:
                self._slow.buffers(self, (self._received if exchange.body_counts else 0) + len(self._buffer))
                self._resume_reading()
                return
        if body is not None:
            self._slow.buffers(self, 0)
        self._body = None
        self._deadline.set(None)
        # Lasts until the answer is complete, which may be before `finish` returns.
        self._waiting = True
        self._resume_reading()
        exchange.delegate_waits = False
        try:
            delegate.finish()
        except Exception:
            exchange.delegate_waits = True
            raise

    def _done(self, awaitable: Awaitable[None] | None, exchange: Exchange, step: Callable[[], None]) -> bool:
        """Whether the delegate's work is done and the exchange continues. If the work goes on, calls `step` after it.
        Raises the delegate's errors."""
        if awaitable is not None:
            future = asyncio.ensure_future(awaitable)
            if future.done():
                _check(future)
            else:
                future.add_done_callback(partial(self._go_on, exchange, step))
                self._waiting = self._waiting or self._exchange is exchange
                return False
        return self._exchange is exchange  # otherwise it was answered, or the client is gone

    def _go_on(self, exchange: Exchange, step: Callable[[], None], future: Future[None]) -> None:
        def go_on() -> None:
            _check(future)
            step()

        if self._exchange is exchange:
            self._waiting = False
            self._guarded(go_on)
        elif not future.cancelled():
            future.exception()  # otherwise asyncio logs it as never retrieved

    def _refuse(self, error: HTTPInputError) -> None:
        """Answers a request that cannot be read, and closes the connection."""
        # These are the words of Tornado's own server: a log filter of the application recognizes messages that quote a
        # request.
        what = "Unsatisfiable read" if isinstance(error, Overlong) else "Malformed HTTP message"
        shown = str(error)[:200].encode("unicode_escape").decode()
        gen_log.info(what + " from %s: %s", self.context, shown)
        if self._exchange is not None and self._exchange.answering:
            self.close()  # the client would take an error for part of the answer
        else:
            status = error.status if isinstance(error, Overlong) else b"400 Bad Request"
            self.send(b"HTTP/1.1 " + status + b"\r\n" + self._server.refusal_fields() + b"\r\n")
            self._part(unread=True)
        self._end_exchange(gone=True)

    def answered(self, exchange: Exchange) -> None:
        """The answer is complete. The next request starts once the client has read most of it."""
        unread = self._body is not None and not self._body.done
        self._end_exchange(gone=False)
        if self._over:
            return
        if unread or not exchange.keep_alive:
            self._part(unread=unread or bool(self._buffer))
        else:
            self._settle()

    def _settle(self) -> None:
        """After an answer: starts the next request once the client has read most of the answer."""
        if self._writing_paused:
            self._waiting = True
        else:
            self._next()

    def resume_writing(self) -> None:
        """Called by asyncio: the client has read most of the output."""
        super().resume_writing()
        if self._waiting and self._exchange is None and not self._over:
            self._next()

    def _next(self) -> None:
        self._waiting = False
        self._limits = self._server.limits
        self._deadline.set(self._limits.idle_seconds)
        if self._buffer:
            # Not directly: the application is still ending the previous request.
            self._loop.call_soon(self._advance)
        else:
            self._server.idle()

    def _part(self, *, unread: bool) -> None:
        """Closes the connection once all output is sent. `unread`: the client may still be sending, and closing now
        would reset the connection before the client reads the answer. So the connection first discards input for a
        while."""
        self._over = True
        self._buffer = b""
        self._note_buffered()
        if unread and self._transport.can_write_eof() and not self._transport.is_closing():
            self._passed_over = 0
            self._transport.write_eof()
            self._resume_reading()
            self._deadline.set(LINGER_SECONDS)
        else:
            self._transport.close()
        self.watch_stall()

    def _buffered(self) -> int:
        """Includes input of a client that sends but does not read its answer."""
        return super()._buffered() + len(self._buffer)

    def _resume_reading(self) -> None:
        if self._reading_paused and len(self._buffer) <= BACKLOG_BYTES and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def _expired(self) -> None:
        if self._passed_over is not None:
            self._transport.close()
            return
        if self._exchange is not None:
            gen_log.info("Timeout reading body from %s", self.context)
        self.close()


def _check(future: Future[None]) -> None:
    """Raises the error of the delegate's future."""
    if future.cancelled():
        raise RuntimeError("what the delegate was doing was cancelled")
    future.result()
