"""Applications that are none of Tornado's, on the fast HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPMessageDelegate, HTTPServerConnectionDelegate, ResponseStartLine

from tests.support.http.http_servers import request, running, statuses, until

both = pytest.mark.parametrize("http", ["fast", "tornado"])


class Delegate(HTTPMessageDelegate):
    """A bare application: `steps` says when and how it answers."""

    def __init__(self, connection: Any, steps: Any) -> None:
        self.connection = connection
        self.steps = steps

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Awaitable[None] | None:
        if "early" in self.steps:
            self.answer()
        return asyncio.sleep(0) if "later" in self.steps else None

    def finish(self) -> None:
        if "early" not in self.steps:
            self.answer()

    def answer(self) -> None:
        head = HTTPHeaders({"Content-Length": "5"}) if "sized" in self.steps else HTTPHeaders()
        if "raw" in self.steps:
            self.connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        else:
            reason = "O\nK" if "odd reason" in self.steps else "OK"
            if "odd header" in self.steps:
                head = HTTPHeaders()
                head["X-A"] = "a\r\nX-B: b"
            self.connection.write_headers(ResponseStartLine("", 200, reason), head)
        self.connection.write(b"hel" if "short" in self.steps else b"hello")
        if "long" in self.steps:
            self.connection.write(b"!")
        self.connection.finish()


class Bare(HTTPServerConnectionDelegate):
    """An application that is none of Tornado's."""

    def __init__(self, *steps: str) -> None:
        self.steps = steps
        self.closed: list[object] = []

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        self.connection = server_conn
        return Delegate(request_conn, self.steps)

    def on_close(self, server_conn: object) -> None:
        self.closed.append(server_conn)


@pytest.mark.gen_test
async def test_a_custom_delegate_works() -> None:
    app = Bare()
    async with running(app) as server:
        async with await server.connect() as client:
            client.write(request() + request())
            assert [(await client.answer()).body for _ in range(2)] == [b"hello", b"hello"]
        await until(lambda: app.closed == [app.connection])


@pytest.mark.gen_test
async def test_any_number_of_immediately_answered_requests_works() -> None:
    async with running(Bare("sized")) as server:
        received = await server.ask(request() * 2000 + request("GET", "/", "Connection: close"))
    assert len(statuses(received)) == 2001


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", request("GET", "/", "Host: elsewhere"), b"GET / HTTP/1.1\n"]
)
async def test_a_custom_delegate_sees_no_malformed_request(sent: bytes) -> None:
    async with running(Bare("sized")) as server:
        assert statuses(await server.ask(sent)) == (400,)


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "steps", [("early", "sized"), ("early", "later", "sized"), ("later", "sized"), ("raw",), ("sized",)]
)
async def test_ways_to_answer(steps: tuple[str, ...]) -> None:
    async with running(Bare(*steps)) as server, await server.connect() as client:
        client.write(request() + request())
        assert [(await client.answer()).body for _ in range(2)] == [b"hello", b"hello"]


@pytest.mark.gen_test
@both
@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        pytest.param(("sized", "short"), b"\r\n\r\nhel", id="shorter than its Content-Length"),
        pytest.param(("sized", "long"), b"\r\n\r\nhello", id="longer than its Content-Length"),
        pytest.param(("odd header",), b"", id="a header of two lines"),
        pytest.param(("odd reason",), b"", id="a reason of two lines"),
    ],
)
async def test_an_impossible_answer_ends_the_connection(
    http: str, steps: tuple[str, ...], sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(Bare(*steps), http) as server:
        received = await server.ask(request() + request())
    assert len(statuses(received)) <= 1
    assert b"X-B" not in received
    assert received.endswith(sent)
    assert "Uncaught exception" in caplog.text
