"""AI calls whose app hangs up, or stops reading: what was delivered is charged, and the hold ends. SPEC 4.6."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tornado.httpserver import HTTPServer

from handlers.application import Latchkey
from handlers.site import Site
from outbound.models import Limits
from outbound.tokens import count
from tests.driver import EMAIL, Service
from tests.spender import OpenStream, Spender, assert_error, at_rest, cost, hurry, question, reached, text_of
from tests.upstream import Plan, ScriptedUpstream, events_of, message

pytestmark = pytest.mark.gen_test(timeout=20)

both_ways = pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
EVENTS = events_of(message())


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.trap(29)
@pytest.mark.parametrize("reset", [pytest.param(False, id="closed"), pytest.param(True, id="reset")])
@pytest.mark.parametrize("path", ["/api/v1/ai/messages", "/api/v1/ai/v1/messages"])
async def test_cut_at_every_event_what_was_delivered_is_charged(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, reset: bool, path: str
) -> None:
    spender = await Spender.make(service)
    expected: list[int] = []
    for number in range(len(EVENTS) + 1):
        gate = asyncio.Semaphore(number)
        upstream.plan = Plan(gate=gate)
        stream = await OpenStream.open(spender, path=path)
        # The last delta is kept back until what comes after it says that it is the last.
        sent = number - 1 if number == len(EVENTS) - 1 else number
        if number:
            events = await (await stream.begin()).read(sent)
            assert [event["type"] for event in events] == [event["type"] for event in EVENTS[:sent]]
        await reached(upstream, number + 1)
        while upstream.calls[-1].sent < number:
            await asyncio.sleep(0.001)
        stream.cut(reset=reset)
        await at_rest(app)
        await upstream.calls[-1].over.wait()
        output = count(text_of(EVENTS[:sent]))
        if number == len(EVENTS):
            expected.append(cost(25, 31))
        elif output:
            expected.append(cost(25, output))
        assert upstream.calls[-1].hung_up or number == len(EVENTS)
        assert await spender.charged() == expected, number
        await spender.fresh_window()
    assert len(expected) > 18
    assert len(upstream.calls) == len(EVENTS) + 1, "none is tried again"


@both_ways
@pytest.mark.trap(29)
async def test_cut_before_the_first_byte_nothing_is_charged(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(before="hang")
    opened = await OpenStream.open(spender, question(stream=stream))
    await reached(upstream)
    assert (await spender.account()).held > 0
    opened.cut()
    await upstream.calls[0].over.wait()
    await at_rest(app)
    assert await spender.charged() == []
    assert len(upstream.calls) == 1


@both_ways
@pytest.mark.trap(29)
async def test_cut_while_the_hold_is_placed(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(before="hang")
    opened = await OpenStream.open(spender, question(stream=stream))
    while not app.in_flight:
        await asyncio.sleep(0)
    opened.cut()
    await at_rest(app)
    assert await spender.charged() == []
    assert [call.hung_up for call in upstream.calls] == [True] * len(upstream.calls)


@pytest.mark.trap(29)
async def test_a_person_who_is_deleted_in_the_middle_of_a_call(
    service: Service, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    for cut in (False, True):
        spender = await Spender.make(service)
        gate = asyncio.Semaphore(8)
        upstream.plan = Plan(gate=gate)
        stream = await (await OpenStream.open(spender)).begin()
        await stream.read(8)
        await service.store.operator.delete(EMAIL)
        if not cut:
            for _ in EVENTS:
                gate.release()
            assert (await stream.rest())[-1]["type"] == "error"
        stream.cut()
        await at_rest(app)
        await upstream.calls[-1].over.wait()
        service.ada = await service.add_person(EMAIL)


WORDS = "word " * 200  # a kilobyte
BIG = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS}}
A_MOMENT = Limits(connect=5, first_byte=5, between_events=5, total=1.2)


@pytest.fixture
def narrow(http_server: HTTPServer, upstream: ScriptedUpstream) -> None:
    """Sockets that hold a few kilobytes, so that who does not read is noticed soon."""
    ours = getattr(http_server, "_listening", None) or http_server._sockets.values()
    for listening in (*ours, *upstream.sockets):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@pytest.mark.trap(29)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("key", [pytest.param("", id="without a key"), pytest.param("k1", id="with a key")])
async def test_a_client_that_stops_reading_holds_the_upstream_back(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, key: str
) -> None:
    spender = await Spender.make(service, amount=10**9)
    hurry(site, A_MOMENT)
    upstream.plan = Plan(events=[*EVENTS[:2], *[BIG] * 20_000, *EVENTS[-3:]])
    asked = question("x" * 900_000, stream=True, max_tokens=4096)
    stream = await (await OpenStream.open(spender, asked, key=key, buffer=4096)).begin()
    await stream.read(2)
    await upstream.calls[0].over.wait()
    await at_rest(app)
    sent = upstream.calls[0].sent
    assert sent < 10_000, "ten megabytes are more than all buffers on the way"
    charged = await spender.charged()
    assert charged in [[cost(25, delivered * count(WORDS))] for delivered in range(1, sent)], "what was on its way"
    with pytest.raises(asyncio.IncompleteReadError):  # cut off: nobody takes it for the whole
        await stream.rest()
    stream.cut()
    if key:
        answer = await spender.ask(asked, key=key)
        assert_error(answer, 409, "idempotency_reply_gone")
        assert len(upstream.calls) == 1


@pytest.mark.trap(29)
@pytest.mark.usefixtures("narrow")
async def test_a_client_that_does_not_read_the_end(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    hurry(site, A_MOMENT)
    upstream.plan = Plan(events=[*EVENTS[:-2], {**EVENTS[-2], "padding": "x" * 100_000}, EVENTS[-1]])
    stream = await (await OpenStream.open(spender, buffer=4096)).begin()
    await stream.read(2)
    await upstream.calls[0].over.wait()
    await at_rest(app)
    assert await spender.charged() == [cost(25, 31)]
    with pytest.raises(asyncio.IncompleteReadError):
        await stream.rest()
    stream.cut()
