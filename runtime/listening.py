"""Sockets, and the HTTP server on them that the settings name."""

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
from runtime.http.files import room_for
from runtime.http.plain_server import PlainServer
from runtime.http.server import HttpServer
from settings.declared import Settings
from store.errors import StartupError

log = logging.getLogger("latchkey")

# Files that are open beside connections of clients: connections of the store and of model servers, sockets, logs.
OTHER_FILES = 256
# Connections that wait to be accepted at one socket, as with `bind_sockets`.
BACKLOG = 128
# What connections that have arrived get until they are accepted, where there is room for them.
ACCEPT_SECONDS = 1.0
# What a handshake that has begun gets to end, where another server takes those that come later.
HANDSHAKE_SECONDS = 0.25
# What a client that was answered a moment ago gets to come with its next request.
NEXT_SECONDS = 0.5
POLL_SECONDS = 0.02


def raise_open_files() -> None:
    """As many open files as the system lets this process have: each connection is one, a streamed AI call two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS names a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bind(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Listening sockets; `localhost` is both loopback addresses, whatever the resolver says. `shared`: beside those of
    another process of the same user that shares, too; they listen only after `take_connections`. Raises
    StartupError."""
    try:
        return bind_loopback(port, shared) if host == "localhost" else _bind(port, host, shared)
    except (OSError, ValueError, AttributeError) as error:  # AttributeError: a system without SO_REUSEPORT
        raise StartupError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None


def bind_loopback(port: int, shared: bool = False) -> list[socket.socket]:
    """One port on 127.0.0.1 and, where the host has it, on ::1. Raises OSError, also when only one of the two is free:
    whoever has the other one would get what browsers send to localhost."""
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
    # Where another server listens on the port, this one would get its share of the connections before it can serve
    # them; and if it does not come so far, they would be lost.
    found: list[socket.socket] = []
    for family, _, _, _, address in sorted(set(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))):
        found.append(_sharing(family, (address[0], found[0].getsockname()[1] if found else port, *address[2:])))
    return found


def take_connections(sockets: Iterable[socket.socket]) -> None:
    """From now on these sockets listen, if they did not yet. Raises OSError."""
    for one in sockets:
        one.listen(BACKLOG)


def for_each_worker(sockets: list[socket.socket], workers: int) -> list[list[socket.socket]]:
    """As many sets of listening sockets, `sockets` the first, the others on the same addresses: the system spreads new
    connections over them. Elsewhere than on Linux it would not, and it is the same set for all. Raises StartupError.

    The first ones were bound alone, which fails where anybody listens; only now they let others join them. Linux
    permits that, and joins sockets of the same user only.
    """
    if sys.platform != "linux":
        return [sockets] * workers
    try:
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return [sockets, *([_beside(one) for one in sockets] for _ in range(workers - 1))]
    except OSError as error:
        raise StartupError(f"cannot listen with each worker: {error.strerror or error}") from None


def _beside(one: socket.socket) -> socket.socket:
    """Another listening socket on its address."""
    other = _sharing(one.family, one.getsockname())
    other.listen(BACKLOG)
    return other


def _sharing(family: int, address: tuple[Any, ...]) -> socket.socket:
    """A socket that shares this address, and does not listen yet."""
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.setblocking(False)
    one.bind(address)
    return one


# Classic BPF on the TCP header: nothing of a segment that begins a handshake (SYN without ACK), all of any other.
_NO_NEW = (
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x54, 0, 0, 0x12),  # SYN and ACK of it
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFF),  # take
)
_SO_ATTACH_FILTER = 26


def begin_no_more(listening: socket.socket) -> None:
    """From now on no handshake begins at this socket; what has begun can end. Who comes meanwhile knocks again after a
    second, and finds another server that listens on the port, or none. Without Linux it changes nothing."""
    if not sys.platform.startswith("linux"):
        return
    program = array("B", b"".join(struct.pack("HBBI", *step) for step in _NO_NEW))
    filter_ = struct.pack("HP", len(_NO_NEW), program.buffer_info()[0])  # struct sock_fprog
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


@dataclass(frozen=True)
class Listening:
    """An application and the server it is served by, on these sockets."""

    application: Latchkey
    server: HTTPServer
    sockets: list[socket.socket]

    @classmethod
    def start(cls, application: Latchkey, sockets: list[socket.socket], settings: Settings, max_body: int) -> Listening:
        """Takes connections; a body beyond `max_body` bytes is cut off."""
        application.admit(settings.requests)
        server = make_server(application, settings, max_body)
        take_connections(sockets)
        server.add_sockets(sockets)
        return cls(application, server, sockets)

    def adjust(self, settings: Settings, max_body: int) -> None:
        """Takes up other limits."""
        self.application.admit(settings.requests)
        params: Any = self.server.conn_params
        options = _options(settings, max_body)
        params.max_body_size, params.max_header_size = options["max_body_size"], options["max_header_size"]
        params.body_timeout, params.header_timeout = options["body_timeout"], options["idle_connection_timeout"]
        if isinstance(self.server, HttpServer):
            self.server.adjust(**_http_options(settings))

    def wind_down(self) -> None:
        """From now on an answer ends its connection, and whoever asks is told that the process is about to stop."""
        self.application.draining = True
        self.server.conn_params.no_keep_alive = True
        if isinstance(self.server, HttpServer):
            self.server.wind_down()

    async def leave(self, *, shared: bool) -> None:
        """Listens no more. Whoever has connected is accepted first: the system resets what still waits at a socket
        that is closed. `shared`: another server takes those that come from now on."""
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
        """Whether a client that was served a moment ago may have sent another request; `left_for`: the seconds since
        nobody can connect any more."""
        if isinstance(self.server, HttpServer):
            return self.server.expects(NEXT_SECONDS)
        return bool(self.server._connections) and left_for < NEXT_SECONDS

    @property
    def connections(self) -> int:
        """Those that are open."""
        server = self.server
        return server.open_connections if isinstance(server, HttpServer) else len(server._connections)

    def at_work(self) -> bool:
        """Whether there is something to wait for before the end."""
        if self.application.in_flight or self.application.site.tasks:
            return True
        return isinstance(self.server, HttpServer) and self.server.at_work()


async def drain(servers: Sequence[Listening], seconds: float) -> None:
    """Waits until nothing is at work any more, and nobody is likely to send something; at most so long."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (passed := loop.time() - began) < seconds and any(one.at_work() or one.expects(passed) for one in servers):
        await asyncio.sleep(POLL_SECONDS)


def make_server(application: Latchkey, settings: Settings, max_body: int) -> HTTPServer:
    """The HTTP server, not listening yet."""
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
