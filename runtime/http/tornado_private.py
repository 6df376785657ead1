"""Every private name of Tornado that this program uses, each behind a name of ours.

A docstring says after "Relies on" what must hold inside Tornado. tests/runtime/http/test_tornado_private.py checks each
of these claims, so a release of Tornado that changes one fails there and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from time import time
from typing import Any

from tornado.http1connection import _GzipMessageDelegate
from tornado.httpserver import HTTPServer, _HTTPRequestContext
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.util import ObjectDict
from tornado.web import Application, HTTPError, RequestHandler, _has_stream_request_body, _UIModuleNamespace

Lines = dict[str, list[str]]
"""Header fields: the values by name, the name as `Header-Case`, in the order they came."""


# Handlers.


class TaskHandler(RequestHandler):
    """A handler that learns when its task begins."""

    def task_begins(self) -> None:
        """Called in the task of the request, before anything is checked."""

    async def _execute(self, *args: Any, **kwargs: Any) -> None:
        """Relies on: Tornado runs `_execute` as a task of its own, and all of a request within it."""
        self.task_begins()
        await super()._execute(*args, **kwargs)


class QuickHandler(TaskHandler):
    """A handler that starts and finishes its answers without what Tornado does for others."""

    def start_answer(self, lines: Lines) -> None:
        """`RequestHandler.clear` with header fields that need no check. Relies on: `clear` sets these four."""
        self._headers = headers_of(lines)
        self._write_buffer = []
        self._status_code, self._reason = 200, "OK"

    @property
    def head_sent(self) -> bool:
        """Whether the head of the answer was sent. Relies on: `flush` sets `_headers_written`."""
        return self._headers_written

    @property
    def finished(self) -> bool:
        """Whether the answer is complete. Relies on: `finish` sets `_finished`."""
        return self._finished

    def finish_at_once(self, body: bytes, fields: Mapping[str, str]) -> None:
        """`finish` for a whole body, whose fields need no check.

        Relies on: `finish` and `flush` do this and no more where nothing was written yet, there is no transform and no
        ETag; `_new_cookie` is there once a cookie was set, and then they do the rest.
        """
        put_fields(self._headers, fields)
        if hasattr(self, "_new_cookie"):
            self.finish(body)
            return
        request = self.request
        connection = request.connection
        assert connection is not None and not self._headers_written
        self._headers_written = True
        connection.set_close_callback(None)  # type: ignore[attr-defined]  # of all connections of servers
        start_line = _start_line(self._status_code, self._reason)
        connection.write_headers(start_line, self._headers, b"" if request.method == "HEAD" else body)
        connection.finish()
        self.application.log_request(self)
        self._finished = True
        self.on_finish()
        self._break_cycles()


@lru_cache(maxsize=64)
def _start_line(status: int, reason: str) -> ResponseStartLine:
    return ResponseStartLine("", status, reason)


class LeanHandler(QuickHandler):
    """A handler that streams no upload, and renders templates only after `make_ui`. `answer` does the work of
    `_execute`, which also works. Relies on: Tornado's own way to a handler reads these two attributes."""

    _auto_finish, _prepared_future = True, None

    def begin_request(self, application: Application, request: HTTPServerRequest) -> None:
        """`RequestHandler.__init__`, but for `initialize`.

        Relies on: Tornado reads no other attributes than these, the two above and those of `start_answer`.
        """
        self.application, self.request = application, request
        self.path_args: list[str] = []
        self._transforms: list[Any] = []
        self._headers_written = self._finished = False
        self.clear()
        request.connection.set_close_callback(self.on_connection_close)  # type: ignore[union-attr]  # as finish_at_once

    async def answer(self, args: list[str | bytes]) -> None:
        """Answers the request; `args` are the parts of its path. Every exception becomes an answer, also the
        cancellation of an awaited task.

        Relies on: `_handle_request_exception` logs what is being handled, and answers it unless `_finished` is set.
        """
        self.task_begins()
        try:
            if self.request.method not in self.SUPPORTED_METHODS:
                raise HTTPError(405)
            self.path_args = [arg if isinstance(arg, str) else self.decode_argument(arg) for arg in args]
            self.prepare()
            answered = getattr(self, self.request.method.lower())(*self.path_args)
            if answered is not None:
                await answered
            if not self._finished:
                self.finish()
        except (Exception, asyncio.CancelledError) as error:
            self._answer_failure(error)

    async def before_body(self, work: Awaitable[None]) -> None:
        """Awaits what comes before the body of the request. An exception becomes the answer, and the body is not
        read."""
        self.task_begins()
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:
            self._answer_failure(error)

    def refuse_body(self, error: Exception) -> None:
        """Answers in the middle of the body, with the exception."""
        try:
            raise error
        except Exception as raised:
            self._answer_failure(raised)

    def _answer_failure(self, error: BaseException) -> None:
        task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
        if task is not None and task.cancelling():
            raise error  # the process ends
        self._handle_request_exception(error)


def make_ui(handler: RequestHandler) -> None:
    """Makes what templates of a lean handler need. Relies on: `__init__` makes `ui` of this and `ui_methods`, which we
    have none of, and nothing but `get_template_namespace` reads it."""
    modules = _UIModuleNamespace(handler, handler.application.ui_modules)
    handler.ui = ObjectDict(_tt_modules=modules, modules=modules)


def answer_fields(handler: RequestHandler) -> HTTPHeaders:
    """The header fields of the answer. Relies on: `set_header` writes to `_headers`, and `flush` sends them."""
    return handler._headers


def renew_xsrf_token(handler: RequestHandler) -> None:
    """Gives the handler another XSRF token. Relies on: `_raw_xsrf_token` is version, token and time, and `xsrf_token`
    keeps in `_xsrf_token` what it made of them."""
    handler._raw_xsrf_token = (None, os.urandom(16), time())
    vars(handler).pop("_xsrf_token", None)


def streams_body(handler: type[RequestHandler]) -> bool:
    """Whether it takes the body piece by piece. Relies on: `stream_request_body` leaves the mark that this reads."""
    return _has_stream_request_body(handler)


# Templates.


ENCODER = "_tt_utf8"
"""The name of the function that encodes each value of a template before it is escaped. Relies on: a template calls what
the namespace has under this name for the value of each expression, and again for what escaped it."""


# Requests.


class UnparsedRequest(HTTPServerRequest):
    """A request whose query and body are left to its handler.

    Relies on: `HTTPServerRequest` has these attributes, and `host_name`, which only the router for hosts reads;
    `request_time` reads the last two.
    """

    def __init__(
        self, start_line: RequestStartLine, headers: HTTPHeaders, connection: HTTPConnection, server_connection: object
    ) -> None:
        self.method, self.uri, self.version = start_line
        self.path, _, self.query = start_line.path.partition("?")
        self.headers = headers
        self.body = b""
        missing = "127.0.0.1" if self.version == "HTTP/1.0" else "-/"
        self.host = field_of(headers, "Host") if has_field(headers, "Host") else missing
        context: Any = connection.context  # type: ignore[attr-defined]  # of all connections of servers
        self.remote_ip, self.protocol = context.remote_ip, context.protocol
        self.connection, self.server_connection = connection, server_connection
        self.arguments, self.query_arguments, self.body_arguments, self.files = {}, {}, {}, {}
        self._start_time = time()
        self._finish_time = None


def parse_body_with(request: HTTPServerRequest, parse: Callable[[], None]) -> None:
    """Replaces the parser of forms. Relies on: Tornado calls `_parse_body` of the request, before the handler's
    `prepare` and not for a body that is streamed."""
    request._parse_body = parse  # type: ignore[method-assign]  # in place of Tornado's


# Servers.


class _Peer:
    """What `_HTTPRequestContext` looks at of a stream."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted


def context_of(accepted: socket.socket, address: Any, protocol: str, trusted: list[str] | None) -> object:
    """Whose connection it is, as requests take it; `trusted` are proxies. Relies on: Tornado makes `remote_ip` and
    `protocol` of the stream's socket alone, and reads forwarded headers through this object."""
    return _HTTPRequestContext(_Peer(accepted), address, protocol, trusted)  # type: ignore[arg-type]  # has a socket


def unzipping(delegate: HTTPMessageDelegate, piece_bytes: int, body_bytes: int) -> HTTPMessageDelegate:
    """Hands on the body unzipped, in pieces. Relies on: more than `body_bytes` of them are HTTPInputError."""
    return _GzipMessageDelegate(delegate, piece_bytes, body_bytes)


def open_connections(server: HTTPServer) -> int:
    """How many connections Tornado's own server has. Relies on: `_connections` holds each until its end."""
    return len(server._connections)


# Header fields. HTTPHeaders.add checks each line with regular expressions, which costs more than all the rest of
# reading a request; llhttp has checked them already, and those of our answers are ours.


def _filled(lines: Lines) -> HTTPHeaders:
    """Relies on: `_as_list` is such a dict, and an empty `_combined_cache` is filled from it."""
    headers = HTTPHeaders.__new__(HTTPHeaders)
    headers._as_list = lines
    headers._combined_cache = {}
    return headers


def _read(headers: HTTPHeaders) -> list[str]:
    """Relies on: `_as_list` has every value."""
    return [f"{name}: {value}" for name, values in headers._as_list.items() for value in values]


def _has(headers: HTTPHeaders, name: str) -> bool:
    """Relies on: `_as_list` has every name, as `Header-Case`."""
    return name in headers._as_list


def _value(headers: HTTPHeaders, name: str) -> str:
    """Relies on: `_as_list` has every name, as `Header-Case`, with every value."""
    values = headers._as_list.get(name)
    return "" if values is None else values[0] if len(values) == 1 else ",".join(values)


def _put(headers: HTTPHeaders, fields: Mapping[str, str]) -> None:
    """Relies on: `_combined_cache` has the values joined by commas."""
    for name, value in fields.items():
        headers._as_list[name] = [value]
        headers._combined_cache[name] = value


def _added(lines: Lines) -> HTTPHeaders:
    headers = HTTPHeaders()
    for name, values in lines.items():
        for value in values:
            headers.add(name, value)
    return headers


def _listed(headers: HTTPHeaders) -> list[str]:
    return [name + ": " + value for name, value in headers.get_all()]


def _contains(headers: HTTPHeaders, name: str) -> bool:
    return name in headers


def _combined(headers: HTTPHeaders, name: str) -> str:
    return headers.get(name, "")


def _update(headers: HTTPHeaders, fields: Mapping[str, str]) -> None:
    for name, value in fields.items():
        headers[name] = value


def _alike() -> bool:
    """Whether HTTPHeaders is what the functions above that know its inside take it for."""
    sample = {"Host": ["a"], "X-Forwarded-For": ["b", "c"]}
    try:
        filled, added = _filled(sample), _added(sample)
        for headers, put in ((filled, _put), (added, _update)):
            put(headers, {"Host": "d", "Date": "e"})
        return (
            vars(filled).keys() == vars(added).keys()
            and list(filled.get_all()) == list(added.get_all())
            and _read(added) == _listed(added)
            and _has(added, "Host")
            and not _has(added, "Cookie")
            and all(_value(added, name) == _combined(added, name) for name in ("Host", "X-Forwarded-For", "Cookie"))
            and dict(filled) == dict(added)
        )
    except (AttributeError, KeyError):
        return False


# With another Tornado, the public and slower ways do the same.
headers_of, lines_of, put_fields, has_field, field_of = (
    (_filled, _read, _put, _has, _value) if _alike() else (_added, _listed, _update, _contains, _combined)
)
