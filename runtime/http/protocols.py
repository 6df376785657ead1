"""What the server and its connections know of each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tornado.httputil import HTTPConnection, HTTPMessageDelegate

from runtime.http.slow import Slow


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Of one connection and request."""

    head_bytes: int
    body_bytes: int
    piece_bytes: int
    """Of a body, at once."""
    idle_seconds: float
    head_seconds: float
    body_seconds: float | None
    stall_seconds: float


class OpenConnection(Protocol):
    """A connection, as its server sees it."""

    @property
    def context(self) -> object:
        """The client's address, as Tornado's requests take it."""

    @property
    def at_work(self) -> bool:
        """Whether there is a request that was not answered yet."""

    def patience(self) -> float | None:
        """When it is cut unless something arrives, in the loop's time; None where a request is at work."""

    def expects(self, since: float) -> bool:
        """Whether it was opened or answered after this moment, in the loop's time, or has sent half a head."""

    def leave(self) -> None:
        """Ends it when what is to go out has gone out; at once where a request is at work."""

    def close(self) -> None:
        """Cuts it, with whatever has not gone out."""


class Server(Protocol):
    """The server of a connection, as that sees it."""

    limits: ConnectionLimits
    slow: Slow
    closing: bool
    """Whether an answer ends its connection."""
    turn_away: Callable[[bytes], bytes | None]
    """The whole answer to a head that has arrived alone, before it is read; None stands for the usual way."""
    refusal_fields: Callable[[], bytes]
    """The fields that go with the refusal of a request that cannot be read, as lines."""

    def opened(self, connection: OpenConnection) -> None:
        """A connection is there."""

    def idle(self) -> None:
        """A connection has answered, and nothing has come since."""

    def on_close(self, server_conn: object) -> None:
        """A connection is gone."""

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """The delegate of a request."""
