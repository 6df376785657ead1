"""AI calls whose upstream breaks off in mid-reply or is away: what the app gets and pays. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from outbound.ai.tokens import count, count_request
from tests.support.http.driver import Service
from tests.support.http.upstream import TEXT, Plan, ScriptedUpstream, error, events_of, message
from tests.support.store.ai_spender import (
    SHORT,
    OpenStream,
    Spender,
    assert_error,
    cost,
    events_in,
    hurry,
    question,
    reached,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=20)

SENT_MIDWAY = 6
"""Events of a stream after part of the text."""


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


INPUT = count_request(question())


STREAM = events_of(message())
BROKEN = [
    pytest.param(Plan(events=[*STREAM[:SENT_MIDWAY], {"type": "no name"}]), "api_error", id="an event without a name"),
    pytest.param(Plan(events=[*STREAM[:SENT_MIDWAY], {"type": "ping", "x": float("nan")}]), "api_error", id="NaN"),
    pytest.param(Plan(events=[*STREAM[:-2], {**STREAM[-2], "x": float("inf")}]), "api_error", id="Infinity"),
    pytest.param(
        Plan(events=[*STREAM[:SENT_MIDWAY], {"type": "content_block_delta", "delta": "x" * 2**20}]),
        "api_error",
        id="an event beyond 1 MiB",
    ),
    pytest.param(
        Plan(write=lambda piece: (piece if b"content_block_delta" not in piece else b"data: {\n\n",)),
        "api_error",
        id="an event that is no JSON",
    ),
]
MIDWAY = [
    pytest.param(Plan(stops_after=SENT_MIDWAY, then="cut"), "api_error", id="cut"),
    pytest.param(Plan(stops_after=SENT_MIDWAY, then="reset"), "api_error", id="reset"),
    pytest.param(Plan(stops_after=SENT_MIDWAY, then="end"), "api_error", id="ended early"),
    pytest.param(Plan(stops_after=len(STREAM) - 1, then="cut"), "api_error", id="cut after message_delta"),
    pytest.param(Plan(stops_after=len(STREAM) - 1, then="end"), "api_error", id="ended after message_delta"),
    pytest.param(Plan(stops_after=SENT_MIDWAY, then="hang"), "timeout_error", id="hanging"),
    pytest.param(Plan(stops_after=len(STREAM) - 1, then="hang"), "timeout_error", id="hanging after message_delta"),
    pytest.param(Plan(stops_after=SENT_MIDWAY, then="pings"), "timeout_error", id="sending pings for ever"),
    pytest.param(Plan(stops_after=1, then="pings"), "timeout_error", id="sending pings for ever, nothing else"),
    pytest.param(Plan(events=[*STREAM[:SENT_MIDWAY], error("overloaded_error")]), "overloaded_error", id="overloaded"),
    pytest.param(Plan(events=[*STREAM[:SENT_MIDWAY], error("api_error")]), "api_error", id="failing"),
    pytest.param(Plan(events=[*STREAM[:SENT_MIDWAY], {"type": "error"}]), "api_error", id="failing without a word"),
]


@pytest.mark.trap(29)
@pytest.mark.parametrize(("plan", "kind"), [*MIDWAY, *BROKEN])
async def test_an_upstream_failure_mid_stream_is_charged_for_what_arrived(
    service: Service, site: Site, upstream: ScriptedUpstream, plan: Plan, kind: str
) -> None:
    spender = await Spender.make(service)
    if kind == "timeout_error":
        hurry(site)
    upstream.plan = plan
    response = await spender.ask(question(stream=True))
    assert response.code == 200
    events = events_in(response.body)
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["type"] == kind
    assert "was charged" in events[-1]["error"]["message"]
    assert "Nothing" not in events[-1]["error"]["message"]
    assert all("credits" not in event for event in events)
    assert "message_stop" not in {event["type"] for event in events}
    assert len(upstream.calls) == 1, "none after the first byte"
    said = text_of([event for event in events if isinstance(event.get("delta"), dict)])
    # A report that came before it failed counts, though it was kept back; so do the bytes that could not be read.
    used = cost(25, 31 if plan.stops_after == len(STREAM) - 1 else count(said))
    (charged,) = await spender.charged()
    assert charged > used if any(plan is case.values[0] for case in BROKEN) else charged == used
    await upstream.calls[0].over.wait()


@pytest.mark.trap(29)
async def test_an_unreadable_event_is_charged_by_its_bytes(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    lost = b'data: {"type":"content_block_delta","delta":{"text":"' + b"word " * 20 + b"\n\n"
    upstream.plan = Plan(
        stops_after=2, then="hang", write=lambda piece: (piece if b"message_start" in piece else lost,)
    )
    events = events_in((await spender.ask(question(stream=True))).body)
    assert [event["type"] for event in events] == ["message_start", "error"]
    assert await spender.charged() == [cost(25, count(lost.decode()))]


@pytest.mark.trap(29)
@pytest.mark.parametrize("ending", ["cut", "reset", "hang", "end"])
async def test_a_plain_reply_that_breaks_off_is_an_error(
    service: Service, site: Site, upstream: ScriptedUpstream, ending: Any
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    upstream.plan = Plan(stops_after=100, then=ending)
    status, code = (504, "upstream_timeout") if ending == "hang" else (502, "upstream_error")
    assert "was charged" in assert_error(await spender.ask(), status, code)
    assert len(upstream.calls) == 1, "none after the first byte"
    assert await spender.charged() == [cost(INPUT, count(json.dumps(message())[:100]))], "what was received"
    await upstream.calls[0].over.wait()


@pytest.mark.trap(29)
async def test_an_upstream_that_stops_speaking_http_times_out(
    service: Service, site: Site, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    upstream.plan = Plan(stops_after=SENT_MIDWAY, then="hang")
    stream = await (await OpenStream.open(spender)).begin()
    assert len(await stream.read(SENT_MIDWAY)) == SENT_MIDWAY
    await upstream.calls[0].spoil()
    # The client library drops the connection and does not say so: it is the time limit that ends this.
    events = await stream.rest()
    assert [event["error"]["type"] for event in events] == ["timeout_error"]
    assert len(upstream.calls) == 1
    assert await spender.charged() == [cost(25, count(text_of(STREAM[:SENT_MIDWAY])))]
    stream.cut()


@pytest.mark.trap(29)
async def test_a_failed_connection_is_closed_before_the_retry(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.script(Plan(events=[error("overloaded_error")], then="hang"), Plan(gate=gate))
    answer = asyncio.ensure_future(spender.ask(question(stream=True)))
    await reached(upstream, 2)
    await upstream.calls[0].over.wait()
    assert not answer.done()
    for _ in STREAM:
        gate.release()
    assert text_of(events_in((await answer).body)) == TEXT
    assert await spender.charged() == [cost(25, 31)]


async def test_calls_on_one_connection_do_not_leak_into_each_other(
    service: Service, site: Site, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    # A name: to addresses no client library sends cookies back.
    site.models.all()[0].upstream.url = upstream.url.replace("127.0.0.1", "localhost")
    upstream.plan = Plan(headers={"Set-Cookie": "seen=ada; Path=/"})
    for _ in range(2):
        assert (await spender.ask()).code == 200
    assert [call.request.headers.get("Cookie") for call in upstream.calls] == [None, None]


async def test_an_unreachable_upstream_is_an_error(service: Service, site: Site, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    await upstream.close()
    for stream in (False, True):
        assert_error(await spender.ask(question(stream=stream)), 502, "upstream_error")
    assert upstream.calls == []
    assert await spender.charged() == []


async def test_more_calls_than_connections_wait_and_are_refused_in_time(
    service: Service, site: Site, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    site.models.all()[0].upstream._connections = 1  # type: ignore[attr-defined]  # an upstream on HTTP
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    first = asyncio.ensure_future(spender.ask(question(stream=True)))
    await reached(upstream)
    second = asyncio.ensure_future(spender.ask(question(stream=True)))
    while len((await spender.account()).holds) < 2:
        await asyncio.sleep(0.001)
    for _ in range(2 * len(STREAM)):
        gate.release()
    assert [(await first).code, (await second).code] == [200, 200]
    hurry(site, replace(SHORT, connect=0.1, first_byte=5, total=10))
    upstream.plan = Plan(before="hang")
    first = asyncio.ensure_future(spender.ask())
    await reached(upstream, 3)
    assert_error(await spender.ask(), 529, "overloaded")
    await upstream.close()
    assert_error(await first, 502, "upstream_error")
    assert await spender.charged() == [cost(25, 31)] * 2
