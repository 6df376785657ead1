"""Overload: requests beyond the limit are refused at once, and accepted ones are answered."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest

from handlers.core.application import Latchkey
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.site import Site
from handlers.routes import POLICIES
from tests.conftest import OpenStore
from tests.support.http.downloads import begin_download
from tests.support.http.driver import Service
from tests.support.http.http_servers import Answer, request, running, statuses, until
from tests.support.processes.engines import Engine, valkey
from tests.support.store.many_documents import connect_app, numbered, stock

pytestmark = pytest.mark.gen_test(timeout=30)

both = pytest.mark.parametrize("http", ["fast", "tornado"])
USERINFO = "/api/oauth/userinfo"
LOG_LINE = r"overloaded: (\d+) requests were sent away within a second, \d are at work"
DOWNLOAD = "/account/download?format=jsonl"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The module's own Valkey, which may be frozen: requests that wait for it are in progress."""
    with valkey() as made:
        yield made


@pytest.fixture
def site(open_store: OpenStore, engine: Engine, base_url: str) -> Site:
    engine.empty()
    return Site(open_store(engine.url, timeout=20), base_url, downloads=ConcurrencyLimit(3, 2))


@contextmanager
def frozen(engine: Engine) -> Iterator[None]:
    """Requests that use the store wait during the block."""
    engine.pause()
    try:
        yield
    finally:
        engine.resume()


async def userinfo(service: Service) -> bytes:
    """A resource call."""
    return request("GET", USERINFO, f"Authorization: Bearer {(await service.tokens())['access_token']}")


def assert_sent_away(answer: Answer) -> None:
    """503 with the API's text and Retry-After."""
    assert answer.status == 503
    assert 1 <= int(answer.fields["retry-after"]) <= 3
    assert json.loads(answer.body)["error"] == "temporarily_unavailable"
    assert re.fullmatch("[0-9a-f]{16}", answer.fields["x-request-id"])


def refusals(messages: list[str]) -> int:
    """The number of refusals in the log; asserts that the log has nothing else."""
    return sum(int(re.fullmatch(LOG_LINE, message)[1]) for message in messages)  # type: ignore[index, misc]  # each matches


def assert_empty(app: Latchkey, most: int) -> None:
    """Nothing is in progress, and all places are free."""
    assert (app.in_flight, app.bound, app.site.ai_calls.taken, app.site.downloads.taken) == (0, most, 0, 0)


@both
async def test_requests_beyond_the_limit_are_refused_and_the_rest_answered(
    http: str, service: Service, app: Latchkey, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    call = await userinfo(service)
    app.admit(3)
    async with running(app, http) as server, AsyncExitStack() as stack:
        taken = [await stack.enter_async_context(await server.connect()) for _ in range(3)]
        others = [await stack.enter_async_context(await server.connect()) for _ in range(20)]
        with frozen(engine):
            for client in taken:
                client.write(call)
            await until(lambda: app.in_flight == 3)
            for client in others * 2:  # the connection is kept
                client.write(call)
                assert_sent_away(await client.answer())
            assert app.in_flight == 3
        for client in taken:
            assert (await client.answer()).status == 200
        await until(lambda: app.in_flight == 0)
        for client in others:
            client.write(call)
            assert (await client.answer()).status == 200
        await until(lambda: refusals(caplog.messages) == 40)
    assert app.sent_away.total == 40
    assert_empty(app, 3)


@both
async def test_an_excess_long_body_is_refused_before_it_arrives(http: str, service: Service, app: Latchkey) -> None:
    app.bound = 0
    async with running(app, http) as server:
        for fields in (("Content-Length: 200000",), ("Transfer-Encoding: chunked",)):
            async with await server.connect() as client:
                client.write(request("PUT", "/api/v1/data/notes/n1", *fields))
                assert_sent_away(await client.answer())
        async with await server.connect() as client:
            client.write(request("PUT", "/api/v1/data/notes/n1", body=b"1" * 16_000))
            assert_sent_away(await client.answer())
            app.bound = 1
            client.write(request("GET", "/healthz"))
            assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(request("GET", USERINFO) * 3, (503, 503, 503), id="one behind the other"),
        pytest.param(request("GET", USERINFO, body=b"GET / HTTP/1.1\r\n\r\n"), (503,), id="with a body"),
        pytest.param(request("GET", USERINFO, "content-LENGTH: 3") + b"abc", (503,), id="with a body, spelt oddly"),
        pytest.param(
            request("GET", USERINFO, "Transfer-Encoding: chunked") + b"0\r\n\r\n", (503,), id="with a body in chunks"
        ),
        pytest.param(request("GET", USERINFO, version="1.0"), (503,), id="in HTTP/1.0"),
        pytest.param(request("GET", USERINFO, "A : b"), (400,), id="a space before a colon"),
        pytest.param(request("GET", USERINFO, " folded"), (400,), id="a line that goes on"),
        pytest.param(b"GET / HTTP/1.1\nHost: a\r\n\r\n", (400,), id="a line that ends in LF"),
        pytest.param(request("GET", "http://a/"), (400,), id="another form of target"),
        pytest.param(request("TRACE", USERINFO), (503,), id="another method"),
    ],
)
async def test_requests_off_the_fast_path_are_read_as_usual(
    sent: bytes, expected: tuple[int, ...], service: Service, app: Latchkey
) -> None:
    """What is sent away before it is read must not be read otherwise than the rest: one request, one answer."""
    app.bound = 0
    async with running(app) as server:
        if 400 in expected:
            assert statuses(await server.ask(sent)) == expected
            return
        last = request("GET", "/signin", "Connection: close")
        assert statuses(await server.ask(sent + (b"" if b"HTTP/1.0" in sent else last))) in (
            (*expected, 503),
            expected,
        )
        async with await server.connect() as client:
            client.write(sent)
            for status in expected:
                assert (await client.answer()).status == status
            if b"HTTP/1.1" in sent and b"chunked" not in sent:
                client.write(last)
                assert (await client.answer()).status == 503
                assert await client.rest() == b"", "nothing is answered twice"


@both
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(request("PUT", "/api/v1/data/notes/n1", "Content-Length: 2"), id="a call"),
        pytest.param(request("POST", "/signin", "Content-Length: 2"), id="a form"),
    ],
)
async def test_requests_arriving_during_an_upload_count_too(
    head: bytes, http: str, service: Service, app: Latchkey, engine: Engine
) -> None:
    call = await userinfo(service)
    app.admit(1)
    async with running(app, http) as server, await server.connect() as slow, await server.connect() as quick:
        slow.write(head + b"1")
        slow.write(b"")
        async with await server.connect() as other:  # the head of the slow one is read by then
            other.write(request("GET", "/healthz"))
            await other.answer()
        with frozen(engine):
            quick.write(call)
            await until(lambda: app.in_flight == 1)
            slow.write(b"2")
            assert_sent_away(await slow.answer())
        assert (await quick.answer()).status == 200


@both
async def test_health_is_always_answered(http: str, service: Service, app: Latchkey) -> None:
    app.bound = 0
    async with running(app, http) as server, await server.connect() as client:
        for path in ("/healthz", "/readyz"):
            client.write(request("GET", path))
            answer = await client.answer()
            assert (answer.status, json.loads(answer.body)) == (200, {"status": "ok"})


async def test_finishing_requests_have_a_reserve(service: Service, app: Latchkey, engine: Engine) -> None:
    browser = await service.signed_in()
    code, other = await service.code(browser=browser), await service.code(browser=browser)
    call = await userinfo(service)
    app.admit(4)
    async with running(app) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await server.connect()) for _ in range(4)]
        with frozen(engine):
            for client in clients:
                client.write(call)
            await until(lambda: app.in_flight == 4)
            first = asyncio.ensure_future(service.web.exchange(code))
            await until(lambda: app.in_flight == 5)
            assert (await service.web.exchange(other)).code == 503
            for client in [await stack.enter_async_context(await server.connect())]:
                client.write(call)
                assert_sent_away(await client.answer())
        assert (await first).code == 200
    assert (await service.web.exchange(other)).code == 200, "it was not used up"
    finishing = {name for name, policy in POLICIES.items() if policy.finishes}
    assert {"token", "revoke", "decide", "signin-second", "reset"} <= finishing
    assert not finishing & {"userinfo", "document", "signin", "signup", "ai-messages"}


@pytest.mark.parametrize(
    ("target", "accept", "kind"),
    [
        pytest.param("/signin", "text/html,*/*;q=0.8", "text/html; charset=UTF-8", id="a page"),
        pytest.param("/signin", "application/json", "application/json", id="a page that was asked for as JSON"),
        pytest.param("/static/latchkey.css", "*/*", "application/json", id="a file"),
        pytest.param("/nothing/here", "text/html", "text/html; charset=UTF-8", id="no address"),
        pytest.param(USERINFO, "text/html", "application/json", id="the interface"),
        pytest.param("/api/v1/ai/v1/models", "*/*", "application/json", id="what SDKs ask"),
    ],
)
async def test_refusals_match_the_requests_format(
    target: str, accept: str, kind: str, service: Service, app: Latchkey
) -> None:
    app.bound = 0
    async with running(app) as server, await server.connect() as client:
        client.write(request("GET", target, f"Accept: {accept}"))
        answer = await client.answer()
        client.write(request("HEAD", target, f"Accept: {accept}"))
        bare = await client.answer(head=True)
    assert (answer.status, answer.fields["content-type"]) == (503, kind)
    assert answer.fields["cache-control"] == "no-store"
    assert bare.fields["content-length"] == answer.fields["content-length"] == str(len(answer.body))
    assert ("access-control-allow-origin" in answer.fields) is target.startswith("/api/")
    if "html" in kind:
        assert b"<h1>Not available right now</h1>" in answer.body
        assert answer.fields["x-frame-options"] == "DENY"
        assert "default-src 'none'" in answer.fields["content-security-policy"]
    elif "/ai/v1/" in target:
        body = json.loads(answer.body)
        assert (body["type"], body["error"]["type"]) == ("error", "api_error")
        assert body["request_id"] == answer.fields["x-request-id"]
    else:
        assert json.loads(answer.body)["error"] == "temporarily_unavailable"


async def test_a_disconnect_frees_its_place(service: Service, app: Latchkey, engine: Engine) -> None:
    call = await userinfo(service)
    app.admit(3)
    async with running(app) as server:
        for _ in range(3):
            clients = [await server.connect() for _ in range(3)]
            with frozen(engine):
                for client in clients:
                    client.write(call)
                await until(lambda: app.in_flight == 3)
                for client in clients:
                    client.writer.transport.abort()
            await until(lambda: app.in_flight == 0)
    assert_empty(app, 3)


async def test_a_failed_request_frees_its_place(service: Service, app: Latchkey, engine: Engine) -> None:
    call = await userinfo(service)
    app.admit(2)
    async with running(app) as server, await server.connect() as client, await server.connect() as other:
        with frozen(engine):
            for one in (client, other):
                one.write(call)
            await until(lambda: app.in_flight == 2)
            engine.kill()
        try:
            for one in (client, other):
                answer = await one.answer()
                assert (answer.status, answer.fields["retry-after"]) == (503, "1")
        finally:
            engine.start()
    await until(lambda: app.in_flight == 0)
    assert_empty(app, 2)


async def test_downloads_leave_the_request_limit_and_have_their_own(service: Service, app: Latchkey) -> None:
    keeper = await service.store.apps.find("web-app")
    assert keeper is not None
    browsers = []
    for name in ("ada", "ben"):
        if name == "ben":
            person, browser = await service.add_person("ben@example.com"), await service.signed_in("ben@example.com")
        else:
            person, browser = service.ada, await service.signed_in()
        await connect_app(service.store, person, keeper)
        await stock(service.store, person, "web-app", numbered(200, 100_000))
        browsers.append(browser)
    ada, ben = browsers
    app.admit(1)
    opened: list[tuple[Any, Any]] = [await begin_download(service, ada, DOWNLOAD) for _ in range(2)]
    assert (app.in_flight, app.bound) == (2, 3)
    again = await ada.get(DOWNLOAD)
    assert (again.code, again.headers["Retry-After"] in "123") == (429, True)
    opened.append(await begin_download(service, ben, DOWNLOAD))
    full = await ben.get(DOWNLOAD)
    assert (full.code, full.headers["Retry-After"] in "123") == (503, True)
    assert (await ben.get("/account")).code == 200, "they take no room"
    for _, writer in opened[:2]:
        writer.transport.abort()
    reader, writer = opened[2]
    assert (await reader.read(-1)).endswith(b"0\r\n\r\n"), "it goes on to its end"
    writer.close()
    await until(lambda: app.in_flight == 0)
    assert_empty(app, 1)
    assert (await ada.get(DOWNLOAD)).code == 200
    assert_empty(app, 1)
