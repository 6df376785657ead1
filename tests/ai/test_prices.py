"""Prices for each kind of token: what the documented usage reports of the Messages API cost. SPEC 4.6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.ai.meter import Meter
from store.credits.prices import Price, TokenCounts
from store.credits.records import entry_record
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import MODEL, Spender, both_ways, bound, events_in, models_on, question

pytestmark = pytest.mark.gen_test(timeout=20)

SONNET = Price("2026-01", 3_000_000, 15_000_000, 300_000, 3_750_000, 6_000_000)
"""Published prices of a model: writes at 1.25 and 2 times the input, reads at a tenth."""
ODD = Price("odd", 3_141_593, 15_926_535, 314_159, 3_926_991, 6_283_185)


@pytest.fixture
def price() -> Price:
    """The price of the model."""
    return SONNET


@pytest.fixture
def site(io_loop: IOLoop, ai_site: Site, upstream: ScriptedUpstream, price: Price) -> Iterator[Site]:
    """The model runs on the scripted upstream, at this price."""
    made = replace(ai_site, models=models_on(upstream.url, price=price))
    yield made
    io_loop.run_sync(made.models.close)


def report(fresh: int, read: int, short: int, hour: int, output: int) -> dict[str, Any]:
    """A usage report as the Messages API documents it."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": short + hour,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
        "service_tier": "standard",
    }


REPORTS = [
    pytest.param((50, 0, 0, 0, 503), id="no cache"),
    pytest.param((50, 0, 248, 0, 503), id="written for five minutes"),
    pytest.param((50, 0, 0, 100, 503), id="written for an hour"),
    pytest.param((50, 900, 0, 0, 503), id="read"),
    pytest.param((48, 800, 148, 100, 503), id="all of them"),
    pytest.param((0, 0, 0, 1, 0), id="one token"),
    pytest.param((1, 1, 1, 1, 1), id="one of each"),
]


@both_ways
@pytest.mark.trap(66)
@pytest.mark.parametrize("price", [pytest.param(SONNET, id="whole"), pytest.param(ODD, id="odd")])
@pytest.mark.parametrize("counts", REPORTS)
async def test_each_token_is_charged_once_at_its_own_price(
    service: Service, upstream: ScriptedUpstream, counts: tuple[int, ...], price: Price, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(message(usage=report(*counts)))
    answer = await spender.ask(question("a " * 400, max_tokens=600, stream=stream))
    credits = events_in(answer.body)[-2]["credits"] if stream else json_of(answer)["credits"]
    fresh, read, short, hour, output = (Fraction(count, 10**6) for count in counts)
    exact = fresh * price.input + output * price.output
    exact += read * (price.cache_read or 0) + short * (price.cache_write or 0) + hour * (price.cache_write_1h or 0)
    assert credits["charged"] == ceil(exact)
    assert await spender.charged() == [ceil(exact)]
    record = entry_record((await spender.account()).entries[0])
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "cacheWrite1hTokens", "outputTokens")
    assert tuple(record[name] for name in names) == counts
    assert record["priceVersion"] == price.version


async def test_the_hold_covers_the_dearest_kind_of_input(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=0)
    most = bound(question())
    whole = -(-(most * 6_000_000 + 100 * 15_000_000) // 10**6)
    await service.store.credits.grant(spender.user, whole)
    upstream.plan = Plan(message(usage=report(0, 0, 0, most, 100)))
    assert json_of(await spender.ask())["credits"] == {"charged": whole, "remaining": 0}
    assert upstream.calls[0].question["max_tokens"] == 100
    await service.store.credits.grant(spender.user, -(-(most * 6_000_000) // 10**6))
    assert (await spender.ask()).code == 402, "so much input leaves nothing for output"


async def test_the_list_of_models_has_flat_prices(service: Service) -> None:
    flat = {"input": 3_000_000, "output": 15_000_000, "cacheRead": 300_000, "cacheWrite": 3_750_000}
    flat["cacheWrite1h"] = 6_000_000
    spender = await Spender.make(service)
    listed = json_of(await spender.get("/ai/v1/models"))
    assert (listed["object"], listed["has_more"], listed["first_id"], listed["last_id"]) == (
        "list",
        False,
        MODEL,
        MODEL,
    )
    [model] = listed["data"]
    assert model == {
        **{"type": "model", "id": MODEL, "display_name": "Scripted", "created_at": "2026-01-01T00:00:00.000Z"},
        **{"object": "model", "owned_by": "latchkey", "created": 1_767_225_600, **flat},
    }
    assert json_of(await spender.get(f"/ai/v1/models/{MODEL}")) == model
    [native] = json_of(await spender.get("/ai/models"))["models"]
    assert native["pricePerMillionTokens"] == {"version": "2026-01", "currency": "USD", "scale": 6, **flat}


@pytest.mark.trap(67)
@pytest.mark.parametrize(
    ("start", "delta", "used"),
    [
        pytest.param(report(9, 5, 3, 2, 1), {"output_tokens": 7}, (9, 7, 5, 3, 2), id="input at the start alone"),
        pytest.param(report(9, 5, 3, 2, 1), report(9, 5, 3, 2, 7), (9, 7, 5, 3, 2), id="the same twice"),
        pytest.param(report(19, 0, 0, 0, 1), report(9, 5, 3, 2, 7), (9, 7, 5, 3, 2), id="the kinds at the end alone"),
        pytest.param(report(9, 5, 3, 2, 1), report(1, 5, 3, 2, 7), (9, 7, 5, 3, 2), id="fewer at the end"),
        pytest.param(report(9, 5, 3, 2, 1), report(9, 50, 3, 2, 7), (9, 7, 50, 3, 2), id="more at the end"),
        pytest.param(
            report(9, 5, 3, 2, 1),
            {"cache_creation_input_tokens": 9, "output_tokens": 7},
            (9, 7, 5, 7, 2),
            id="more writes, without their parts",
        ),
    ],
)
def test_a_token_that_two_reports_count_is_charged_once(
    start: dict[str, Any], delta: dict[str, Any], used: tuple[int, ...]
) -> None:
    meter = Meter(question())
    events = events_of(message())
    events[0]["message"]["usage"], events[-2]["usage"] = start, delta
    for event in events:
        meter.see_event(event)
    assert meter.used() == TokenCounts(*used)


def test_parts_without_their_sum_count() -> None:
    meter = Meter(question())
    parts = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    meter.see_reply({"content": [], "usage": {"input_tokens": 1, "cache_creation": parts, "output_tokens": 2}})
    assert meter.used() == TokenCounts(1, 2, 0, 3, 4)
