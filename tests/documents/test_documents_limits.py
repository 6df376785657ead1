"""The windows of hosted documents: 300 reads, 60 writes and 60 lists a minute for each (app, user). SPEC 8.1, 8.2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import Token, TokenKind, new_id
from tests.support.http.driver import App, Service, json_of, send
from tests.support.processes.engines import FakeClock, valkey
from tests.support.processes.processes import QUICK, opened, shared

pytestmark = pytest.mark.slow

GET, HEAD, USAGE = ("GET", "notes/n1"), ("HEAD", "notes/n1"), ("GET", "_meta/usage")
PUT, DELETE, LIST = ("PUT", "notes/n1"), ("DELETE", "notes/n1"), ("GET", "notes")
Call = tuple[str, str]


class Caller:
    """Calls with a token of one (app, user)."""

    def __init__(self, service: Service, token: str) -> None:
        self.service, self.token = service, token

    @classmethod
    async def make(cls, service: Service, app: App | None = None, user: str = "", *scopes: str) -> Caller:
        """Ada with the web app, where nothing else is said."""
        registration = await service.store.apps.find((app or service.web).client_id)
        assert registration is not None
        scopes = scopes or ("data:read", "data:write")
        minted = await service.store.tokens.mint(user or service.ada, registration, scopes)
        return cls(service, minted.access_token)

    async def __call__(self, call: Call, body: str = "1", **headers: str) -> HTTPResponse:
        """One request."""
        method, path = call
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        return await send(
            f"{self.service.base_url}/api/v1/data/{path}", method, body=body if method == "PUT" else None, headers=sent
        )

    async def left(self, call: Call, **given: Any) -> int:
        """The remaining requests in the window, according to one counted request."""
        return int((await self(call, **given)).headers["X-RateLimit-Remaining"])


def assert_rate_limited(response: HTTPResponse, limit: int) -> int:
    """The 429 of SPEC 2.5 and 8.2; its Retry-After in seconds."""
    assert response.code == 429
    assert response.headers["X-RateLimit-Limit"] == str(limit)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert response.headers["X-RateLimit-Reset"].isdigit()
    retry = int(response.headers["Retry-After"])
    if response.request.method != "HEAD":
        body = json_of(response)
        assert set(body) == {"error", "error_description", "retryAfter"}
        assert (body["error"], body["retryAfter"]) == ("rate_limited", retry)
    return retry


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
@pytest.mark.spec("8.2")
@pytest.mark.parametrize(
    ("call", "limit"),
    [
        pytest.param(GET, 300, id="read"),
        pytest.param(USAGE, 300, id="usage"),
        pytest.param(PUT, 60, id="write"),
        pytest.param(DELETE, 60, id="delete"),
        pytest.param(LIST, 60, id="list"),
    ],
)
async def test_a_burst_counts_down_and_one_more_is_429(
    service: Service, clock: FakeClock, call: Call, limit: int
) -> None:
    caller = await Caller.make(service)
    clock.stop()
    for left in range(limit - 1, -1, -1):
        response = await caller(call)
        assert response.code in (200, 201, 404)
        assert response.headers["X-RateLimit-Limit"] == str(limit)
        assert response.headers["X-RateLimit-Remaining"] == str(left)
        ahead = int(response.headers["X-RateLimit-Reset"]) - clock.time() * 1000
        assert 0 < ahead <= 63_000
        assert "Retry-After" not in response.headers
    retry = assert_rate_limited(await caller(call), limit)
    assert 1 <= retry <= 3
    clock.advance(retry)
    for _ in range(limit // 20):
        assert (await caller(call)).code in (200, 201, 404), "one step's worth has left the window"
    assert_rate_limited(await caller(call), limit)


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
@pytest.mark.spec("8.1.data-read")
@pytest.mark.spec("8.1.data-write")
@pytest.mark.spec("8.1.data-list")
async def test_each_operation_counts_in_its_own_group(service: Service, clock: FakeClock) -> None:
    caller = await Caller.make(service)
    clock.stop()
    for calls, limit in (((GET, HEAD, USAGE), 300), ((PUT, DELETE), 60), ((LIST,), 60)):
        left = limit
        for _ in range(3):
            for call in calls:
                left -= 1
                assert await caller.left(call) == left, call
    assert (await caller(PUT)).code == 201


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
async def test_windows_are_per_app_and_person(service: Service, clock: FakeClock) -> None:
    bob = await service.add_person("bob@example.com")
    app = await service.add_app("another-app")
    mine = await Caller.make(service)
    others = [
        await Caller.make(service, app),
        await Caller.make(service, user=bob),
        await Caller.make(service, app, bob),
    ]
    clock.stop()
    for _ in range(60):
        await mine(PUT)
    assert_rate_limited(await mine(PUT), 60)
    assert_rate_limited(await mine(DELETE), 60)
    for other in others:
        assert await other.left(PUT) == 59
    again = await Caller.make(service)
    assert_rate_limited(await again(PUT), 60)  # another token of the same pair
    assert await mine.left(GET) == 299
    assert await mine.left(LIST) == 59
    userinfo = await service.web.userinfo((await Caller.make(service, None, "", "profile")).token)
    assert userinfo.headers["X-RateLimit-Limit"] == "100"
    assert userinfo.headers["X-RateLimit-Remaining"] == "99"


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
async def test_what_counts_and_what_does_not(service: Service, clock: FakeClock) -> None:
    caller = await Caller.make(service)
    read_only = await Caller.make(service, None, "", "data:read")
    await Caller.make(service)
    clock.stop()
    stale = Token(TokenKind.ACCESS, service.ada, service.web.client_id, new_id(), 0)
    dead = Caller(service, service.store.sealer.seal(stale))
    assert await caller.left(PUT) == 59
    # A request that the store decided on took its place, whatever the answer.
    assert await caller.left(PUT, **{"If-None-Match": "*"}) == 58
    assert await caller.left(("DELETE", "notes/absent")) == 57
    assert await caller.left(("GET", "notes/absent")) == 299
    # What may not be asked, or cannot be understood, took none.
    refused = [
        await read_only(PUT),
        await dead(PUT),
        await Caller(service, "lk_at_invented")(PUT),
        await caller(("PUT", "_notes/n1")),
        await caller(("PUT", "notes")),
        await caller(("POST", "notes/n1")),
    ]
    assert [each.code for each in refused] == [403, 401, 401, 400, 405, 405]
    assert not any("X-RateLimit-Limit" in each.headers for each in refused)
    # To read a document is work, whatever is in it.
    assert await caller.left(PUT, body="{") == 56
    assert await caller.left(PUT) == 55


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
@pytest.mark.parametrize("call", [PUT, LIST])
async def test_documents_allow_a_sustained_rate_and_cut_a_second_burst(
    service: Service, clock: FakeClock, call: Call
) -> None:
    caller = await Caller.make(service)
    clock.stop()
    for _ in range(150):
        assert (await caller(call)).code in (200, 201)
        clock.advance(1)
    clock.advance(120)
    for _ in range(60):
        assert (await caller(call)).code in (200, 201)
    clock.advance(30)
    codes = [(await caller(call)).code for _ in range(60)]
    admitted = codes.index(429)
    assert 20 <= admitted <= 40
    assert set(codes[admitted:]) == {429}


@pytest.fixture
def real(io_loop: IOLoop) -> Iterator[Service]:
    """A server process on a Valkey, with a person and apps."""
    ring = KeyRing.generate(1)
    with valkey() as engine, shared(ring, "--redis-url", engine.url, *QUICK) as server:
        server.ready()
        opening = opened(engine.url, Keys(KeyRing.parse(ring)))

        async def enter() -> Service:
            service = Service(server.here, await opening.__aenter__())
            await service.populate()
            return service

        yield io_loop.run_sync(enter)
        io_loop.run_sync(lambda: opening.__aexit__(None, None, None))


@pytest.mark.gen_test(timeout=60)
@pytest.mark.spec("8.1")
@pytest.mark.spec("8.2")
async def test_limits_in_real_time_on_a_real_store(real: Service) -> None:
    caller = await Caller.make(real)
    began = time.time()
    responses = [await caller(PUT) for _ in range(60)]
    took = time.time() - began
    assert {each.code for each in responses} == {200, 201}
    left = [int(each.headers["X-RateLimit-Remaining"]) for each in responses]
    if took < 3:  # else a step went by, and places came back
        assert left == list(range(59, -1, -1))
    resets = [int(each.headers["X-RateLimit-Reset"]) for each in responses]
    assert resets == sorted(resets)
    assert began * 1000 + 57_000 < resets[-1] <= (began + took) * 1000 + 63_000
    while (refused := await caller(PUT)).code != 429:
        pass
    waits = [assert_rate_limited(refused, 60)]
    assert 1 <= waits[0] <= 3
    assert await caller.left(GET) == 299, "another window"
    for _ in range(2):
        # SPEC 8.2: a client that waits for Retry-After may call again: here one step's worth, 3 of 60.
        await asyncio.sleep(waits[-1])
        codes = []
        while (response := await caller(PUT)).code != 429:
            codes.append(response.code)
        assert 1 <= len(codes) <= 6
        assert set(codes) == {200}
        waits.append(assert_rate_limited(response, 60))
