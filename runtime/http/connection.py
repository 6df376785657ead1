"""A client's connection: requests come in one after the other, answers go out in the same order.

One request at a time is with the application. What the client sends meanwhile waits, up to a bound, then the connection
is not read; up to the bound it is, so that a client that hangs up is noticed at once.
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
"""What a client may send ahead; a little more arrives, since it comes in pieces."""
# What still arrives on a connection that ends is passed over, so much and so long.
LINGER_SECONDS = 2.0
LINGER_BYTES = 2**20


class Connection(Outgoing):
    """One connection. To the application it is what an IOStream is to Tornado's own server: something to close."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, context: object) -> None:
        super().__init__(loop, server.slow, server.limits.stall_seconds)
        self.context = context
        """The client's address, as Tornado's requests take it."""
        self._server = server
        self._limits = server.limits
        self._deadline = Deadline(loop, self._expired)
        # What has arrived and was not read yet; of an unfinished head, how much of it was looked at.
        self._buffer = b""
        self._scanned = 0
        self._exchange: Exchange | None = None
        self._body: Body | None = None
        # Bytes of the body that the application has.
        self._received = 0
        # Nothing is taken from the buffer until the application, or the client, has done its part.
        self._waiting = False
        self._reading_paused = False
        # Of what still arrives when it is over, how much was passed over.
        self._passed_over: int | None = None

    @property
    def socket(self) -> Any:
        """The socket, to ask about the client; with TLS its `getpeercert` is the client's certificate."""
        return self._transport.get_extra_info("ssl_object") or self._transport.get_extra_info("socket")

    def set_nodelay(self, value: bool) -> None:
        """Does nothing: asyncio's transports never hold a small piece back."""

    # Coming and going.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """From asyncio."""
        self._transport = cast(asyncio.Transport, transport)
        # Who waits for a write waits until the system has all of it, as with an IOStream.
        # (At 0 a transport with TLS would pause for good.)
        self._transport.set_write_buffer_limits(high=1, low=0)
        self._server.opened(self)
        self._deadline.set(self._limits.idle_seconds)

    def eof_received(self) -> None:
        """From asyncio: the client has hung up. One that ends its own side alone, and waits, looks the same."""
        if self._exchange is not None:
            self.close()
        else:
            self.watch_stall()
        self._gone()

    def connection_lost(self, exc: Exception | None) -> None:
        """From asyncio: it is closed."""
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
        """Ends it when what is to go out has gone out; at once where a request is at work."""
        if self._exchange is not None:
            self.close()
        else:
            self._part(unread=False)

    def patience(self) -> float | None:
        """When it is cut unless something arrives, in the loop's time; None where a request is at work."""
        return self._deadline.at if self._exchange is None and not self._over else None

    def expects(self, since: float) -> bool:
        """Whether it was opened or answered after this moment, in the loop's time, or has sent half a head."""
        if self._exchange is not None or self._over or self._deadline.at is None:
            return False
        return bool(self._scanned) or self._deadline.at - self._limits.idle_seconds > since

    @property
    def at_work(self) -> bool:
        """Whether there is a request that was not answered yet; its body may still be on the way."""
        return self._exchange is not None

    # Requests.

    def data_received(self, data: bytes) -> None:
        """From asyncio."""
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
        """Goes as far as what has arrived allows."""
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
        """The next request, if its head is all there."""
        data = self._buffer
        # From the third byte on, since one blank line may stand in front.
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
        """The delegate has taken the head, and may have set the limits of this body."""
        if length > exchange.max_body_size:
            raise HTTPInputError("Content-Length too long")
        # RFC 9110 10.1.1: not to who has not waited for it.
        if expects_continue and not self._buffer and not exchange.answering:
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._deadline.set(exchange.body_timeout)
        self._received = 0
        self._read_body()

    def _read_body(self) -> None:
        """Gives the delegate what has arrived of the body, then the end of it."""
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
                self._slow.buffers(self, self._received + len(self._buffer))
                self._resume_reading()
                return
        if body is not None:
            self._slow.buffers(self, 0)
        self._body = None
        self._deadline.set(None)
        # Until the answer is complete, which it may be before `finish` returns.
        self._waiting = True
        self._resume_reading()
        exchange.delegate_waits = False
        try:
            delegate.finish()
        except Exception:
            exchange.delegate_waits = True
            raise

    def _done(self, awaitable: Awaitable[None] | None, exchange: Exchange, step: Callable[[], None]) -> bool:
        """Whether what the delegate gave back is done and the exchange goes on. Where it has to be waited for, `step`
        comes then. Raises what the delegate raised."""
        if awaitable is not None:
            future = asyncio.ensure_future(awaitable)
            if future.done():
                _check(future)
            else:
                future.add_done_callback(partial(self._go_on, exchange, step))
                self._waiting = self._waiting or self._exchange is exchange
                return False
        return self._exchange is exchange  # else it was answered already, or the client is gone

    def _go_on(self, exchange: Exchange, step: Callable[[], None], future: Future[None]) -> None:
        def go_on() -> None:
            _check(future)
            step()

        if self._exchange is exchange:
            self._waiting = False
            self._guarded(go_on)
        elif not future.cancelled():
            future.exception()  # nobody else asks for it

    def _refuse(self, error: HTTPInputError) -> None:
        """Answers what cannot be read, and ends the connection."""
        # The words of Tornado's own server, by which a filter of the application can know what quotes a request.
        what = "Unsatisfiable read" if isinstance(error, Overlong) else "Malformed HTTP message"
        shown = str(error)[:200].encode("unicode_escape").decode()
        gen_log.info(what + " from %s: %s", self.context, shown)
        if self._exchange is not None and self._exchange.answering:
            self.close()  # whatever is added would be taken for the answer
        else:
            status = error.status if isinstance(error, Overlong) else b"400 Bad Request"
            self.send(b"HTTP/1.1 " + status + b"\r\n" + self._server.refusal_fields() + b"\r\n")
            self._part(unread=True)
        self._end_exchange(gone=True)

    def answered(self, exchange: Exchange) -> None:
        """The answer is complete. The next request comes when the client has taken most of it."""
        unread = self._body is not None and not self._body.done
        self._end_exchange(gone=False)
        if self._over:
            return
        if unread or not exchange.keep_alive:
            self._part(unread=unread or bool(self._buffer))
        else:
            self._settle()

    def _settle(self) -> None:
        """Behind an answer: the next request, when the client has taken most of it."""
        if self._writing_paused:
            self._waiting = True
        else:
            self._next()

    def resume_writing(self) -> None:
        """From asyncio: the client has taken most of it."""
        super().resume_writing()
        if self._waiting and self._exchange is None and not self._over:
            self._next()

    def _next(self) -> None:
        self._waiting = False
        self._limits = self._server.limits
        self._deadline.set(self._limits.idle_seconds)
        if self._buffer:
            # Not from here: the application is in the middle of ending the request before.
            self._loop.call_soon(self._advance)
        else:
            self._server.idle()

    def _part(self, *, unread: bool) -> None:
        """Closes the connection when what is to go out has gone out. `unread`: the client may be sending, and would
        lose the answer to the reset that this provokes; so what it sends is passed over for a while."""
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
        """What it sends while it does not take its answer is held, too."""
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
    """Raises what the delegate's future has."""
    if future.cancelled():
        raise RuntimeError("what the delegate was doing was cancelled")
    future.result()
