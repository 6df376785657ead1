"""Idempotency-Key: a repeated request gets the same reply, and the person pays once. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.tokens import count, count_request
from tests.support.http.driver import Service, json_of, send_raw
from tests.support.http.upstream import TEXT, Ending, Plan, ScriptedUpstream, error, events_of, failing, message
from tests.support.processes.engines import FakeClock
from tests.support.store.ai_spender import (
    NATIVE,
    SDK,
    OpenStream,
    Spender,
    assert_error,
    at_rest,
    both_ways,
    cost,
    events_in,
    hurry,
    mint,
    question,
    reached,
    session_of,
    text_of,
)
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=20)

EVENTS = events_of(message())
ONCE = [cost(25, 31)]
DAY = 86_400


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@both_ways
@pytest.mark.trap(30)
async def test_a_repeated_key_returns_the_same_reply_for_free(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    request = question(stream=stream)
    first = await spender.ask(request, key="k1")
    assert first.code == 200
    assert "Idempotent-Replayed" not in first.headers
    for path in (NATIVE, SDK):
        again = await spender.ask(request, path, key="k1")
        assert (again.code, again.body) == (200, first.body)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert again.headers["X-RateLimit-Remaining"] == "17", "it takes its place in the window"
    assert len(upstream.calls) == 1
    assert await spender.charged() == ONCE
    assert (await spender.ask(request, key="k2")).code == 200
    assert (await spender.ask(request)).code == 200
    assert await spender.charged() == ONCE * 3


@both_ways
@pytest.mark.trap(29)
@pytest.mark.trap(30)
async def test_a_retry_gets_a_reply_that_was_lost(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    request = question(stream=stream)
    for number in (0, 1, 5, len(EVENTS) - 1):
        gate = asyncio.Semaphore(number if stream else 0)
        upstream.plan = Plan(gate=gate)
        opened = await OpenStream.open(spender, request, key=f"k{number}")
        await reached(upstream, len(upstream.calls) + 1)
        if stream and number:
            await (await opened.begin()).read(min(number, len(EVENTS) - 2))
        opened.cut(reset=number == 5)
        running = await spender.ask(request, key=f"k{number}")
        assert_error(running, 409, "idempotency_in_progress")
        for _ in EVENTS:
            gate.release()
        await at_rest(app)
        again = await spender.ask(request, key=f"k{number}")
        assert (again.code, again.headers["Idempotent-Replayed"]) == (200, "true")
        if stream:
            events = events_in(again.body)
            assert [event["type"] for event in events] == [event["type"] for event in EVENTS]
            assert text_of(events) == TEXT
            assert events[-2]["credits"]["charged"] == cost(25, 31)
        else:
            assert json_of(again)["content"] == message()["content"]
    assert len(upstream.calls) == 4
    assert await spender.charged() == ONCE * 4


@both_ways
@pytest.mark.trap(30)
async def test_concurrent_calls_with_one_key_make_one_call(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    answers = await asyncio.gather(*(spender.ask(question(stream=stream), key="k1") for _ in range(20)))
    assert {answer.code for answer in answers} <= {200, 409}
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers if answer.code == 200].count(None) == 1
    assert len(upstream.calls) == 1
    assert await spender.charged() == ONCE


@both_ways
@pytest.mark.trap(30)
async def test_the_same_key_with_another_request_is_refused(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    opened = await OpenStream.open(spender, question(stream=stream), key="k1")
    await reached(upstream)
    for request in (question("Another thing.", stream=stream), question(stream=not stream)):
        assert_error(await spender.ask(request, key="k1"), 422, "idempotency_mismatch")
    assert_error(await spender.ask(question(stream=stream), key="k1"), 409, "idempotency_in_progress")
    answer = await spender.ask(question(stream=stream), SDK, key="k1")
    assert (answer.code, json_of(answer)["error"]["type"]) == (409, "invalid_request_error")
    for _ in EVENTS:
        gate.release()
    await opened.begin()
    while stream and await opened.event():
        pass
    opened.cut()
    assert_error(await spender.ask(question("Another thing.", stream=stream), key="k1"), 422, "idempotency_mismatch")
    assert len(upstream.calls) == 1


@both_ways
@pytest.mark.trap(30)
async def test_a_reply_too_large_to_keep_is_not_charged_again(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(message(*["x" * 500_000] * 3))
    request = question(stream=stream)
    first = await spender.ask(request, key="k1")
    assert first.code == 200
    assert len(first.body) > 1_500_000
    again = await spender.ask(request, key="k1")
    assert_error(again, 409, "idempotency_reply_gone")
    assert again.headers["X-Should-Retry"] == "false"
    assert again.headers["X-RateLimit-Remaining"] == "18"
    assert len(upstream.calls) == 1
    assert await spender.charged() == ONCE


@both_ways
@pytest.mark.trap(30)
async def test_a_refused_ai_call_releases_its_key(
    service: Service, site: Site, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service, amount=0)
    request = question(stream=stream)
    assert_error(await spender.ask(request, key="k1"), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, 10**6)
    for plan in (failing(500, "api_error"), failing(400, "invalid_request_error"), Plan(events=[error("api_error")])):
        upstream.plan = plan if stream or plan.events is None else Plan(error("api_error"))
        response = await spender.ask(request, key="k1")
        assert response.code in (400, 502)
        assert "X-Should-Retry" not in response.headers
        assert await spender.charged() == []
    hurry(site)
    upstream.plan = Plan(before="hang")
    assert (await spender.ask(request, key="k1")).code == 504
    upstream.plan = Plan()
    response = await spender.ask(request, key="k1")
    assert response.code == 200
    assert "Idempotent-Replayed" not in response.headers
    assert await spender.charged() == ONCE


@both_ways
@pytest.mark.trap(30)
async def test_an_interrupted_call_is_charged_once_under_its_key(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(stops_after=1 if stream else 100, then="cut")
    broken = await spender.ask(question(stream=stream), key="k1")
    charged = [cost(25, 0) if stream else cost(count_request(question()), count(json.dumps(message())[:100]))]
    assert "was charged" in broken.body.decode()
    assert await spender.charged() == charged
    upstream.plan = Plan()
    again = await spender.ask(question(stream=stream), key="k1")
    assert_error(again, 409, "idempotency_reply_gone")
    assert again.headers["X-Should-Retry"] == "false"
    assert await spender.charged() == charged
    assert (await spender.ask(question(stream=stream), key="k2")).code == 200


@pytest.mark.trap(29)
@pytest.mark.trap(30)
@pytest.mark.parametrize("then", ["hang", "pings", "cut"])
async def test_an_upstream_failure_after_the_app_left_charges_what_arrived(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, then: Ending
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    gate = asyncio.Semaphore(8)
    upstream.plan = Plan(stops_after=10, then=then, gate=gate)
    opened = await (await OpenStream.open(spender, key="k1")).begin()
    await opened.read(8)
    opened.cut()
    gate.release()
    gate.release()
    await at_rest(app)
    assert await spender.charged() == [cost(25, count(text_of(EVENTS[:10])))]
    assert_error(await spender.ask(question(stream=True), key="k1"), 409, "idempotency_reply_gone")
    assert len(upstream.calls) == 1


async def test_a_key_belongs_to_one_app_and_person(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    other = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    assert (await spender.ask(key="k1")).code == 200
    answer = await other.ask(key="k1")
    assert "Idempotent-Replayed" not in answer.headers
    service.ada = await service.add_person("grace@example.com")
    grace = await Spender.make(service)
    answer = await grace.ask(key="k1")
    assert "Idempotent-Replayed" not in answer.headers
    assert len(upstream.calls) == 3
    assert (await grace.charged(), await spender.charged()) == (ONCE, ONCE * 2)


async def test_a_kept_reply_needs_a_live_token_too(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    assert (await spender.ask(key="k1")).code == 200
    narrow = replace(spender, token=await mint(service, spender.app, "profile"))
    assert_error(await narrow.ask(key="k1"), 403, "insufficient_scope")
    await service.store.grants.revoke(await session_of(service), spender.app.client_id, VISITOR)
    assert_error(await spender.ask(key="k1"), 401, "invalid_token")


async def test_a_key_is_good_for_a_day(clock: FakeClock, service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    assert (await spender.ask(key="k1")).code == 200
    clock.advance(DAY - 60)
    spender.token = await mint(service, spender.app)
    assert (await spender.ask(key="k1")).headers["Idempotent-Replayed"] == "true"
    clock.advance(61)
    answer = await spender.ask(key="k1")
    assert answer.code == 200
    assert "Idempotent-Replayed" not in answer.headers
    assert await spender.charged() == ONCE * 2


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("Idempotency-Key: ", id="empty"),
        pytest.param("Idempotency-Key: a b", id="a space"),
        pytest.param(f"Idempotency-Key: {'k' * 256}", id="256 characters"),
        pytest.param("Idempotency-Key: k\xe9", id="beyond ASCII"),
        pytest.param("Idempotency-Key: k1\r\nIdempotency-Key: k1", id="twice"),
    ],
)
async def test_an_invalid_key_is_refused(service: Service, upstream: ScriptedUpstream, header: str) -> None:
    spender = await Spender.make(service)
    body = b'{"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'
    head = f"POST {NATIVE} HTTP/1.1\r\nAuthorization: Bearer {spender.token}\r\nContent-Type: application/json\r\n"
    status, answer = await send_raw(service.base_url, (head + header).encode("latin-1"), body)
    assert (status, b"Idempotency-Key" in answer) == (400, True)
    assert upstream.calls == []
