"""What names of handlers and requests in `runtime/http/tornado_private.py` rely on, in the installed Tornado."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest
from tornado.httputil import (
    HTTPHeaders,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.util import ObjectDict
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from runtime.http import tornado_private as private
from runtime.http.tornado_private import LeanHandler, TaskHandler, UnparsedRequest
from tests.support.http.tornado_fakes import Connection, Context, moment

FORM = {"Host": "a", "Content-Type": "application/x-www-form-urlencoded"}


def records_of(handler: RequestHandler) -> list[Any]:
    """What the connection of a handler recorded."""
    assert isinstance(handler.request.connection, Connection)
    return handler.request.connection.noted


class Quick(LeanHandler):
    """A handler that begins without Tornado's `__init__`."""

    def __init__(self, application: Application, request: HTTPServerRequest) -> None:
        self.begin_request(application, request)

    def compute_etag(self) -> None:
        """None."""

    def clear(self) -> None:
        self.start_answer({"Server": ["a"]})

    def on_finish(self) -> None:
        records_of(self).append("on_finish")

    def log_exception(self, *raised: Any) -> None:
        records_of(self).append(f"logged {raised[1]}")


SomeQuick = TypeVar("SomeQuick", bound=Quick)


class Slow(Quick):
    """The same in Tornado's own way."""

    def __init__(self, application: Application, request: HTTPServerRequest) -> None:
        RequestHandler.__init__(self, application, request)
        self._transforms = []

    def clear(self) -> None:
        RequestHandler.clear(self)
        self.clear_header("Content-Type")
        self.clear_header("Date")
        self.set_header("Server", "a")


class Noting(Application):
    """Notes that a request was logged."""

    def log_request(self, handler: RequestHandler) -> None:
        records_of(handler).append("logged")


def request_to(path: str = "/a?b=c", method: str = "GET", headers: dict[str, str] | None = None) -> HTTPServerRequest:
    line = RequestStartLine(method, path, "HTTP/1.1")
    return HTTPServerRequest(connection=Connection(), headers=HTTPHeaders(headers or {"Host": "a"}), start_line=line)


def handler_of(kind: type[SomeQuick], method: str = "GET") -> tuple[SomeQuick, list[Any]]:
    """A handler, and what its connection recorded."""
    handler = kind(Noting(), request_to(method=method))
    return handler, records_of(handler)


async def serve(handler: type[RequestHandler], headers: dict[str, str], body: bytes, **changes: Any) -> list[Any]:
    """What a connection records of a POST that Tornado's application routes to a handler."""
    connection = Connection()
    line = RequestStartLine("POST", "/", "HTTP/1.1")
    request = HTTPServerRequest(connection=connection, headers=HTTPHeaders(headers), start_line=line)
    for name, change in changes.items():
        getattr(private, name)(request, change)
    delegate = Noting().get_handler_delegate(request, handler)
    began = delegate.headers_received(line, request.headers)
    for step in (began, delegate.data_received(body)):
        if step is not None:
            await step
    delegate.finish()
    for _ in range(5):
        await moment()
    return connection.noted


# Handlers.

CURRENT: ContextVar[str] = ContextVar("current", default="nothing")


@pytest.mark.gen_test
async def test_a_task_starts_before_the_request_and_its_context_ends_with_it() -> None:
    steps: list[str] = []

    class Telling(TaskHandler):
        SUPPORTED_METHODS = ("GET",)

        def task_begins(self) -> None:
            steps.append("begun")
            CURRENT.set("a request")

        def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
            steps.append(f"{value.status_code} in {CURRENT.get()}")

    await serve(Telling, FORM, b"")
    assert steps == ["begun", "405 in a request"]
    assert CURRENT.get() == "nothing"


def test_a_fast_started_handler_has_the_attributes_tornado_reads() -> None:
    quick, noted = handler_of(Quick)
    slow, expected = handler_of(Slow)
    # `ui` is for templates; the class has the other two.
    assert vars(slow).keys() - vars(quick).keys() == {"ui", "_auto_finish", "_prepared_future"}
    assert (quick._auto_finish, quick._prepared_future) == (slow._auto_finish, slow._prepared_future)
    assert vars(quick).keys() - vars(slow).keys() == {"path_args"}
    assert {name: vars(quick)[name] for name in ("_finished", "_headers_written", "_write_buffer")} == {
        name: vars(slow)[name] for name in ("_finished", "_headers_written", "_write_buffer")
    }
    assert noted == expected == [("close callback", "on_connection_close")]


def test_templates_of_a_lean_handler_get_what_tornado_gives_them() -> None:
    quick, _ = handler_of(Quick)
    slow, _ = handler_of(Slow)
    private.make_ui(quick)
    assert vars(quick)["ui"].keys() == vars(slow)["ui"].keys()
    assert {type(part) for part in vars(quick)["ui"].values()} == {type(part) for part in vars(slow)["ui"].values()}
    assert quick.application.ui_methods == {}


@pytest.mark.gen_test
async def test_a_lean_handler_can_fall_back_to_the_page_path() -> None:
    class Both(Quick):
        def post(self) -> None:
            self.write("it is answered")

    noted = await serve(Both, FORM, b"")
    assert [one[2] for one in noted if isinstance(one, tuple) and len(one) == 3] == [b"it is answered"]


def test_a_new_answer_equals_tornados_cleared_one() -> None:
    quick, _ = handler_of(Quick)
    slow, _ = handler_of(Slow)
    names = {"_headers", "_write_buffer", "_status_code", "_reason"}
    for one in (quick, slow):
        for name in names:
            delattr(one, name)
        before = set(vars(one))
        one.clear()
        assert set(vars(one)) - before == names
    assert quick.get_status() == slow.get_status() == 200
    assert {name: vars(quick)[name] for name in names - {"_headers"}} == {
        name: vars(slow)[name] for name in names - {"_headers"}
    }
    assert list(private.answer_fields(quick).get_all()) == list(private.answer_fields(slow).get_all())


def test_a_handler_knows_the_progress_of_its_answer() -> None:
    handler, _ = handler_of(Slow)
    assert (handler.head_sent, handler.finished) == (False, False)
    handler.write("a")
    handler.flush()
    assert (handler.head_sent, handler.finished) == (True, False)
    handler.finish()
    assert (handler.head_sent, handler.finished) == (True, True)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("cookie", [False, True])
def test_finishing_at_once_equals_finishing(method: str, cookie: bool) -> None:
    quick, noted = handler_of(Quick, method)
    slow, expected = handler_of(Slow, method)
    for handler in (quick, slow):
        handler.set_status(203)
        if cookie:
            handler.set_cookie("a", "b")
    quick.finish_at_once(b"body", {"X-A": "b", "Content-Length": "4"})
    slow.set_header("X-A", "b")
    slow.finish(b"body")
    assert noted == expected
    assert ("Set-Cookie", "a=b; Path=/") in noted[2][1] if cookie else "Set-Cookie" not in str(noted)
    assert noted[-3:] == ["finished", "logged", "on_finish"]
    assert vars(quick)["ui"] is vars(slow)["ui"] is None  # the cycle of the two is broken
    assert quick.head_sent
    assert quick.finished


def test_a_started_answer_is_not_finished_at_once() -> None:
    handler, _ = handler_of(Quick)
    handler.flush()
    with pytest.raises(AssertionError):
        handler.finish_at_once(b"", {})


class Failing(Quick):
    """Raises what it is given, at once or late."""

    late = False
    error: BaseException

    async def get(self) -> None:
        if self.late:
            self.finish("whole")
        raise self.error


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("error", "status"), [(HTTPError(418), 418), (KeyError("oh"), 500), (asyncio.CancelledError("of another"), 500)]
)
async def test_a_handlers_exception_is_logged_and_answered_once(error: BaseException, status: int) -> None:
    for late in (False, True):
        handler, noted = handler_of(Failing)
        handler.error, handler.late, handler.ui = error, late, ObjectDict()
        await handler.answer([])
        assert [one[0].code for one in noted if isinstance(one, tuple) and isinstance(one[0], ResponseStartLine)] == [
            200 if late else status
        ]
        assert f"logged {error}" in noted


@pytest.mark.gen_test
async def test_a_cancelled_handler_answers_nothing() -> None:
    class Waiting(Quick):
        async def get(self) -> None:
            await asyncio.Event().wait()

    handler, noted = handler_of(Waiting)
    task = asyncio.ensure_future(handler.answer([]))
    await moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert noted == [("close callback", "on_connection_close")]


@pytest.mark.gen_test
async def test_an_unknown_method_is_refused() -> None:
    handler, noted = handler_of(Quick, "FROB")
    handler.ui = ObjectDict()
    await handler.answer([])
    assert noted[3][0].code == 405


def test_an_answers_headers_are_sent_as_set() -> None:
    handler, noted = handler_of(Slow)
    handler.set_header("X-Set", "a")
    assert private.answer_fields(handler)["X-Set"] == "a"
    private.put_fields(private.answer_fields(handler), {"X-Put": "b"})
    handler.finish()
    assert {("X-Set", "a"), ("X-Put", "b")} <= set(noted[2][1])


def test_a_new_xsrf_token_replaces_the_old_one() -> None:
    handler, noted = handler_of(Slow, "POST")
    before = handler.xsrf_token
    private.renew_xsrf_token(handler)
    after = handler.xsrf_token
    assert handler.xsrf_token == after
    for token, fits in ((before, False), (after, True)):
        handler.request.headers["X-Xsrftoken"] = token.decode()
        try:
            handler.check_xsrf_cookie()
        except HTTPError:
            assert not fits
        else:
            assert fits
    handler.finish()
    assert any(name == "Set-Cookie" and value.startswith(f"_xsrf={after.decode()};") for name, value in noted[2][1])


@stream_request_body
class Streaming(RequestHandler):
    """Takes its body piece by piece."""

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        records_of(self).append(chunk)
        return None

    def post(self) -> None:
        """Says nothing."""


class Whole(RequestHandler):
    """Takes its body whole."""

    def prepare(self) -> None:
        records_of(self).append("prepare")

    def post(self) -> None:
        self.write(repr(self.get_body_arguments("a")))


def test_body_streaming_handlers_are_recognised() -> None:
    assert private.streams_body(Streaming)
    assert not private.streams_body(Whole)


# Requests.


def test_an_unparsed_request_has_the_attributes_of_a_parsed_one() -> None:
    connection, headers = Connection(), HTTPHeaders({"Host": "a:1"})
    line = RequestStartLine("GET", "/a?b=c", "HTTP/1.1")
    quick = UnparsedRequest(line, headers, connection, server := object())
    slow = HTTPServerRequest(connection=connection, headers=headers, start_line=line, server_connection=server)
    assert vars(slow).keys() - vars(quick).keys() == {"host_name"}
    assert vars(quick).keys() <= vars(slow).keys()
    differ = {name for name in vars(quick) if vars(quick)[name] != vars(slow)[name]}
    assert differ == {"arguments", "query_arguments", "_start_time"}
    assert (quick.arguments, quick.query_arguments) == ({}, {})
    assert (quick.remote_ip, quick.protocol) == (Context.remote_ip, Context.protocol)


def test_request_time_counts_from_the_start() -> None:
    headers = HTTPHeaders({"Host": "a"})
    request = UnparsedRequest(RequestStartLine("GET", "/", "HTTP/1.1"), headers, Connection(), None)
    assert 0 <= request.request_time() < 10
    request._start_time -= 100
    assert 100 <= request.request_time() < 110


@pytest.mark.gen_test
async def test_our_form_parser_runs_before_the_handler() -> None:
    parsed: list[str] = []

    def refuse() -> None:
        raise HTTPError(415)

    noted = await serve(Whole, FORM, b"a=b")
    assert noted[1] == "prepare"
    assert noted[3][2] == b"['b']"
    noted = await serve(Whole, FORM, b"a=b", parse_body_with=lambda: parsed.append("parsed"))
    assert noted[1] == "prepare"
    assert noted[3][2] == b"[]"
    assert parsed == ["parsed"]
    noted = await serve(Whole, FORM, b"a=b", parse_body_with=refuse)
    assert "prepare" not in noted
    assert noted[2][0].code == 415
    noted = await serve(Streaming, FORM, b"a=b", parse_body_with=refuse)
    assert b"a=b" in noted
    assert noted[3][0].code == 200
