"""Daily limits with real calls: the refusals, and two server processes on one store."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from handlers.core.site import Site
from runtime.wiring import limit_store
from settings.declared import Settings
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import KEY, VENDOR_MODEL, ScriptedUpstream
from tests.support.processes.processes import Pair, at_once, driven
from tests.support.processes.two_servers import STORES, pair_on
from tests.support.store.ai_spender import MODEL, NATIVE, SDK, Spender, assert_error, mint, question

DOLLAR = 1_000_000
CONFIG = f"""
echo = false
[[upstream]]
name = "scripted"
url = "http://127.0.0.1:PORT"
key = "{KEY}"
[[upstream.models]]
id = "{MODEL}"
upstream_id = "{VENDOR_MODEL}"
[[upstream.models.prices]]
version = "dear"
input = 100_000_000
output = 1_000_000_000
"""
EACH = 25 * 100 + 31 * 1000
"""The cost of a scripted call at these prices; it holds about six times as much."""
PERSON_DAY, APP_DAY = 900_000, 3 * DOLLAR


@pytest.fixture(scope="module")
def listening() -> Iterator[list[socket.socket]]:
    """The sockets of the upstream, whose port the servers know."""
    sockets = bind_sockets(0, "127.0.0.1")
    yield sockets
    for one in sockets:
        one.close()


@pytest.fixture(scope="module", params=STORES)
def two(
    request: pytest.FixtureRequest, listening: list[socket.socket], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Two servers with daily limits and without other ones, on one Valkey and on a cluster."""
    path = tmp_path_factory.mktemp("ai") / "models.toml"
    path.write_text(CONFIG.replace("PORT", str(listening[0].getsockname()[1])))
    limits = ("--ai-spend-per-person-day", "0.9usd", "--ai-spend-per-app-day", str(APP_DAY))
    wide = ("--ai-calls-per-minute", "100000", "--ai-calls-per-person", "1000")
    with pair_on(request, "--ai-config", str(path), *limits, *wide) as made:
        yield made


@pytest.fixture
def on_two(io_loop: IOLoop, two: Pair, listening: list[socket.socket]) -> Iterator[Service]:
    """A service on both servers, and the upstream in this test's loop."""

    async def listen() -> ScriptedUpstream:
        return ScriptedUpstream([one.dup() for one in listening])

    upstream = io_loop.run_sync(listen)
    with driven(io_loop, two) as made:
        yield made
    io_loop.run_sync(upstream.close)


@pytest.mark.trap(28)
@pytest.mark.gen_test(timeout=120)
async def test_a_hundred_calls_at_once_on_two_servers_never_exceed_the_daily_limits(on_two: Service, two: Pair) -> None:
    spenders = []
    for number in range(5):
        user = await on_two.add_person(f"daily-{number}@example.com")
        await on_two.store.credits.grant(user, 100 * DOLLAR)
        app = await on_two.store.apps.find(on_two.web.client_id)
        assert app is not None
        tokens = await on_two.store.tokens.mint(user, app, ("credits:spend",))
        spenders.append(Spender(on_two, on_two.web, user, tokens.access_token, on_two.base_url))
    both = [replace(one, base_url=server.here) for one in spenders for server in two.servers]
    told: Counter[str] = Counter()
    for _ in range(2):
        answers = await at_once(both[n % 10].ask(question(stream=n % 3 == 0)) for n in range(100))
        told += Counter("made" if one.code == 200 else json_of(one)["error"] for one in answers)
        each = [await one.charged() for one in spenders]
        assert max(sum(one) for one in each) <= PERSON_DAY
        assert sum(map(sum, each)) <= APP_DAY
    assert set(told) <= {"made", "app_spend_limit", "person_spend_limit"}
    assert told["made"] * EACH == sum(map(sum, each))
    assert told["app_spend_limit"] > 0


def limited(setting: str, most: int) -> Settings:
    """Settings with this limit."""
    changes: dict[str, Any] = {setting: most}
    return Settings(**changes)


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.gen_test(timeout=20)
@pytest.mark.parametrize(
    ("setting", "code"),
    [("ai_spend_per_person_day", "person_spend_limit"), ("ai_spend_per_app_day", "app_spend_limit")],
)
async def test_a_refusal_names_the_limit_and_when_to_retry(
    service: Service, upstream: ScriptedUpstream, setting: str, code: str
) -> None:
    limit_store(service.store, limited(setting, 4_000))
    spender = await Spender.make(service)
    assert (await spender.ask()).code == 200
    limit_store(service.store, limited(setting, 1_000))
    long = question("a" * 4_000)
    answer = await spender.ask(long, NATIVE)
    assert "(UTC)" in assert_error(answer, 402, code)
    assert 2 < int(answer.headers["Retry-After"]) <= 86_400
    assert answer.headers["X-RateLimit-Remaining"] == "18", "the window's figures stay"
    answer = await spender.ask(long, SDK)
    assert (answer.code, json_of(answer)["error"]["type"]) == (402, "billing_error")
    assert "Retry-After" in answer.headers
    other = replace(spender, app=(app := await service.add_app("other-app")), token=await mint(service, app))
    limit_store(service.store, limited(setting, 1_000 if code.startswith("person") else 4_000))
    assert (await other.ask()).code == (402 if code.startswith("person") else 200)
