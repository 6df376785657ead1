"""The Tornado application, and how a request reaches its handler: those of the API without what Tornado does for pages
and none of them uses.

Arguments of queries and forms, uploads that stream, templates, XSRF tokens: of a small request all that is a quarter of
what it costs. Pages and static files go Tornado's own way.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable
from time import time
from typing import Any, cast

from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.web import Application, RequestHandler, _has_stream_request_body

from handlers.core.access_log import Access
from handlers.core.overload import has_long_body, no_room, quick_answer, send_away
from handlers.core.server_state import MOST_PATH, ServerState
from store.refused import Refused

access_log = logging.getLogger("latchkey.access")

# RFC 9110 7.2: uri-host [ ":" port ], as far as it goes without taking names apart. Tornado reads the port as a number.
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{1,64}\]|[A-Za-z0-9\-._~%!$&'()*+;=]{0,255})(?::[0-9]{0,5})?")


class Latchkey(ServerState):
    """The Tornado application, and the way of a request to its handler."""

    def turn_away(self, head: bytes) -> bytes | None:
        """The answer to a request that is sent away before its head was read; mostly None, at the cost of this
        comparison."""
        return quick_answer(self, head) if self.in_flight >= self.bound else None

    def refusal_fields(self) -> bytes:
        """The fields of an answer to what is no request that can be read."""
        hsts = self.site.hsts
        return f"Strict-Transport-Security: {hsts}\r\n".encode() if hsts else b""

    def log_request(self, handler: RequestHandler) -> None:
        """One line a request, which is counted, too."""
        seen: Any = handler  # ours all have what is read here
        status, request = seen._status_code, seen.request
        level = logging.WARNING if status >= 500 else logging.INFO
        measures, logged = self.measures, access_log.isEnabledFor(level)
        if measures is None and not logged:
            return
        seconds = time() - request._start_time
        if measures is not None:
            answered = measures.answered
            answered((seen.policy.route, request.method, status, seen.aside, seconds, seen.counted_app))
        if logged:
            access_log.log(level, Access(handler, seconds))

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """What receives a request."""
        return Dispatch(self, server_conn, request_conn)

    start_page = Application.start_request

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """The handler of a page. Tornado's own way there, through a router for hosts and one for paths, costs more than
        many a handler; it is left to static files and to what is not found."""
        target, args = self.target(request.path)
        if request.headers.get("Content-Type", "").startswith("multipart/"):
            # Before Tornado takes the parts apart, which takes 40 ms for 64 KiB and comes before the XSRF check. What
            # reads its body piece by piece is never asked for it.
            request._parse_body = _refuse_parts if target else _pass_over  # type: ignore[method-assign]
        if len(request.path) > MOST_PATH:
            fallback = self.settings["default_handler_class"], self.settings["default_handler_args"]
            return self.get_handler_delegate(request, *fallback)
        if target is None:
            return super().find_handler(request, **kwargs)
        return self.get_handler_delegate(request, *target, path_args=cast(Any, args))


class ApiRequest(HTTPServerRequest):
    """A request whose query and body nobody but its handler reads."""

    def __init__(
        self, start_line: RequestStartLine, headers: HTTPHeaders, connection: HTTPConnection, server_connection: object
    ) -> None:
        self.method, self.uri, self.version = start_line
        self.path, _, self.query = start_line.path.partition("?")
        self.headers = headers
        self.body = b""
        self.host = headers.get("Host", "127.0.0.1" if self.version == "HTTP/1.0" else "-/")
        _check_host(self.host)
        context: Any = connection.context  # type: ignore[attr-defined]  # of all connections of servers
        self.remote_ip, self.protocol = context.remote_ip, context.protocol
        self.connection, self.server_connection = connection, server_connection
        self.arguments, self.query_arguments, self.body_arguments, self.files = {}, {}, {}, {}
        self._start_time = time()
        self._finish_time = None


class Dispatch(HTTPMessageDelegate):
    """One request, on its way to the handler of its address."""

    def __init__(self, application: Latchkey, server_connection: object, connection: HTTPConnection) -> None:
        self._application = application
        self._server_connection, self._connection = server_connection, connection
        self._pieces: list[bytes] = []
        # Where the address is none of the API.
        self._page: HTTPMessageDelegate | None = None
        # What was asked; whether it goes away, when it is complete; whether it is at work before.
        self._asked: tuple[str, HTTPHeaders]
        self._refused = self._begun = False

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        """Finds the handler. Raises HTTPInputError."""
        assert isinstance(start_line, RequestStartLine)
        application = self._application
        target, self._args = application.target(start_line.path.partition("?")[0])
        self._target, self._asked = target, (start_line.method, headers)
        if application.in_flight >= application.bound and no_room(application, target):
            self._refused = True
            if has_long_body(headers):
                self._send_away()
            return None
        if target is None or not target[0].lean:
            # What takes its body piece by piece is at work from here on.
            _check_host(headers.get("Host", ""))
            self._begun = target is not None and _has_stream_request_body(target[0])
            self._page = application.start_page(self._server_connection, self._connection)
            return self._page.headers_received(start_line, headers)
        self._request = ApiRequest(start_line, headers, self._connection, self._server_connection)
        return None

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """A piece of the body."""
        if self._page is not None:
            return self._page.data_received(chunk)
        if not self._refused:
            self._pieces.append(chunk)
        return None

    def on_connection_close(self) -> None:
        """The client is gone before the request was complete."""
        if self._page is not None:
            self._page.on_connection_close()
        self._pieces.clear()

    def finish(self) -> None:
        """The request is complete."""
        application = self._application
        # Once more: while the body was on its way, others may have come.
        full = not self._begun and application.in_flight >= application.bound and no_room(application, self._target)
        if self._refused or full:
            return self._send_away()
        if self._page is not None:
            self._page.finish()
            return
        request = self._request
        assert self._target is not None
        request.body = b"".join(self._pieces)
        handler, facts = self._target
        application.loop.create_task(handler(application, request, **facts).answer(self._args))

    def _send_away(self) -> None:
        self._pieces.clear()
        send_away(self._application, self._target, *self._asked, self._connection)


def _refuse_parts() -> None:
    """Raises Refused: the one form with a file is read by its handler."""
    raise Refused("unsupported_media_type")


def _pass_over() -> None:
    """Where there is no route nobody wants a body."""


def _check_host(host: str) -> None:
    """Raises HTTPInputError."""
    if not _HOST.fullmatch(host):
        raise HTTPInputError(f"Invalid Host header: {host[:100]!r}")
