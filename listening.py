"""Sockets, and the HTTP server on them that the settings name."""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
import sys
from dataclasses import dataclass

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from front import FrontServer
from front.files import room_for
from handlers.application import Latchkey
from settings import Settings
from store.errors import StartupError

log = logging.getLogger("latchkey")

# Files that are open beside connections of clients: connections of the store and of model servers, sockets, logs.
OTHER_FILES = 256
# Connections that wait to be accepted at one socket, as with `bind_sockets`.
BACKLOG = 128


def raise_open_files() -> None:
    """As many open files as the system lets this process have: each connection is one, a streamed AI call two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS names a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets; `localhost` is both loopback addresses, whatever the resolver says. Raises StartupError."""
    try:
        return bind_loopback(port) if host == "localhost" else bind_sockets(port, host)
    except OSError as error:
        raise StartupError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def bind_loopback(port: int) -> list[socket.socket]:
    """One port on 127.0.0.1 and, where the host has it, on ::1. Raises OSError, also when only one of the two is free:
    whoever has the other one would get what browsers send to localhost."""
    sockets = bind_sockets(port, "127.0.0.1")
    try:
        return sockets + bind_sockets(sockets[0].getsockname()[1], "::1")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:  # a host without IPv6
            return sockets
        sockets[0].close()
        if port:
            raise
    return bind_loopback(0)


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
    other = socket.socket(one.family, socket.SOCK_STREAM)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if one.family == socket.AF_INET6:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    other.setblocking(False)
    other.bind(one.getsockname())
    other.listen(BACKLOG)
    return other


@dataclass(frozen=True)
class Listening:
    """An application and the server it is served by."""

    application: Latchkey
    server: HTTPServer

    @classmethod
    def start(cls, application: Latchkey, sockets: list[socket.socket], settings: Settings, max_body: int) -> Listening:
        """Takes connections; a body beyond `max_body` bytes is cut off."""
        application.admit(settings.requests)
        server = make_server(application, settings, max_body)
        server.add_sockets(sockets)
        return cls(application, server)

    def at_work(self) -> bool:
        """Whether there is something to wait for before the end."""
        if self.application.in_flight or self.application.site.tasks:
            return True
        return isinstance(self.server, FrontServer) and self.server.at_work()


def make_server(application: Latchkey, settings: Settings, max_body: int) -> HTTPServer:
    """The HTTP server, not listening yet."""
    options = {
        "max_body_size": max_body,
        "max_header_size": settings.max_head,
        "body_timeout": settings.body_timeout,
        "idle_connection_timeout": settings.idle_timeout,
    }
    if settings.http == "tornado":
        return HTTPServer(application, **options)
    connections = room_for(settings.connections, OTHER_FILES + settings.redis_connections)
    if connections < settings.connections:
        log.warning("the limit of open files leaves room for %d connections", connections)
    return FrontServer(
        application,
        connections=connections,
        head_timeout=settings.head_timeout,
        stall_timeout=settings.write_timeout,
        slow_bytes=settings.slow_memory,
        **options,
    )
