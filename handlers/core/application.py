"""The Tornado application, and the path of a request to its handler.

Tornado parses queries, forms and uploads, prepares templates and sets XSRF tokens. The API uses none of these, and for
a small request they are a quarter of the cost. So requests of the API skip them, and lean pages
(`handlers/core/lean_page.py`). Other pages and static files take Tornado's own path.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable
from functools import lru_cache
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
from tornado.web import Application, RequestHandler

from handlers.core.access_log import Access
from handlers.core.long.bodies import LONG_REQUEST
from handlers.core.long.handler import LongBodyHandler, long_length
from handlers.core.overload import no_room, quick_answer, send_away
from handlers.core.server_state import MOST_PATH, ServerState
from runtime.http.tornado_private import UnparsedRequest, parse_body_with, streams_body
from runtime.http.wire import field_lines, has_long_body
from store.refused import Refused

access_log = logging.getLogger("latchkey.access")

# RFC 9110 7.2: uri-host [ ":" port ], without parsing names. Tornado reads the port as a number.
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{1,64}\]|[A-Za-z0-9\-._~%!$&'()*+;=]{0,255})(?::[0-9]{0,5})?")


class Latchkey(ServerState):
    """The Tornado application. Routes each request to its handler."""

    def turn_away(self, head: bytes) -> bytes | None:
        """The answer to a request that is refused before its head is parsed; usually None, for the price of one
        comparison."""
        return quick_answer(self, head) if self.in_flight >= self.bound else None

    def refusal_fields(self) -> bytes:
        """The header fields of the answer to a request that cannot be read."""
        hsts = self.site.hsts
        return field_lines({"Strict-Transport-Security": hsts}) if hsts else b""

    def log_request(self, handler: RequestHandler) -> None:
        """One line a request, which is counted, too."""
        seen: Any = handler  # ours all have what is read here
        status, request = seen.get_status(), seen.request
        level = logging.WARNING if status >= 500 else logging.INFO
        measures, logged = self.measures, access_log.isEnabledFor(level)
        if measures is None and not logged:
            return
        seconds = request.request_time()
        if measures is not None:
            answered, client = measures.answered, seen.counted_app or seen.counted_api
            answered((seen.policy.route, request.method, status, seen.aside, seconds, client))
        if logged:
            access_log.log(level, Access(handler, seconds))

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Returns the delegate that receives a request."""
        return Dispatch(self, server_conn, request_conn)

    start_page = Application.start_request

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """The handler of a page. Tornado's routers for hosts and for paths cost more than many handlers, so only static
        files and unknown paths use them."""
        target, args = self.target(request.path)
        if request.headers.get("Content-Type", "").startswith("multipart/"):
            # Before Tornado takes the parts apart, which takes 40 ms for 64 KiB and comes before the XSRF check. What
            # reads its body piece by piece is never asked for it.
            parse_body_with(request, _refuse_parts if target else _pass_over)
        if len(request.path) > MOST_PATH:
            fallback = self.settings["default_handler_class"], self.settings["default_handler_args"]
            return self.get_handler_delegate(request, *fallback)
        if target is None:
            return super().find_handler(request, **kwargs)
        return self.get_handler_delegate(request, *target, path_args=cast(Any, args))


class Dispatch(HTTPMessageDelegate):
    """Brings one request to the handler of its path."""

    def __init__(self, application: Latchkey, server_connection: object, connection: HTTPConnection) -> None:
        self._application = application
        self._server_connection, self._connection = server_connection, connection
        self._pieces: list[bytes] = []
        # The delegate of Tornado's own path, for a page.
        self._page: HTTPMessageDelegate | None = None
        # The method and headers; whether the request is refused once complete; whether it is in progress before that.
        self._asked: tuple[str, HTTPHeaders]
        self._refused = self._begun = False
        # The handler of a long body, once that is known; how many bytes a body has that may become long.
        self._long: LongBodyHandler | None = None
        self._size: int | None = None

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
            # A handler that streams its body is in progress from here on.
            _check_host(headers.get("Host", ""))
            self._begun = target is not None and streams_body(target[0])
            self._page = application.start_page(self._server_connection, self._connection)
            return self._page.headers_received(start_line, headers)
        self._request = UnparsedRequest(start_line, headers, self._connection, self._server_connection)
        _check_host(self._request.host)
        return self._expect_long(headers) if target[0].takes_long and start_line.method == "POST" else None

    def _expect_long(self, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Begins the request if its body is long, and watches a body whose length is unknown."""
        long, length = long_length(headers)
        if long and length is None:
            self._size = 0
            most = self._application.site.max_ai_request + LONG_REQUEST
            self._connection.set_max_body_size(most)  # type: ignore[attr-defined]  # of all connections of servers
        return self._begin_long(length) if length is not None else None

    async def _begin_long(self, length: int | None) -> None:
        assert self._target is not None
        handler, facts = self._target
        self._begun = True
        self._long = handler(self._application, self._request, **facts)
        await self._long.admit(length)
        for piece in self._pieces:
            self._long.receive(piece)
        self._pieces.clear()

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Receives a part of the body."""
        if self._page is not None:
            return self._page.data_received(chunk)
        if self._long is not None:
            self._long.receive(chunk)
            # Otherwise a fast client's bytes, megabytes of them, would be taken in one turn of the loop.
            return asyncio.sleep(0)
        if not self._refused:
            self._pieces.append(chunk)
            if self._size is not None:
                self._size += len(chunk)
                if self._size > LONG_REQUEST:
                    return self._begin_long(None)
        return None

    def on_connection_close(self) -> None:
        """Called when the client leaves before the request is complete."""
        if self._page is not None:
            self._page.on_connection_close()
        if self._long is not None:
            self._long.lost()
        self._pieces.clear()

    def finish(self) -> None:
        """Called when the request is complete."""
        application = self._application
        # Check again: other requests may have arrived during the body.
        full = not self._begun and application.in_flight >= application.bound and no_room(application, self._target)
        if self._refused or full:
            return self._send_away()
        if self._page is not None:
            self._page.finish()
            return
        if self._long is not None:
            if self._long.complete():
                application.loop.create_task(self._long.answer(self._args))
            return
        request = self._request
        assert self._target is not None
        request.body = b"".join(self._pieces)
        self._pieces.clear()  # this lives as long as the request, which may be a stream of minutes
        handler, facts = self._target
        application.loop.create_task(handler(application, request, **facts).answer(self._args))

    def _send_away(self) -> None:
        self._pieces.clear()
        send_away(self._application, self._target, *self._asked, self._connection)


def _refuse_parts() -> None:
    """Raises Refused: only the handler of the picture form reads files, and it does so itself."""
    raise Refused("unsupported_media_type")


def _pass_over() -> None:
    """Does nothing: without a route, nobody reads the body."""


@lru_cache(maxsize=256)
def _check_host(host: str) -> None:
    """Raises HTTPInputError."""
    if not _HOST.fullmatch(host):
        raise HTTPInputError(f"Invalid Host header: {host[:100]!r}")
