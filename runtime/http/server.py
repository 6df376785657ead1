"""Accepts connections, up to a limit, and keeps track of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from tornado.concurrent import Future
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPMessageDelegate, HTTPServerConnectionDelegate
from tornado.ioloop import IOLoop
from tornado.log import gen_log
from tornado.netutil import ssl_options_to_context

from runtime.http.connection import Connection
from runtime.http.protocols import ConnectionLimits, OpenConnection
from runtime.http.slow import Slow
from runtime.http.tornado_private import context_of, unzipping

ACCEPTED_AT_ONCE = 64
RETRY_SECONDS = 1.0
HANDSHAKE_SECONDS = 30.0
LEAVING_SECONDS = 2.0
STALL_SECONDS = 60.0
SLOW_BYTES = 2**27
# Making room for one connection searches all of them, so several go at once.
MOST_EVICTED = 32


class HttpServer(HTTPServer):
    """Takes the arguments of `tornado.httpserver.HTTPServer`, and four more: `connections` is the limit of open
    connections (None: no limit); `head_timeout` how long a request may take to send its head, in seconds from the first
    byte; `stall_timeout` how long a client may take to read what is ready, or a good part of it; `slow_bytes` the
    memory for slow clients.

    At the limit, idle connections make room for new ones, and after them connections that have been slow for a while.
    If there are none, new connections wait to be accepted.

    If the application has a method `turn_away`, the server passes it each head that has arrived alone, before parsing.
    Bytes that it returns are the whole answer, and the connection stays open; None means the usual path. The method
    must return None if a body may follow or if the connection must close. If the application has a method
    `refusal_fields`, it returns header lines, as bytes, for the answer to a request that cannot be read.
    """

    def initialize(
        self,
        *args: Any,
        connections: int | None = None,
        head_timeout: float | None = None,
        stall_timeout: float = STALL_SECONDS,
        slow_bytes: int = SLOW_BYTES,
        **options: Any,
    ) -> None:
        """See the class."""
        super().initialize(*args, **options)
        self.limits = self._limits(head_timeout, stall_timeout)
        self.closing = self.conn_params.no_keep_alive
        """Whether each connection ends with its next answer."""
        self._slow_bytes = slow_bytes
        self._most = connections
        # Whether a connection waits to be accepted because the limit is reached.
        self._full = False
        self._tls = ssl_options_to_context(self.ssl_options, server_side=True) if self.ssl_options is not None else None
        self.turn_away: Callable[[bytes], bytes | None] = getattr(self.request_callback, "turn_away", _never)
        self.refusal_fields: Callable[[], bytes] = getattr(self.request_callback, "refusal_fields", bytes)
        self._listening: dict[socket.socket, bool] = {}
        # Accepted connections that are still in setup, by context; each counts once.
        self._arriving: dict[object, asyncio.Task[None]] = {}
        self._open: set[OpenConnection] = set()
        self._empty: Future[None] | None = None

    def _limits(self, head_timeout: float | None, stall_timeout: float) -> ConnectionLimits:
        params = self.conn_params
        idle = params.header_timeout
        assert idle is not None
        return ConnectionLimits(
            head_bytes=params.max_header_size,
            body_bytes=params.max_body_size
            if params.max_body_size is not None
            else self.max_buffer_size or 2**20 * 100,
            piece_bytes=params.chunk_size,
            idle_seconds=idle,
            head_seconds=min(head_timeout or idle, idle),
            body_seconds=params.body_timeout,
            stall_seconds=stall_timeout,
        )

    def adjust(
        self, *, connections: int | None, head_timeout: float | None, stall_timeout: float, slow_bytes: int
    ) -> None:
        """Sets the limits, and takes those of `conn_params` again. They apply to what arrives from now on, also on open
        connections. Each connection keeps its stall timeout."""
        self.limits = self._limits(head_timeout, stall_timeout)
        self._most, self.slow.most = connections, slow_bytes
        self._accept_again()

    # Listening.

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Accepts connections on the sockets, and closes the sockets at the end."""
        if not hasattr(self, "slow"):
            self._loop = IOLoop.current().asyncio_loop  # type: ignore[attr-defined]  # every IOLoop of Tornado 6 has it
            self.slow = Slow(self._loop, self._slow_bytes)
        for one in sockets:
            one.setblocking(False)
            self._listening[one] = False
        self._accept_again()

    def wind_down(self) -> None:
        """From now on each connection ends with its next answer."""
        self.closing = True
        self.turn_away = _never  # its answers keep connections open

    def stop(self) -> None:
        """Accepts no more connections. Open ones end with their next answer."""
        self.wind_down()
        # Accept those who have connected: closing a socket resets the connections that wait at it.
        for one, accepting in self._listening.items():
            if accepting:
                self._accept(one)
        self._pause_accepting()
        for one in self._listening:
            one.close()
        self._listening.clear()

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def at_work(self) -> bool:
        """Whether a request, with a complete head, is unanswered."""
        return any(one.at_work for one in self._open)

    def expects(self, seconds: float) -> bool:
        """Whether another request is likely to arrive soon: a connection was opened or answered within the last
        `seconds`, or has sent part of a head."""
        since = self._loop.time() - seconds
        return bool(self._arriving) or any(one.expects(since) for one in self._open)

    async def close_all_connections(self) -> None:
        """Closes all connections, and waits until they are gone. Cuts requests in progress; complete answers get a
        moment to reach the client."""
        await asyncio.sleep(0)  # connections that were just accepted start their setup
        arriving = list(self._arriving.values())
        if self._tls:  # a client may draw out a handshake
            for task in arriving:
                task.cancel()
        # Without TLS the setup takes two turns of the loop. On uvloop, a connection that is cut between them never
        # learns that it is lost.
        await asyncio.gather(*arriving, return_exceptions=True)
        for connection in list(self._open):
            connection.leave()
        self._empty = asyncio.get_running_loop().create_future()
        self._tell_empty()
        await asyncio.wait([self._empty], timeout=LEAVING_SECONDS)
        for connection in list(self._open):
            connection.close()
        await self._empty

    def _accept_again(self) -> None:
        self._full = False
        for one, accepting in self._listening.items():
            if not accepting:
                self._listening[one] = True
                self._loop.add_reader(one.fileno(), self._accept, one)

    def _pause_accepting(self) -> None:
        for one, accepting in self._listening.items():
            if accepting:
                self._listening[one] = False
                self._loop.remove_reader(one.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for turn in range(ACCEPTED_AT_ONCE):
            if self._most is not None and len(self._open) + len(self._arriving) >= self._most:
                if turn == 0:  # the only turn in which a client surely waits
                    self._full = True
                    self._pause_accepting()
                    self._make_room()
                return
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # mostly: too many open files
                gen_log.error("Cannot accept a connection: %s", error.strerror)
                self._pause_accepting()
                self._loop.call_later(RETRY_SECONDS, self._accept_again)
                return
            accepted.setblocking(False)
            protocol = self.protocol or ("https" if self._tls else "http")
            context = context_of(accepted, address, protocol, self.trusted_downstream)
            self._arriving[context] = self._loop.create_task(self._receive(accepted, context))

    async def _receive(self, accepted: socket.socket, context: object) -> None:
        """Makes a connection of what was accepted, TLS handshake included."""
        try:
            await self._loop.connect_accepted_socket(
                lambda: Connection(self, self._loop, context),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            )
        except ssl.SSLError as error:
            gen_log.warning("SSL Error from %s: %s", context, error)
        except OSError:  # the client is gone
            accepted.close()
        finally:
            self._arriving.pop(context, None)

    # The limit.

    def _make_room(self) -> None:
        """Ends idle connections, the longest idle first. If there are none, ends those that have been slow for a
        while."""
        idle = [(patience, id(one), one) for one in self._open if (patience := one.patience()) is not None]
        for _, _, one in sorted(idle)[: min(MOST_EVICTED, len(idle) // 8 + 1)]:
            one.close()
        if not idle and len(self.slow):
            self.slow.make_room(MOST_EVICTED)
            # No event reports that a connection has been slow for long enough.
            self._loop.call_later(RETRY_SECONDS, self._look_again)

    def _look_again(self) -> None:
        if self._full:
            self._accept_again()

    def opened(self, connection: OpenConnection) -> None:
        """Called by a new connection."""
        self._open.add(connection)
        self._arriving.pop(connection.context, None)

    def idle(self) -> None:
        """Called by a connection that waits for the next request: it can make room for another."""
        if self._full:
            self._accept_again()

    def on_close(self, server_conn: object) -> None:
        """Called by a connection that is closed."""
        assert isinstance(server_conn, Connection)
        self._open.discard(server_conn)
        if isinstance(self.request_callback, HTTPServerConnectionDelegate):
            self.request_callback.on_close(server_conn)
        self._accept_again()
        self._tell_empty()

    def _tell_empty(self) -> None:
        if self._empty is not None and not self._open and not self._empty.done():
            self._empty.set_result(None)

    # Requests.

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Returns the delegate for a request."""
        delegate = super().start_request(server_conn, request_conn)
        if self.conn_params.decompress:
            delegate = unzipping(delegate, self.limits.piece_bytes, self.limits.body_bytes)
        return delegate


def _never(head: bytes) -> None:
    """Nothing is turned away."""
