"""Accepts connections, up to a bound, and knows those that are open."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from tornado.concurrent import Future
from tornado.http1connection import _GzipMessageDelegate
from tornado.httpserver import HTTPServer, _HTTPRequestContext
from tornado.httputil import HTTPConnection, HTTPMessageDelegate, HTTPServerConnectionDelegate
from tornado.ioloop import IOLoop
from tornado.log import gen_log
from tornado.netutil import ssl_options_to_context

from runtime.http.connection import Connection
from runtime.http.protocols import ConnectionLimits, OpenConnection
from runtime.http.slow import Slow

ACCEPTED_AT_ONCE = 64
RETRY_SECONDS = 1.0
HANDSHAKE_SECONDS = 30.0
LEAVING_SECONDS = 2.0
STALL_SECONDS = 60.0
SLOW_BYTES = 2**27
# One connection that makes room for another is sought among all: they go by the dozen.
MOST_EVICTED = 32


class HttpServer(HTTPServer):
    """Takes the arguments of `tornado.httpserver.HTTPServer`, and four more: at most `connections` are open (None: as
    many as come); `head_timeout` is how long the head of a request may take from its first byte on, in seconds;
    `stall_timeout` the time in which a client takes what is ready for it, or a good part; `slow_bytes` how much is held
    for clients that are slow.

    At the bound, idle connections make room for new ones, then those that have been slow for a while; where there is
    none, new ones wait until they are accepted.

    An application that has a method `turn_away` is shown each head that has arrived alone, before it is read: what that
    returns is the whole answer, and the connection is kept; None stands for the usual way. It must be None wherever a
    body may follow, or the connection is not to be kept. One that has a method `refusal_fields` says which fields, as
    lines of bytes, go with the refusal of a request that cannot be read.
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
        """As the class says."""
        super().initialize(*args, **options)
        self.limits = self._limits(head_timeout, stall_timeout)
        self.closing = self.conn_params.no_keep_alive
        """Whether an answer ends its connection."""
        self._slow_bytes = slow_bytes
        self._most = connections
        # Whether somebody waits since there are as many connections as may be.
        self._full = False
        self._tls = ssl_options_to_context(self.ssl_options, server_side=True) if self.ssl_options is not None else None
        self.turn_away: Callable[[bytes], bytes | None] = getattr(self.request_callback, "turn_away", _never)
        self.refusal_fields: Callable[[], bytes] = getattr(self.request_callback, "refusal_fields", bytes)
        self._listening: dict[socket.socket, bool] = {}
        # By the context of the connection that they become: not counted twice.
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
        """Other bounds, and those that `conn_params` has now: for what comes next, on open connections too. How long a
        client may stall stays as it was when it connected."""
        self.limits = self._limits(head_timeout, stall_timeout)
        self._most, self.slow.most = connections, slow_bytes
        self._accept_again()

    # Listening.

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Accepts connections on them, and closes them in the end."""
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
        self.turn_away = _never  # what that returns does not say so

    def stop(self) -> None:
        """Accepts no more connections. Those that are open end with their next answer."""
        self.wind_down()
        # Who has connected is served: what waits at a socket that is closed is reset.
        for one, accepting in self._listening.items():
            if accepting:
                self._accept(one)
        self._pause_accepting()
        for one in self._listening:
            one.close()
        self._listening.clear()

    @property
    def open_connections(self) -> int:
        """How many there are."""
        return len(self._open)

    def at_work(self) -> bool:
        """Whether a request was begun, with its head, and not answered yet."""
        return any(one.at_work for one in self._open)

    def expects(self, seconds: float) -> bool:
        """Whether a connection was opened or answered within so many seconds, or has sent half a head: a request is
        likely to be on its way."""
        since = self._loop.time() - seconds
        return bool(self._arriving) or any(one.expects(since) for one in self._open)

    async def close_all_connections(self) -> None:
        """Ends them all, and waits until they are gone. A request at work is cut; an answer that is complete is given
        a moment to reach its client."""
        await asyncio.sleep(0)  # what was accepted just now has begun to be a connection
        arriving = list(self._arriving.values())
        if self._tls:  # a handshake takes as long as the client likes
            for task in arriving:
                task.cancel()
        # Without TLS it takes two turns of the loop. Cut between them, it would be a connection that is never told that
        # it is lost, on uvloop.
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
                if turn == 0:  # only then somebody is waiting for certain
                    self._full = True
                    self._pause_accepting()
                    self._make_room()
                return
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more files can be opened, mostly
                gen_log.error("Cannot accept a connection: %s", error.strerror)
                self._pause_accepting()
                self._loop.call_later(RETRY_SECONDS, self._accept_again)
                return
            accepted.setblocking(False)
            context = _HTTPRequestContext(
                _Peer(accepted),  # type: ignore[arg-type]  # of the stream it is the socket that is looked at
                address,
                self.protocol or ("https" if self._tls else "http"),
                self.trusted_downstream,
            )
            self._arriving[context] = self._loop.create_task(self._receive(accepted, context))

    async def _receive(self, accepted: socket.socket, context: _HTTPRequestContext) -> None:
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

    # The bound.

    def _make_room(self) -> None:
        """Ends connections that are idle, the longest first; where there are none, those that have been slow for a
        while."""
        idle = [(patience, id(one), one) for one in self._open if (patience := one.patience()) is not None]
        for _, _, one in sorted(idle)[: min(MOST_EVICTED, len(idle) // 8 + 1)]:
            one.close()
        if not idle and len(self.slow):
            self.slow.make_room(MOST_EVICTED)
            # Nobody tells when one of them has been slow for long enough.
            self._loop.call_later(RETRY_SECONDS, self._look_again)

    def _look_again(self) -> None:
        if self._full:
            self._accept_again()

    def opened(self, connection: OpenConnection) -> None:
        """A connection is there."""
        self._open.add(connection)
        self._arriving.pop(connection.context, None)

    def idle(self) -> None:
        """A connection has answered, and nothing has come since: it can make room for who waits."""
        if self._full:
            self._accept_again()

    def on_close(self, server_conn: object) -> None:
        """A connection is gone."""
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
        """The delegate of a request."""
        delegate = super().start_request(server_conn, request_conn)
        if self.conn_params.decompress:
            delegate = _GzipMessageDelegate(delegate, self.limits.piece_bytes, self.limits.body_bytes)
        return delegate


def _never(head: bytes) -> None:
    """Nothing is turned away."""


class _Peer:
    """What `_HTTPRequestContext` looks at of a stream."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
