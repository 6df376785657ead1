"""Requests and answers on the fast HTTP server, over raw sockets; common behaviour is tested on Tornado's too."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from tests.support.http.http_servers import Answer, joined, request, running, statuses, until, within

both = pytest.mark.parametrize("http", ["fast", "tornado"])
CLOSE = "Connection: close"


class Echo(RequestHandler):
    """Answers with method, path and body."""

    async def get(self) -> None:
        if self.get_query_argument("slow", ""):
            await asyncio.sleep(0)
        self.finish(f"{self.request.method} {self.request.uri} {self.request.body.decode()}")

    post = head = delete = get


class Pieces(RequestHandler):
    """Writes a piece at a time."""

    async def get(self) -> None:
        for piece in ("one", "two", "", "three"):
            self.write(piece)
            await self.flush()


class Empty(RequestHandler):
    """Answers with a status alone."""

    def get(self, status: str) -> None:
        self.set_status(int(status))


@stream_request_body
class Counting(RequestHandler):
    """Reads a body piece by piece, each in its own loop turn."""

    def prepare(self) -> None:
        self.lengths: list[int] = []
        if limit := self.get_query_argument("limit", ""):
            cast(Any, self.request.connection).set_max_body_size(int(limit))
        if self.get_query_argument("refuse", ""):
            raise HTTPError(403)

    async def data_received(self, chunk: bytes) -> None:
        self.lengths.append(len(chunk))
        await asyncio.sleep(0)

    def post(self) -> None:
        self.finish({"total": sum(self.lengths), "most": max(self.lengths, default=0)})


APP = Application(
    [("/pieces", Pieces), (r"/empty/(\d+)", Empty), ("/counting", Counting), ("/.*", Echo)],
    log_function=lambda handler: None,
)


async def answers_to(http: str, *sent: bytes, head: bool = False, **options: Any) -> list[Answer]:
    """The answers to requests sent in one piece on one connection."""
    async with running(APP, http, **options) as server, await server.connect() as client:
        client.write(joined(sent))
        return [await client.answer(head=head) for _ in sent]


@pytest.mark.gen_test
@both
async def test_connections_are_kept_alive(http: str) -> None:
    async with running(APP, http) as server, await server.connect() as client:
        for number in range(3):
            client.write(request("POST", f"/{number}", body=b"x" * number))
            assert (await client.answer()).body == f"POST /{number} {'x' * number}".encode()


@pytest.mark.gen_test
@both
async def test_pipelined_requests_are_answered_in_order(http: str) -> None:
    sent = [request("POST", f"/{number}?slow={number % 2}", body=b"b" * number) for number in range(1, 20)]
    answers = await answers_to(http, *sent)
    assert [answer.body.split()[1] for answer in answers] == [f"/{n}?slow={n % 2}".encode() for n in range(1, 20)]


@pytest.mark.gen_test
@both
async def test_the_application_gets_one_request_per_connection_at_a_time(http: str) -> None:
    begun: list[str] = []
    go_on = asyncio.Event()

    class Held(RequestHandler):
        async def get(self) -> None:
            begun.append(self.request.path)
            await go_on.wait()

    app = Application([("/.*", Held)], log_function=lambda handler: None)
    async with running(app, http) as server, await server.connect() as client:
        client.write(request("GET", "/first") + request("GET", "/second"))
        await until(lambda: bool(begun))
        async with await server.connect() as other:  # a whole round of the loop later
            other.write(request("GET", "/other"))
            await until(lambda: "/other" in begun)
        assert begun == ["/first", "/other"]
        go_on.set()
        assert [(await client.answer()).status for _ in range(2)] == [200, 200]
        assert begun == ["/first", "/other", "/second"]


@pytest.mark.gen_test
async def test_a_request_split_anywhere_is_read_the_same() -> None:
    sent = (
        request("POST", "/a", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
        b"\r\n" + request("POST", "/b", body=b"hello") + request("GET", "/c")
    )
    for size in (1, 2, 3, 7, 50):
        async with running(APP) as server, await server.connect() as client:
            for at in range(0, len(sent), size):
                client.write(sent[at : at + size])
                await asyncio.sleep(0)
            bodies = [(await client.answer()).body for _ in range(3)]
            assert bodies == [b"POST /a hello!", b"POST /b hello", b"GET /c "]


@pytest.mark.gen_test
@both
async def test_an_answer_of_unknown_length_is_chunked(http: str) -> None:
    async with running(APP, http) as server, await server.connect() as client:
        client.write(request("GET", "/pieces"))
        head = await within(client.reader.readuntil(b"\r\n\r\n"))
        assert b"Transfer-Encoding: chunked\r\n" in head
        assert b"Content-Length" not in head
        assert await client.chunks() == [b"one", b"two", b"three"]


@pytest.mark.gen_test
@both
async def test_http_1_0_answers_are_not_chunked_and_end_the_connection(http: str) -> None:
    async with running(APP, http) as server:
        received = await server.ask(request("GET", "/pieces", version="1.0"))
    assert received.endswith(b"\r\n\r\nonetwothree")
    assert b"chunked" not in received


@pytest.mark.gen_test
async def test_http_1_0_is_not_kept_alive_without_a_length() -> None:
    async with running(APP) as server:
        received = await server.ask(request("GET", "/pieces", "Connection: keep-alive", version="1.0"))
    assert b"Keep-Alive" not in received


@pytest.mark.gen_test
@both
async def test_http_1_0_is_kept_alive_on_request(http: str) -> None:
    kept = request("GET", "/", "Connection: keep-alive", version="1.0")
    first, second = await answers_to(http, kept, kept)
    assert first.fields["connection"] == second.fields["connection"] == "Keep-Alive"


@pytest.mark.gen_test
@both
@pytest.mark.parametrize(
    ("sent", "options"),
    [
        pytest.param(request("GET", "/", CLOSE), {}, id="asked to"),
        pytest.param(request("GET", "/"), {"no_keep_alive": True}, id="no_keep_alive"),
    ],
)
async def test_the_last_answer_says_connection_close(http: str, sent: bytes, options: dict[str, Any]) -> None:
    async with running(APP, http, **options) as server:
        received = await server.ask(sent + request("GET", "/ignored"))
    assert statuses(received) == (200,)
    assert b"Connection: close\r\n" in received


@pytest.mark.gen_test
@both
async def test_head_has_the_length_and_no_body(http: str) -> None:
    answers = await answers_to(http, request("HEAD", "/a"), request("HEAD", "/b"), head=True)
    assert [answer.fields["content-length"] for answer in answers] == ["8", "8"]


@pytest.mark.gen_test
@both
@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body(http: str, status: int) -> None:
    empty, after = await answers_to(http, request("GET", f"/empty/{status}"), request("GET", "/after"))
    assert empty.status == status
    assert "transfer-encoding" not in empty.fields
    assert after.body == b"GET /after "


@pytest.mark.gen_test
@both
async def test_expect_continue_is_answered_before_the_body(http: str) -> None:
    async with running(APP, http) as server, await server.connect() as client:
        client.write(request("POST", "/", "Expect: 100-continue", "Content-Length: 5"))
        assert (await client.answer()).status == 100
        client.write(b"hello")
        assert (await client.answer()).body == b"POST / hello"


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(request("POST", "/", "Expect: 100-continue", CLOSE, body=b"hello"), id="the body is there"),
        pytest.param(request("GET", "/", "Expect: 100-continue", CLOSE), id="no body"),
        pytest.param(request("POST", "/", "Expect: 100-continue", body=b"hi", version="1.0"), id="HTTP/1.0"),
        pytest.param(request("POST", "/", "Expect: a miracle", CLOSE, body=b"hello"), id="something else"),
    ],
)
async def test_other_requests_get_no_continue(sent: bytes) -> None:
    async with running(APP) as server:
        assert statuses(await server.ask(sent)) == (200,)


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(request("POST", "/", "Expect: 100-continue", "Content-Length: 101"), 400, id="too large"),
        pytest.param(
            request("POST", "/counting?refuse=1", "Expect: 100-continue", "Content-Length: 9"), 403, id="refused"
        ),
    ],
)
async def test_a_refused_body_gets_no_continue(sent: bytes, expected: int) -> None:
    async with running(APP, max_body_size=100) as server:
        assert statuses(await server.ask(sent)) == (expected,)


@pytest.mark.gen_test
@both
async def test_a_large_body_is_streamed_in_pieces(http: str) -> None:
    body = b"x" * 300_000
    (answer,) = await answers_to(http, request("POST", "/counting", body=body))
    assert b'"total": 300000' in answer.body
    most = int(answer.body.rpartition(b": ")[2].rstrip(b"}"))
    assert most <= 65_536


@pytest.mark.gen_test
@both
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("limit", "status"), [(2000, 200), (1000, 400)])
async def test_a_handler_sets_the_limit_of_its_body(http: str, chunked: bool, limit: int, status: int) -> None:
    target, body = f"/counting?limit={limit}", b"x" * 1500
    sent = request("POST", target, CLOSE, body=body)
    if chunked:
        sent = request("POST", target, CLOSE, "Transfer-Encoding: chunked") + b"5dc\r\n" + body + b"\r\n0\r\n\r\n"
    async with running(APP, http, max_body_size=100) as server:
        assert statuses(await server.ask(sent)) == (status,)


@pytest.mark.gen_test
async def test_an_early_answer_arrives_while_the_client_keeps_sending() -> None:
    async with running(APP) as server, await server.connect() as client:
        client.write(request("POST", "/counting?refuse=1", body=b"x" * 500_000) + request())
        received = await within(client.reader.read())  # no reset, which can overtake an answer
    assert statuses(received) == (403,)
    assert received.endswith(b"</html>")


@pytest.mark.gen_test
async def test_a_request_leaves_no_reference_cycle() -> None:
    async with running(APP) as server, await server.connect() as client:
        client.write(request())
        await client.answer()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            client.write(request("POST", "/a", body=b"x") + request("GET", "/b"))
            assert [(await client.answer()).status for _ in range(2)] == [200, 200]
            gc.collect()
            left = {
                type(one).__name__ for one in gc.garbage if type(one).__module__.startswith(("runtime.http", "tornado"))
            }
            assert left == set()
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
