"""Sockets, and the HTTP server on them that the settings choose."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import select
import socket
import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from handlers.core.application import Latchkey
from handlers.core.long.bodies import LONG_REQUEST
from runtime.http.files import room_for
from runtime.http.plain_server import PlainServer
from runtime.http.server import HttpServer
from runtime.http.tornado_private import open_connections
from settings.declared import Settings
from store.errors import StartupError

log = logging.getLogger("latchkey")

# Open files other than clients' connections: connections to the store and to model servers, sockets, logs.
OTHER_FILES = 256
# Connections that may wait to be accepted at one socket, the same as with `bind_sockets`.
BACKLOG = 128
# Seconds to accept connections that have arrived, while there is room for them.
ACCEPT_SECONDS = 1.0
# Seconds for a handshake in progress to end, while another server takes new ones.
HANDSHAKE_SECONDS = 0.25
# Seconds for a client that was just answered to send its next request.
NEXT_SECONDS = 0.5
POLL_SECONDS = 0.02
# A body larger than `max_body` gets an answer that says so. A body larger than this many times `max_body` is cut off,
# because parsing a form blocks the event loop.
ABSURD_BODIES = 4


def raise_open_files() -> None:
    """Raises the limit of open files as far as the system allows: a connection is one file, a streamed AI call two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS reports a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bind(host: str, port: int, *, shared: bool = False, option: str = "--port") -> list[socket.socket]:
    """Listening sockets. `localhost` means both loopback addresses, whatever the resolver says. `shared`: another
    process of the same user may listen on the same port, and these sockets listen only after `take_connections`.
    `option` is the flag that sets the port. Raises StartupError, which names it for a port that is taken."""
    try:
        return bind_loopback(port, shared) if host == "localhost" else _bind(port, host, shared)
    except (OSError, ValueError, AttributeError) as error:  # AttributeError: a system without SO_REUSEPORT
        reason = getattr(error, "strerror", None) or error
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            reason = f"{reason}. Choose another port with {option}"
        raise StartupError(f"cannot listen on {host}:{port}: {reason}") from None


def bind_loopback(port: int, shared: bool = False) -> list[socket.socket]:
    """One port on 127.0.0.1 and, if the host has it, on ::1. Raises OSError, even if only one of the two is taken: the
    process that has it would receive what browsers send to localhost."""
    sockets = _bind(port, "127.0.0.1", shared)
    try:
        return sockets + _bind(sockets[0].getsockname()[1], "::1", shared)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:  # a host without IPv6
            return sockets
        sockets[0].close()
        if port:
            raise
    return bind_loopback(0, shared)


def _bind(port: int, host: str, shared: bool) -> list[socket.socket]:
    """Raises OSError, ValueError."""
    if not shared:
        return bind_sockets(port, host)
    # If another server listens on the port, this one would get a share of its connections before it can serve them. If
    # this start failed, those connections would be lost.
    found: list[socket.socket] = []
    for family, _, _, _, address in sorted(set(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))):
        found.append(_sharing(family, (address[0], found[0].getsockname()[1] if found else port, *address[2:])))
    return found


def take_connections(sockets: Iterable[socket.socket]) -> None:
    """Makes the sockets listen if they don't yet. Raises OSError."""
    for one in sockets:
        if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            one.listen(BACKLOG)


def for_each_worker(sockets: list[socket.socket], workers: int, *, shared: bool = False) -> list[list[socket.socket]]:
    """One set of listening sockets for each worker, `sockets` first, on the same addresses. Linux spreads new
    connections over the sets. Other systems don't, so there all workers share one set, as they do if `shared`: sockets
    that systemd bound let no others join. Raises StartupError.

    The first set was bound alone, because that fails if another process listens. Only now it lets others join. Linux
    permits this, and lets only the same user's sockets join.
    """
    if shared or sys.platform != "linux":
        return [sockets] * workers
    try:
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return [sockets, *([_another(one) for one in sockets] for _ in range(workers - 1))]
    except OSError as error:
        raise StartupError(f"cannot listen with each worker: {error.strerror or error}") from None


def _another(one: socket.socket) -> socket.socket:
    """Another listening socket on the address of `one`."""
    other = _sharing(one.family, one.getsockname())
    other.listen(BACKLOG)
    return other


def _sharing(family: int, address: tuple[Any, ...]) -> socket.socket:
    """A socket that shares the address and does not listen yet."""
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.setblocking(False)
    one.bind(address)
    return one


# Classic BPF on the TCP header: drops a segment that begins a handshake (SYN without ACK), takes all others.
_NO_NEW = (
    (0x30, 0, 0, 13),  # load the byte with the flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFF),  # take
)
_SO_ATTACH_FILTER = 26


def begin_no_more(listening: socket.socket) -> None:
    """Stops new handshakes at the socket; those in progress can end. A refused client retries after a second and
    reaches another server on the port, if there is one. Has no effect outside Linux."""
    if not sys.platform.startswith("linux"):
        return
    program = array("B", b"".join(struct.pack("HBBI", *step) for step in _NO_NEW))
    filter_ = struct.pack("HP", len(_NO_NEW), program.buffer_info()[0])  # struct sock_fprog
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


@dataclass(frozen=True)
class Listening:
    """An application, its HTTP server and its sockets."""

    application: Latchkey
    server: HTTPServer
    sockets: list[socket.socket]

    @classmethod
    def start(cls, application: Latchkey, sockets: list[socket.socket], settings: Settings, max_body: int) -> Listening:
        """Accepts connections. A body longer than `max_body` bytes is cut off."""
        application.admit(settings.requests)
        server = make_server(application, settings, max_body)
        take_connections(sockets)
        server.add_sockets(sockets)
        return cls(application, server, sockets)

    def adjust(self, settings: Settings, max_body: int) -> None:
        """Applies new limits."""
        self.application.admit(settings.requests)
        params: Any = self.server.conn_params
        options = _options(settings, max_body)
        params.max_body_size, params.max_header_size = options["max_body_size"], options["max_header_size"]
        params.body_timeout, params.header_timeout = options["body_timeout"], options["idle_connection_timeout"]
        if isinstance(self.server, HttpServer):
            self.server.adjust(**_http_options(settings))

    def wind_down(self) -> None:
        """From now on each answer ends its connection, and health checks report that the process is stopping."""
        self.application.draining = True
        self.server.conn_params.no_keep_alive = True
        if isinstance(self.server, HttpServer):
            self.server.wind_down()

    async def leave(self, *, shared: bool) -> None:
        """Stops listening. Accepts connected clients first, because closing a socket resets connections that wait at
        it. `shared`: another server takes new connections."""
        loop = asyncio.get_running_loop()
        until = loop.time() + ACCEPT_SECONDS
        if shared:
            for one in self.sockets:
                begin_no_more(one)
            await asyncio.sleep(HANDSHAKE_SECONDS)
        waiting = select.poll()
        for one in self.sockets:
            waiting.register(one, select.POLLIN)
        while waiting.poll(0) and loop.time() < until:
            await asyncio.sleep(0)
        self.server.stop()

    def expects(self, left_for: float) -> bool:
        """Whether a client that was just served may have sent another request. `left_for`: seconds since new
        connections became impossible."""
        if isinstance(self.server, HttpServer):
            return self.server.expects(NEXT_SECONDS)
        return bool(open_connections(self.server)) and left_for < NEXT_SECONDS

    @property
    def connections(self) -> int:
        """The number of open connections."""
        server = self.server
        return server.open_connections if isinstance(server, HttpServer) else open_connections(server)

    def at_work(self) -> bool:
        """Whether shutdown must wait for a request."""
        if self.application.in_flight or self.application.site.tasks:
            return True
        return isinstance(self.server, HttpServer) and self.server.at_work()


async def drain(servers: Sequence[Listening], seconds: float) -> None:
    """Waits until no request is in progress or likely to arrive, for at most `seconds`."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (passed := loop.time() - began) < seconds and any(one.at_work() or one.expects(passed) for one in servers):
        await asyncio.sleep(POLL_SECONDS)


def body_bounds(settings: Settings) -> tuple[int, int]:
    """The bytes at which a body is cut off: for the service, and for the operations port."""
    bodies = ABSURD_BODIES * settings.max_body
    # AI calls with longer bodies set their own limit, before the body is read.
    calls = 2 * min(settings.ai_request_size, LONG_REQUEST)
    return max(bodies, 2 * settings.document_size, calls), bodies


def make_server(application: Latchkey, settings: Settings, max_body: int) -> HTTPServer:
    """The HTTP server, before it listens."""
    options = _options(settings, max_body)
    if settings.http == "tornado":
        return PlainServer(application, **options)
    return HttpServer(application, **_http_options(settings), **options)


def _options(settings: Settings, max_body: int) -> dict[str, Any]:
    return {
        "max_body_size": max_body,
        "max_header_size": settings.max_head,
        "body_timeout": settings.body_timeout,
        "idle_connection_timeout": settings.idle_timeout,
    }


def _http_options(settings: Settings) -> dict[str, Any]:
    connections = room_for(settings.connections, OTHER_FILES + settings.redis_connections)
    if connections < settings.connections:
        log.warning("the limit of open files leaves room for %d connections", connections)
    return {
        "connections": connections,
        "head_timeout": settings.head_timeout,
        "stall_timeout": settings.write_timeout,
        "slow_bytes": settings.slow_memory,
    }
