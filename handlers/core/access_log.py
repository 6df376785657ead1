"""What the log says of each request."""

from __future__ import annotations

from typing import Any

from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from observability.logs import LogMessage
from observability.tracing import put_known, request_id

_READ = 1000
"""Characters of a path, up to the end of a segment, that are looked at: 200 of them are shown."""


def shown(path: str) -> str:
    """A path as a log may hold it: bounded, on one line, and without a segment that may be an e-mail address, as an app
    may have called a document."""
    end = path.find("/", _READ)
    if end > 0:
        path = path[:end]
    if "@" in path or "%40" in path:
        path = "/".join("*@*" if "@" in part or "%40" in part else part for part in path.split("/"))
    return path[:200].encode("unicode_escape").decode("ascii")


def method_of(request: HTTPServerRequest) -> str:
    """The method as a log may hold it: a client can make up one that fills the head of a request."""
    return (request.method or "")[:20]


class Access(LogMessage):
    """One line a request: method, path without its query, status, time in ms, id; in JSON the route too, the app and
    the bytes of the answer's body, where they are known. Nothing in it is secret."""

    __slots__ = ("_handler", "_ms", "_status")

    def __init__(self, handler: RequestHandler, seconds: float) -> None:
        self._handler = handler
        self._status = handler.get_status()
        self._ms = 1000 * seconds

    def __str__(self) -> str:
        request = self._handler.request
        return f"{self.words()} {self._ms:.1f}ms [{request_id(request)}]"

    def words(self) -> str:
        """The message: the fields have the rest."""
        request = self._handler.request
        return f"{method_of(request)} {shown(request.path)} {self._status}"

    def put_fields(self, line: dict[str, Any]) -> None:
        """As the class says."""
        handler: Any = self._handler
        request = handler.request
        put_known(line, request)
        line["method"] = method_of(request)
        if handler.policy.route:
            line["route"] = handler.policy.route
        line["path"] = shown(request.path)
        line["status"] = self._status
        line["duration_ms"] = round(self._ms, 3)
        if handler.counted_app:
            line["client_id"] = handler.counted_app
        size = _body_bytes(handler)
        if size is not None:
            line["bytes"] = size


def _body_bytes(handler: Any) -> int | None:
    """Of the answer, as far as it is known: of a stream, what was handed on."""
    if handler.request.method == "HEAD":
        return 0
    length = handler._headers.get_list("Content-Length")
    if length:
        return int(length[0])
    streamed: int | None = getattr(handler, "streamed", None)
    return streamed or None
