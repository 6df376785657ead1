"""Concurrent AI calls: limited on their own, without slowing other requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from handlers.core.application import Latchkey
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.site import Site
from tests.support.http.driver import Service
from tests.support.http.upstream import Plan, ScriptedUpstream
from tests.support.store.ai_spender import NATIVE, SDK, OpenStream, Spender, at_rest, cost, noticed, question, reached

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.fixture
def site(ai_site: Site) -> Site:
    return replace(ai_site, ai_calls=ConcurrencyLimit(2))


@pytest.mark.parametrize("path", [NATIVE, SDK])
async def test_an_excess_call_is_refused_before_the_hold(
    path: str, service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    app.admit(1)
    streams = []
    for number in (1, 2):
        streams.append(await OpenStream.open(spender, question(stream=True), path=path))
        await reached(upstream, number)
    assert (app.in_flight, app.bound, site.ai_calls.taken) == (2, 3, 2)
    app.admit(4)  # as a reload does
    assert app.bound == 6
    app.admit(1)
    assert app.bound == 3
    held = (await spender.account()).held
    refused = await OpenStream.open(spender, question(stream=True), path=path)
    await refused.begin()
    assert refused.status == 503
    assert 1 <= int(refused.headers["retry-after"]) <= 3
    refused.cut()
    assert (await spender.account()).held == held
    assert (await service.web.userinfo("no token")).code == 401, "there is room for others"
    for _ in range(100):
        gate.release()
    for stream in streams:
        assert (await (await stream.begin()).rest())[-1]["type"] == "message_stop"
        stream.cut()
    await at_rest(app)
    assert (app.in_flight, app.bound, site.ai_calls.taken) == (0, 1, 0)
    upstream.plan = Plan()
    assert (await spender.ask(question())).code == 200


async def test_token_counts_take_places_too(
    service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(gate=(gate := asyncio.Semaphore(0)), body=b'{"input_tokens": 7}')
    request, path = question(max_tokens=None), f"{SDK}/count_tokens"
    counts = [asyncio.ensure_future(spender.ask(request, path)) for _ in range(2)]
    await reached(upstream, 2)
    assert site.ai_calls.taken == 2
    assert (await spender.ask(request, path)).code == 503
    for _ in counts:
        gate.release()
    assert [(await count).code for count in counts] == [200, 200]
    await at_rest(app)
    assert (app.in_flight, site.ai_calls.taken) == (0, 0)


@pytest.mark.parametrize("path", [NATIVE, f"{SDK}/count_tokens"])
async def test_abandoned_calls_count_for_the_person_until_they_end(
    path: str, service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    if path == NATIVE:  # over all processes, by the holds
        site.ai_calls.resize(9)
        service.store.calls.most_each = 2
    else:
        site.ai_calls.resize(9, 2)
    upstream.plan = Plan(opens=(opens := asyncio.Event()))
    for number in (1, 2):
        opened = await OpenStream.open(spender, question(), path=path)
        await reached(upstream, number)
        opened.cut()
    await noticed(app)
    refused = await spender.ask(question(), path)
    assert refused.code == 429
    assert int(refused.headers["Retry-After"]) in (1, 2, 3)
    assert (len(upstream.calls), site.ai_calls.taken) == (2, 2)
    opens.set()
    await at_rest(app)
    assert (await spender.ask(question(), path)).code == 200
    assert await spender.charged() == [cost(25, 31)] * (3 if path == NATIVE else 0)


@pytest.mark.parametrize("reset", [False, True])
async def test_a_cut_stream_frees_its_place(
    reset: bool, service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    app.admit(1)
    for number in range(1, 6):
        upstream.plan = Plan(gate=asyncio.Semaphore(5))
        stream = await (await OpenStream.open(spender, question(stream=True))).begin()
        await reached(upstream, number)
        await stream.read(5)
        stream.cut(reset=reset)
        await at_rest(app)
        assert (app.in_flight, app.bound, site.ai_calls.taken) == (0, 1, 0)


@pytest.mark.parametrize("before", ["cut", "reset"])
async def test_a_failed_call_frees_its_place(
    before: str, service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(before=before)  # type: ignore[arg-type]  # one of its words
    for stream in (False, True):
        assert (await spender.ask(question(stream=stream))).code == 502
    assert (await spender.ask(question(model="none"))).code == 404
    await at_rest(app)
    assert (app.in_flight, site.ai_calls.taken) == (0, 0)
