"""AI calls whose app hangs up or stops reading: accepted calls are charged, and the hold ends. SPEC 4.6."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest
from tornado.httpserver import HTTPServer

from handlers.ai import call
from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai import leftover
from outbound.ai.models import Timeouts
from outbound.ai.tokens import count, count_request
from tests.support.http.driver import EMAIL, Service
from tests.support.http.upstream import Data, Plan, ScriptedUpstream, events_of, failing, message
from tests.support.store.ai_spender import (
    OpenStream,
    Spender,
    assert_error,
    at_rest,
    both_ways,
    cost,
    hurry,
    noticed,
    question,
    reached,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=20)

EVENTS = events_of(message())


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.trap(29)
@pytest.mark.parametrize("reset", [pytest.param(False, id="closed"), pytest.param(True, id="reset")])
@pytest.mark.parametrize("path", ["/api/v1/ai/messages", "/api/v1/ai/v1/messages"])
async def test_a_stream_cut_at_any_event_is_charged_for_input_and_received_output(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, reset: bool, path: str
) -> None:
    spender = await Spender.make(service)
    expected: list[int] = []
    # Nobody sees when the last delta, which is kept back, arrives here: a test of its own has that.
    numbers = [*range(1, len(EVENTS) - 1), len(EVENTS)]
    for number in numbers:
        gate = asyncio.Semaphore(number)
        upstream.plan = Plan(gate=gate)
        stream = await OpenStream.open(spender, path=path)
        events = await (await stream.begin()).read(number)
        assert [event["type"] for event in events] == [event["type"] for event in EVENTS[:number]]
        stream.cut(reset=reset)
        await at_rest(app)
        await upstream.calls[-1].over.wait()
        complete = number == len(EVENTS)
        expected.append(cost(25, 31 if complete else count(text_of(EVENTS[:number]))))
        assert upstream.calls[-1].hung_up or complete
        assert await spender.charged() == expected, number
        await spender.fresh_window()
    assert expected[0] == cost(25, 0), "after message_start alone"
    assert len(upstream.calls) == len(numbers), "none is tried again"


@pytest.mark.trap(29)
@pytest.mark.parametrize(
    ("patience", "charged"),
    [
        pytest.param(call.REPORT, cost(25, 0), id="by its report"),
        pytest.param(0.0, cost(count_request(question()), 0), id="by our count where the report is late"),
    ],
)
async def test_a_stream_abandoned_before_the_answer_is_charged_for_input(
    service: Service,
    app: Latchkey,
    upstream: ScriptedUpstream,
    monkeypatch: pytest.MonkeyPatch,
    patience: float,
    charged: int,
) -> None:
    monkeypatch.setattr(call, "REPORT", patience)
    spender = await Spender.make(service)
    upstream.plan = Plan(opens=(opens := asyncio.Event()), gate=asyncio.Semaphore(1))
    stream = await OpenStream.open(spender)
    await reached(upstream)
    stream.cut()
    await noticed(app)
    assert (await spender.account()).held > 0
    opens.set()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert upstream.calls[0].hung_up
    assert await spender.charged() == [charged]


@both_ways
@pytest.mark.trap(29)
async def test_a_refusal_after_the_app_left_is_free_and_not_retried(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    opens = asyncio.Event()
    upstream.plan = replace(failing(529, "overloaded_error"), opens=opens)
    opened = await OpenStream.open(spender, question(stream=stream))
    await reached(upstream)
    opened.cut()
    await noticed(app)
    opens.set()
    await at_rest(app)
    assert await spender.charged() == []
    assert len(upstream.calls) == 1


@pytest.mark.trap(29)
async def test_a_stream_without_a_report_is_charged_for_our_input_count(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "REPORT", 0.05)
    spender = await Spender.make(service)
    upstream.plan = Plan(gate=asyncio.Semaphore(0))
    stream = await OpenStream.open(spender)
    await reached(upstream)
    stream.cut()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert await spender.charged() == [cost(count_request(question()), 0)]


@pytest.mark.trap(29)
async def test_an_abandoned_plain_call_is_completed_and_charged_as_reported(
    service: Service, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    for stops_after in (None, 100):  # before the answer, and in its middle
        upstream.plan = Plan(opens=(opens := asyncio.Event()), gate=(gate := asyncio.Semaphore(0)))
        opened = await OpenStream.open(spender, question())
        await reached(upstream, len(upstream.calls) + 1)
        if stops_after:
            opens.set()
        opened.cut()
        await noticed(app)
        opens.set()
        gate.release()
        await at_rest(app)
    assert await spender.charged() == [cost(25, 31)] * 2
    assert [call.hung_up for call in upstream.calls] == [False, False]


@both_ways
@pytest.mark.trap(29)
async def test_an_abandoned_call_without_an_answer_is_free(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    upstream.plan = Plan(before="hang")
    opened = await OpenStream.open(spender, question(stream=stream))
    await reached(upstream)
    assert (await spender.account()).held > 0
    opened.cut()
    await upstream.calls[0].over.wait()
    await at_rest(app)
    assert await spender.charged() == []
    assert len(upstream.calls) == 1


DELTA_OF = {"type": "message_delta", "delta": {"stop_reason": None}}
SEALED = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "So what"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2VhbGVk" * 30}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "ZGF0YQ" * 9}},
]
RECEIVED = [
    pytest.param([{**DELTA_OF, "usage": {"output_tokens": 4001}}], 4001, id="a report ahead of what was received"),
    pytest.param([*EVENTS[1:6], {**DELTA_OF, "usage": {"output_tokens": 1}}], 4, id="a report behind it"),
    pytest.param(SEALED, count("c2VhbGVk" * 30) + count("ZGF0YQ" * 9), id="thinking that is sealed"),
    pytest.param([*SEALED[:2], *EVENTS[2:6]], 2 + 4, id="thinking that is shown, and text"),
]


@pytest.mark.trap(29)
@pytest.mark.trap(67)
@pytest.mark.parametrize(("events", "output"), RECEIVED)
async def test_received_output_is_charged_even_if_not_relayed(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, events: list[Data], output: int
) -> None:
    spender = await Spender.make(service)
    ping = {"type": "ping"}
    upstream.plan = Plan(events=[EVENTS[0], *events, ping], then="hang")
    stream = await (await OpenStream.open(spender, question(stream=True, max_tokens=4096))).begin()
    while (await stream.event() or {})["type"] != "ping":  # passed on at once: what came before is here
        pass
    stream.cut()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert await spender.charged() == [cost(25, output)]


@both_ways
@pytest.mark.trap(29)
async def test_an_app_that_leaves_during_the_hold_is_not_charged(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    upstream.plan = Plan(before="hang")
    opened = await OpenStream.open(spender, question(stream=stream))
    while not app.in_flight:
        await asyncio.sleep(0)
    opened.cut()
    await at_rest(app)
    assert await spender.charged() == []
    assert [call.hung_up for call in upstream.calls] == [True] * len(upstream.calls)


@pytest.mark.trap(29)
async def test_deleting_the_person_during_a_call_leaves_nothing(
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


WORD = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " word"}}
BIG = {**WORD, "padding": "x" * 4000}
A_MOMENT = Timeouts(connect=5, first_byte=5, between_events=5, total=3)


def narrow_down(http_server: HTTPServer, *sockets: socket.socket) -> None:
    """Sockets that hold a few kilobytes, so that a client that does not read is noticed soon."""
    ours = getattr(http_server, "_listening", None) or http_server._sockets.values()
    for listening in (*ours, *sockets):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@pytest.fixture
def narrow(http_server: HTTPServer, upstream: ScriptedUpstream) -> None:
    """The app's side and the upstream's."""
    narrow_down(http_server, *upstream.sockets)


@pytest.mark.trap(29)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("key", [pytest.param("", id="without a key"), pytest.param("k1", id="with a key")])
async def test_a_slow_client_slows_the_upstream_down(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, key: str
) -> None:
    spender = await Spender.make(service, amount=10**9)
    hurry(site, A_MOMENT)
    upstream.plan = Plan(events=[*EVENTS[:2], *[BIG] * 20_000, *EVENTS[-3:]])
    request = question("x" * 900_000, stream=True, max_tokens=4096)
    stream = await (await OpenStream.open(spender, request, key=key, buffer=4096)).begin()
    await stream.read(2)
    await upstream.calls[0].over.wait()
    await at_rest(app)
    sent = upstream.calls[0].sent
    assert sent < 10_000, "ten megabytes are more than all buffers on the way"
    charged = await spender.charged()
    assert charged in [[cost(25, delivered)] for delivered in range(1, sent + 2)], "what was on its way"
    with pytest.raises(asyncio.IncompleteReadError):  # cut off: nobody takes it for the whole
        await stream.rest()
    stream.cut()
    if key:
        answer = await spender.ask(request, key=key)
        assert_error(answer, 409, "idempotency_reply_gone")
        assert len(upstream.calls) == 1


@pytest.mark.trap(29)
async def test_unread_output_is_charged_when_the_client_hangs_up(
    service: Service,
    app: Latchkey,
    http_server: HTTPServer,
    upstream: ScriptedUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leftover, "SECONDS", 10.0)
    narrow_down(http_server)
    spender = await Spender.make(service)
    upstream.plan = Plan(events=[EVENTS[0], *[{**WORD, "padding": "x" * 100}] * 3000])
    stream = await OpenStream.open(spender, question(stream=True, max_tokens=4096), buffer=4096)
    await reached(upstream)
    await upstream.calls[0].over.wait()  # all was sent, half a megabyte, and next to nothing was read
    assert app.in_flight == 1
    stream.cut()
    await at_rest(app)
    assert await spender.charged() == [cost(25, 3000)]


@pytest.mark.trap(29)
@pytest.mark.usefixtures("narrow")
async def test_a_client_that_ignores_the_end_is_charged(
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


@pytest.mark.trap(29)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("returns", [pytest.param(True, id="and reads on"), pytest.param(False, id="and hangs up")])
async def test_a_client_that_stops_reading_for_too_long_is_charged(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, returns: bool
) -> None:
    spender = await Spender.make(service, amount=10**8)
    hurry(site, replace(A_MOMENT, between_events=0.1, total=15))
    upstream.plan = Plan(events=[*EVENTS[:2], *[BIG] * 2000, *EVENTS[-3:]])
    stream = await (await OpenStream.open(spender, question(stream=True, max_tokens=4096), buffer=4096)).begin()
    await stream.read(2)
    await held_back(upstream, 0.3)
    if returns:
        events = await stream.rest()
        assert [event["type"] for event in events] == [event["type"] for event in (BIG,) * 2000 + (*EVENTS[-3:],)]
    stream.cut()
    await at_rest(app)
    charged = await spender.charged()
    assert charged == [cost(25, 31)] if returns else charged in [[cost(25, number)] for number in range(1, 2001)]


async def held_back(upstream: ScriptedUpstream, seconds: float) -> None:
    """Waits until the upstream could send nothing for this long."""
    loop = asyncio.get_running_loop()
    sent, since = -1, loop.time()
    while loop.time() < since + seconds:
        if upstream.calls[0].sent != sent:
            sent, since = upstream.calls[0].sent, loop.time()
        await asyncio.sleep(0.01)
