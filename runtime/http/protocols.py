"""The interfaces between the server and its connections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tornado.httputil import HTTPConnection, HTTPMessageDelegate

from runtime.http.slow import Slow


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection and of each request on it."""

    head_bytes: int
    body_bytes: int
    piece_bytes: int
    """Bytes of a body that are read at once."""
    idle_seconds: float
    head_seconds: float
    body_seconds: float | None
    stall_seconds: float


class OpenConnection(Protocol):
    """A connection, as its server sees it."""

    @property
    def context(self) -> object:
        """The client's address, in the form that Tornado's requests need."""

    @property
    def at_work(self) -> bool:
        """Whether a request is unanswered."""

    def patience(self) -> float | None:
        """When the connection is cut if nothing arrives, in the loop's time; None while a request is in progress."""

    def expects(self, since: float) -> bool:
        """Whether it was opened or answered after `since`, in the loop's time, or has sent part of a head."""

    def leave(self) -> None:
        """Closes the connection once all output is sent, or at once if a request is in progress."""

    def close(self) -> None:
        """Cuts the connection and drops unsent output."""


class Server(Protocol):
    """The server, as a connection sees it."""

    limits: ConnectionLimits
    slow: Slow
    closing: bool
    """Whether each connection ends with its next answer."""
    turn_away: Callable[[bytes], bytes | None]
    """The whole answer to a head that has arrived alone, before it is parsed; None for the usual path."""
    refusal_fields: Callable[[], bytes]
    """Header lines for the answer to a request that cannot be read."""

    def opened(self, connection: OpenConnection) -> None:
        """Called by a new connection."""

    def idle(self) -> None:
        """Called by a connection that has answered and waits for the next request."""

    def on_close(self, server_conn: object) -> None:
        """Called by a connection that is closed."""

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Returns the delegate for a request."""
