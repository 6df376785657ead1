"""AI calls while the store loses answers or is away: every hold ends, nothing is charged twice. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest
from tornado.ioloop import IOLoop

from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.tokens import count, count_request
from store.crypto.keyring import Keys
from store.wiring import Store
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import Plan, ScriptedUpstream, error, events_of, message
from tests.support.processes.engines import Engine
from tests.support.store.ai_spender import (
    PATIENT,
    OpenStream,
    Spender,
    assert_error,
    at_rest,
    both_ways,
    cost,
    events_in,
    question,
    text_of,
)
from tests.support.store.lost_answers import Armed, losing

pytestmark = pytest.mark.gen_test(timeout=20)

EVENTS = events_of(message())
ONCE = [cost(25, 31)]


@pytest.fixture
def world(io_loop: IOLoop, keys: Keys, valkey_engine: Engine) -> Iterator[tuple[Store, Armed]]:
    """A store, and its connection, which loses answers on request."""
    opening = losing(valkey_engine, keys)
    made, armed = io_loop.run_sync(opening.__aenter__)
    yield made.store, armed
    io_loop.run_sync(lambda: opening.__aexit__(None, None, None))


@pytest.fixture
def armed(world: tuple[Store, Armed]) -> Armed:
    """The connection."""
    return world[1]


@pytest.fixture
def ai_store(world: tuple[Store, Armed]) -> Store:
    """The store."""
    return world[0]


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@both_ways
@pytest.mark.trap(29)
@pytest.mark.trap(30)
@pytest.mark.parametrize("lost", ["the answer", "the request"])
async def test_a_hold_with_a_lost_answer_is_released(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, armed: Armed, stream: bool, lost: str
) -> None:
    spender = await Spender.make(service)
    armed.lose_request = lost == "the request"
    for key in ("", "k1"):
        armed.arm("place_hold")
        refused = await spender.ask(question(stream=stream), key=key)
        assert_error(refused, 503, "temporarily_unavailable")
        assert refused.headers["Retry-After"] == "1"
        await at_rest(app)
        assert await spender.charged() == []
    assert upstream.calls == []
    assert (await spender.ask(question(stream=stream), key="k1")).code == 200
    assert await spender.charged() == ONCE


@both_ways
@pytest.mark.trap(30)
async def test_a_settlement_with_a_lost_answer_is_resent(
    service: Service, upstream: ScriptedUpstream, armed: Armed, stream: bool
) -> None:
    spender = await Spender.make(service)
    armed.arm("settle_hold")
    response = await spender.ask(question(stream=stream), key="k1")
    assert response.code == 200
    reply = events_in(response.body)[-2] if stream else json_of(response)
    assert reply["credits"]["charged"] == cost(25, 31)
    again = await spender.ask(question(stream=stream), key="k1")
    assert (again.body, again.headers["Idempotent-Replayed"]) == (response.body, "true")
    assert await spender.charged() == ONCE


@both_ways
@pytest.mark.trap(29)
@pytest.mark.trap(30)
@pytest.mark.parametrize("lost", ["the answer", "the request"])
async def test_a_permanently_lost_settlement_happens_at_most_once(
    service: Service, upstream: ScriptedUpstream, armed: Armed, stream: bool, lost: str
) -> None:
    spender = await Spender.make(service)
    armed.lose_request = lost == "the request"
    armed.arm("settle_hold", times=2)
    response = await spender.ask(question(stream=stream), key="k1")
    if stream:
        last = events_in(response.body)[-1]
        assert (response.code, last["type"], last["error"]["type"]) == (200, "error", "api_error")
        assert "charged" not in last["error"]["message"], "nobody knows"
    else:
        assert_error(response, 503, "temporarily_unavailable")
    assert await spender.charged() == ([] if armed.lose_request else ONCE)
    again = await spender.ask(question(stream=stream), key="k1")
    assert again.code == 200
    assert again.headers.get("Idempotent-Replayed") == (None if armed.lose_request else "true")
    assert await spender.charged() == ONCE


@pytest.mark.trap(29)
async def test_an_unreleased_hold_expires(service: Service, upstream: ScriptedUpstream, armed: Armed) -> None:
    spender = await Spender.make(service)
    armed.lose_request = True
    armed.arm("release_hold", times=2)
    upstream.plan = Plan(error("api_error"))
    assert_error(await spender.ask(), 502, "upstream_error")
    account = await spender.account()
    assert len(account.holds) == 1
    # A hold lasts as long as the longest call, plus a margin.
    assert 0 < account.holds[0].ends_at.timestamp() - time.time() <= PATIENT.total + 15


@pytest.mark.trap(29)
@pytest.mark.parametrize("reset", [pytest.param(False, id="closed"), pytest.param(True, id="reset")])
async def test_an_app_leaving_during_a_store_outage_is_settled_later(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, armed: Armed, reset: bool
) -> None:
    spender = await Spender.make(service)
    armed.lose_request = True
    armed.arm("settle_hold", times=2)
    upstream.plan = Plan(gate=asyncio.Semaphore(8))
    stream = await (await OpenStream.open(spender)).begin()
    await stream.read(8)
    stream.cut(reset=reset)
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert await spender.charged() == [cost(25, count(text_of(EVENTS[:8])))], "settled as soon as it was back"


@both_ways
@pytest.mark.trap(29)
async def test_an_upstream_failure_during_a_store_outage_is_settled_later(
    service: Service, upstream: ScriptedUpstream, armed: Armed, stream: bool
) -> None:
    spender = await Spender.make(service)
    armed.lose_request = True
    armed.arm("settle_hold", times=2)
    upstream.plan = Plan(stops_after=1 if stream else 100, then="cut")
    assert (await spender.ask(question(stream=stream))).code == (200 if stream else 502)
    assert await spender.charged() == [
        cost(25, 0) if stream else cost(count_request(question()), count(json.dumps(message())[:100]))
    ]
