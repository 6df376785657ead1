"""AI calls on real server processes over one Valkey: a hundred concurrent calls, a kill and a shutdown."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from store import keys
from tests.support.http.driver import Service, answer_of, json_of
from tests.support.http.raw_http import listens
from tests.support.http.upstream import KEY, TEXT, VENDOR_MODEL, Plan, ScriptedUpstream, events_of, message
from tests.support.processes.processes import QUICK, Pair, Server, at_once, driven, pair, shared
from tests.support.store.ai_spender import (
    MODEL,
    PRICE,
    OpenStream,
    Spender,
    assert_error,
    cost,
    events_in,
    question,
    reached,
    text_of,
)

pytestmark = pytest.mark.slow

within_a_minute = pytest.mark.gen_test(timeout=60)

EVENTS = events_of(message())
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
version = "v3"
input = {PRICE.input}
output = {PRICE.output}
"""


@pytest.fixture(scope="module")
def listening() -> Iterator[list[socket.socket]]:
    """The sockets of the upstream, whose port the servers know."""
    sockets = bind_sockets(0, "127.0.0.1")
    yield sockets
    for one in sockets:
        one.close()


@pytest.fixture(scope="module")
def options(listening: list[socket.socket], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that make a server offer the upstream's model."""
    path = tmp_path_factory.mktemp("ai") / "models.toml"
    path.write_text(CONFIG.replace("PORT", str(listening[0].getsockname()[1])))
    return ("--ai-config", str(path))


@pytest.fixture(scope="module")
def two(options: tuple[str, ...]) -> Iterator[Pair]:
    """The two servers of this module."""
    with pair(*options) as made:
        yield made


@pytest.fixture
def upstream(io_loop: IOLoop, listening: list[socket.socket]) -> Iterator[ScriptedUpstream]:
    """The upstream, in this test's loop."""

    async def listen() -> ScriptedUpstream:
        return ScriptedUpstream([one.dup() for one in listening])

    made = io_loop.run_sync(listen)
    yield made
    io_loop.run_sync(made.close)


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A new person and a new app on both servers."""
    with driven(io_loop, two) as made:
        yield made


@pytest.fixture
def mortal(two: Pair, options: tuple[str, ...]) -> Iterator[Server]:
    """A third server on the same store, for the test to stop."""
    with shared(two.keys.ring.render(), "--redis-url", two.engine.url, *QUICK, *options) as server:
        yield server.ready()


async def end_holds(spender: Spender) -> None:
    """Waits until a hold and its idempotency key expire."""
    client: Any = spender.service.store.client
    holds = keys.credits(spender.user)["holds"]
    for hold, row in (await client.hgetall(holds)).items():
        amount, _, holder = row.split(b" ", 2)
        await client.hset(holds, hold, b"%b 1 %b" % (amount, holder))
    async for key in client.scan_iter(keys.idempotency(spender.user, spender.app.client_id, "*")["idem"]):
        await client.delete(key)


@within_a_minute
@pytest.mark.trap(28)
@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
async def test_of_a_hundred_concurrent_calls_three_are_affordable(
    service: Service, two: Pair, upstream: ScriptedUpstream, stream: bool
) -> None:
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    size = len(json.dumps({"messages": question()["messages"]}, separators=(",", ":"))) + 1024
    # Not even for a fourth of one token.
    amount = 3 * cost(size, 100) + cost(size, 1) - 1
    spender = await Spender.make(service, amount=amount)
    spenders = [replace(spender, base_url=server.here) for server in two.servers]
    waiting = []
    for _ in range(5):
        calls = [spenders[number % 2].ask(question(stream=stream)) for number in range(20)]
        waiting += [asyncio.ensure_future(call) for call in calls]
        # Twenty are a minute's; all but three are over, and those three go on.
        while sum(not call.done() for call in waiting) > 3:
            await asyncio.sleep(0.005)
        await spender.fresh_window()
    await reached(upstream, 3)
    account = await spender.account()
    assert (account.held, account.paid, len(account.holds)) == (3 * cost(size, 100), amount, 3)
    for _ in range(3 * len(EVENTS)):
        gate.release()
    answers = await at_once(waiting)
    assert sorted(answer.code for answer in answers) == [200] * 3 + [402] * 97
    for answer in answers:
        assert answer.code == 200 or json_of(answer)["error"] == "insufficient_credits"
    assert len(upstream.calls) == 3
    assert [call.question["max_tokens"] for call in upstream.calls] == [100] * 3
    assert await spender.charged() == [cost(25, 31)] * 3
    assert (await spender.account()).paid == amount - 3 * cost(25, 31)


async def within_budget(service: Service, limit: int) -> Spender:
    """An app with a budget of Ada's, of this many micro-dollars in all, and with plenty of credits around it."""
    spender, email = await Spender.make(service), (await service.store.operator.find(service.ada)).email
    browser = await service.signed_in(email)
    details = json.dumps([{"type": "credits", "limit": limit}])
    url = spender.app.authorize_url(scope="credits:spend", authorization_details=details)
    tokens = json_of(await spender.app.exchange(answer_of(await browser.consent(url))["code"]))
    return replace(spender, token=tokens["access_token"])


@within_a_minute
@pytest.mark.trap(61)
async def test_of_a_hundred_concurrent_calls_on_a_budget_for_three_three_are_made(
    service: Service, two: Pair, mortal: Server, upstream: ScriptedUpstream
) -> None:
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    size = len(json.dumps({"messages": question()["messages"]}, separators=(",", ":"))) + 1024
    spender = await within_budget(service, 3 * cost(size, 100) + cost(size, 1) - 1)
    spenders = [replace(spender, base_url=server.here) for server in (*two.servers, mortal)]
    waiting = [asyncio.ensure_future(spenders[2].ask())]
    await reached(upstream)
    for _ in range(5):
        await spender.fresh_window()
        waiting += [asyncio.ensure_future(spenders[number % 3].ask()) for number in range(20)]
        while sum(not call.done() for call in waiting) > 3:
            await asyncio.sleep(0.005)
    assert len((await spender.account()).holds) == len(upstream.calls) == 3
    # A server dies between hold and settlement: what it held stays held.
    mortal.kill()
    for _ in range(3 * len(EVENTS)):
        gate.release()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    answered = [answer for answer in answers if not isinstance(answer, BaseException)]
    made = [answer.code for answer in answered].count(200)
    assert made < made + len(answers) - len(answered) == 3
    assert {json_of(answer)["error"] for answer in answered if answer.code != 200} == {"budget_exhausted"}
    assert sum(held.amount for held in (await spender.account()).holds) == (3 - made) * cost(size, 100)
    await end_holds(spender)
    await spender.fresh_window()
    upstream.plan = Plan()
    assert (await spender.ask()).code == 200, "the hold of the dead server has ended"
    assert await spender.charged() == [cost(25, 31)] * (made + 1)


@within_a_minute
@pytest.mark.trap(28)
async def test_a_burst_beyond_the_window_reaches_the_upstream_twenty_times(
    service: Service, two: Pair, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    spenders = [replace(spender, base_url=server.here) for server in two.servers]
    answers = await at_once(spenders[number % 2].ask() for number in range(100))
    assert sorted(answer.code for answer in answers) == [200] * 20 + [429] * 80
    assert len(upstream.calls) == 20
    assert await spender.charged() == [cost(25, 31)] * 20


@within_a_minute
@pytest.mark.trap(29)
@pytest.mark.parametrize("key", [pytest.param("", id="without a key"), pytest.param("k1", id="with a key")])
async def test_a_killed_process_leaves_an_expiring_hold(
    service: Service, mortal: Server, upstream: ScriptedUpstream, key: str
) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(8)
    upstream.plan = Plan(gate=gate)
    stream = await (await OpenStream.open(replace(spender, base_url=mortal.here), key=key)).begin()
    await stream.read(8)
    mortal.kill()
    await upstream.calls[0].over.wait()
    with pytest.raises(asyncio.IncompleteReadError):
        await stream.rest()
    stream.cut()
    account = await spender.account()
    assert len(account.holds) == 1
    assert account.spendable == account.paid - account.holds[0].amount
    upstream.plan = Plan()
    if key:
        assert_error(await spender.ask(question(stream=True), key=key), 409, "idempotency_in_progress")
    await end_holds(spender)
    account = await spender.account()
    assert (account.holds, account.held, account.spendable) == ((), 0, account.paid)
    answer = await spender.ask(question(stream=True), key=key)
    assert text_of(events_in(answer.body)) == TEXT
    assert "Idempotent-Replayed" not in answer.headers
    assert await spender.charged() == [cost(25, 31)]


@within_a_minute
@pytest.mark.trap(29)
async def test_shutdown_lets_a_call_finish(service: Service, mortal: Server, upstream: ScriptedUpstream) -> None:
    spender = replace(await Spender.make(service), base_url=mortal.here)
    gate = asyncio.Semaphore(8)
    upstream.plan = Plan(gate=gate)
    stream = await (await OpenStream.open(spender)).begin()
    whole = asyncio.ensure_future(spender.ask(key="k1"))
    await reached(upstream, 2)
    upstream.plan = Plan(opens=(opens := asyncio.Event()))
    left = await OpenStream.open(spender, question())
    await reached(upstream, 3)
    left.cut()
    events = await stream.read(7)
    mortal.process.terminate()
    while listens(mortal.port):
        await asyncio.sleep(0.01)
    for _ in range(2 * len(EVENTS)):
        gate.release()
    events += await stream.rest()
    assert text_of(events) == TEXT
    assert events[-2]["credits"]["charged"] == cost(25, 31)
    assert (await whole).code == 200
    stream.cut()
    opens.set()
    assert await asyncio.to_thread(mortal.wait) == 0
    assert "Traceback" not in mortal.log
    assert await spender.charged() == [cost(25, 31)] * 3, "one of them nobody waited for"


@within_a_minute
@pytest.mark.trap(29)
async def test_an_impatient_shutdown_leaves_nothing_behind(
    service: Service, two: Pair, options: tuple[str, ...], upstream: ScriptedUpstream
) -> None:
    impatient = ("--redis-url", two.engine.url, "--drain-timeout", "0.2", *QUICK, *options)
    with shared(two.keys.ring.render(), *impatient) as server:
        spender = replace(await Spender.make(service), base_url=server.ready().here)
        gate = asyncio.Semaphore(8)
        upstream.plan = Plan(gate=gate)
        stream = await (await OpenStream.open(spender)).begin()
        await stream.read(8)
        upstream.plan = Plan(before="hang")
        others = [await OpenStream.open(spender, question(), key=key) for key in ("", "k1")]
        others.append(await OpenStream.open(spender, question(stream=True), key="k2"))
        await reached(upstream, 4)
        server.process.terminate()
        with pytest.raises(asyncio.IncompleteReadError):
            await stream.rest()
        for opened in (stream, *others):
            opened.cut()
        assert await asyncio.to_thread(server.wait) == 0
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
        assert "never" not in server.log
    assert len(await spender.charged()) == 1
