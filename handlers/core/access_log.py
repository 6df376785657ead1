"""The log line of each request."""

from __future__ import annotations

from typing import Any

from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from observability.logs import LogMessage
from observability.tracing import put_known, request_id
from runtime.http.tornado_private import answer_fields

_READ = 1000
"""Characters of a path, up to the end of a segment, that are read; 200 of them are shown."""


def shown(path: str) -> str:
    """A path that is safe to log: short, on one line, and without segments that may be e-mail addresses. An app may
    have put an address into the name of a document."""
    end = path.find("/", _READ)
    if end > 0:
        path = path[:end]
    if "@" in path or "%40" in path:
        path = "/".join("*@*" if "@" in part or "%40" in part else part for part in path.split("/"))
    return path[:200].encode("unicode_escape").decode("ascii")


def method_of(request: HTTPServerRequest) -> str:
    """The method, safe to log: a client can send one that fills the whole head."""
    return (request.method or "")[:20]


class Access(LogMessage):
    """One line a request: method, path without the query, status, time in ms, id. JSON also has the route, the app and
    the bytes of the answer's body, where known. Contains no secrets."""

    __slots__ = ("_handler", "_ms", "_status")

    def __init__(self, handler: RequestHandler, seconds: float) -> None:
        self._handler = handler
        self._status = handler.get_status()
        self._ms = 1000 * seconds

    def __str__(self) -> str:
        request = self._handler.request
        return f"{self.words()} {self._ms:.1f}ms [{request_id(request)}]"

    def words(self) -> str:
        """The message. The fields have the rest."""
        request = self._handler.request
        return f"{method_of(request)} {shown(request.path)} {self._status}"

    def put_fields(self, line: dict[str, Any]) -> None:
        """See the class."""
        handler: Any = self._handler
        request = handler.request
        put_known(line, request)
        line["method"] = method_of(request)
        if handler.policy.route:
            line["route"] = handler.policy.route
        line["path"] = shown(request.path)
        line["status"] = self._status
        line["duration_ms"] = round(self._ms, 3)
        if client_id := handler.counted_app or handler.counted_api:
            line["client_id"] = client_id
        size = _body_bytes(handler)
        if size is not None:
            line["bytes"] = size


def _body_bytes(handler: Any) -> int | None:
    """Bytes of the answer's body, if known; of a stream, the bytes sent so far."""
    if handler.request.method == "HEAD":
        return 0
    length = answer_fields(handler).get_list("Content-Length")
    if length:
        return int(length[0])
    streamed: int | None = getattr(handler, "streamed", None)
    return streamed or None
