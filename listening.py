"""Sockets, and the HTTP server on them that the settings name."""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
from dataclasses import dataclass

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from front import FrontServer
from front.files import room_for
from handlers.base import Latchkey
from settings import Settings
from store.errors import StartupError

log = logging.getLogger("latchkey")

# A connection without a request, longer than proxies keep one (60 s is common); the head of a request; its body.
IDLE_SECONDS = 75.0
HEAD_SECONDS = 20.0
BODY_SECONDS = 60.0
# Files that are open beside connections of clients: connections of the store and of model servers, sockets, logs.
OTHER_FILES = 256


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


@dataclass(frozen=True)
class Listening:
    """An application and the server it is served by."""

    application: Latchkey
    server: HTTPServer

    @classmethod
    def start(cls, application: Latchkey, sockets: list[socket.socket], settings: Settings, max_body: int) -> Listening:
        """Takes connections; a body beyond `max_body` bytes is cut off."""
        server = make_server(application, settings, max_body)
        server.add_sockets(sockets)
        return cls(application, server)


def make_server(application: Latchkey, settings: Settings, max_body: int) -> HTTPServer:
    """The HTTP server, not listening yet."""
    options = {
        "max_body_size": max_body,
        "body_timeout": BODY_SECONDS,
        "idle_connection_timeout": IDLE_SECONDS,
    }
    if settings.http == "tornado":
        return HTTPServer(application, **options)
    connections = room_for(settings.connections, OTHER_FILES + settings.redis_connections)
    if connections < settings.connections:
        log.warning("the limit of open files leaves room for %d connections", connections)
    return FrontServer(application, connections=connections, head_timeout=HEAD_SECONDS, **options)
