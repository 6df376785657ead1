"""What names of servers and header fields in `runtime/http/tornado_private.py` rely on, in the installed Tornado."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Awaitable
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream
from tornado.testing import bind_unused_port
from tornado.web import Application

from runtime.http import tornado_private as private
from tests.support.http.tornado_fakes import Connection, moment


class Taking(HTTPMessageDelegate):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        self.taken.append(dict(headers))
        return None

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        self.taken.append(chunk)
        return None

    def finish(self) -> None:
        self.taken.append("finished")

    def on_connection_close(self) -> None:
        self.taken.append("gone")


def test_a_context_identifies_its_connection() -> None:
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
        context: Any = private.context_of(tcp, ("192.0.2.7", 80), "https", None)
        assert (context.remote_ip, context.protocol, str(context)) == ("192.0.2.7", "https", "192.0.2.7")
        context = private.context_of(local, "", "http", None)
        assert (context.remote_ip, context.protocol) == ("0.0.0.0", "http")


def test_forwarded_headers_apply_to_one_request() -> None:
    seen: list[tuple[str, str]] = []

    class Seeing(Taking):
        def headers_received(self, *head: Any) -> None:
            seen.append((context.remote_ip, context.protocol))

    connection = Connection()
    with socket.socket() as tcp:
        context: Any = private.context_of(tcp, ("192.0.2.7", 80), "http", ["198.51.100.2"])
    connection.context = context
    server = HTTPServer(lambda request: None, xheaders=True, trusted_downstream=["198.51.100.2"])
    server.request_callback = application = Application()
    application.start_request = lambda *_: Seeing()  # type: ignore[method-assign]  # it only looks
    delegate = server.start_request(object(), connection)
    forwarded = {"X-Forwarded-For": "203.0.113.5, 198.51.100.2", "X-Forwarded-Proto": "https"}
    delegate.headers_received(RequestStartLine("GET", "/", "HTTP/1.1"), HTTPHeaders(forwarded))
    delegate.finish()
    assert seen == [("203.0.113.5", "https")]
    assert (context.remote_ip, context.protocol) == ("192.0.2.7", "http")


@pytest.mark.gen_test
async def test_a_body_is_decompressed_in_pieces_up_to_a_limit() -> None:
    line, headers = RequestStartLine("POST", "/", "HTTP/1.1"), {"Content-Encoding": "gzip"}
    packed = gzip.compress(b"x" * 1000)
    taking = Taking()
    delegate: Any = private.unzipping(taking, 400, 1000)
    delegate.headers_received(line, HTTPHeaders(headers))
    await delegate.data_received(packed)
    delegate.finish()
    assert taking.taken == [{"X-Consumed-Content-Encoding": "gzip"}, b"x" * 400, b"x" * 400, b"x" * 200, "finished"]
    delegate = private.unzipping(Taking(), 400, 999)
    delegate.headers_received(line, HTTPHeaders(headers))
    with pytest.raises(HTTPInputError):
        await delegate.data_received(packed)


@pytest.mark.gen_test
async def test_open_connections_are_counted_until_closed() -> None:
    listening, port = bind_unused_port()
    server = HTTPServer(Application())
    server.add_sockets([listening])
    assert private.open_connections(server) == 0
    client = IOStream(socket.socket())
    await client.connect(("127.0.0.1", port))
    while private.open_connections(server) != 1:
        await moment()
    client.close()
    while private.open_connections(server):
        await moment()
    server.stop()


# Header fields.


def test_headers_are_read_and_set_without_a_second_check() -> None:
    """The shortcuts hold in the installed Tornado and equal the longer ways."""
    used = (private.headers_of, private.lines_of, private.put_fields, private.has_field, private.field_of)
    quick = (private._filled, private._read, private._put, private._has, private._value)
    assert used == quick
    made = []
    longer = (private._added, private._listed, private._update, private._contains, private._combined)
    for fill, read, put, has, value in (quick, longer):
        headers = fill({"Host": ["a"], "X-A": ["b", "c"]})
        assert headers["X-A"] == "b,c"
        assert headers.get_list("X-A") == ["b", "c"]
        put(headers, {"Host": "d", "X-A": "e"})
        headers.add("X-A", "f")
        headers["x-b"] = "g"
        del headers["x-b"]
        headers["x-c"] = "h"
        assert [has(headers, name) for name in ("X-A", "X-B", "X-C")] == [True, False, True]
        assert [value(headers, name) for name in ("X-A", "X-B", "X-C")] == ["e,f", "", "h"]
        made.append((read(headers), dict(headers), vars(headers)))
    assert made[0] == made[1]
    assert made[0][0] == ["Host: d", "X-A: e", "X-A: f", "X-C: h"]
    assert made[0][1] == {"Host": "d", "X-A": "e,f", "X-C": "h"}
