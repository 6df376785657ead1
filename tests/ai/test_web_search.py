"""Searches that a model's server makes for a call: refused by name without a price, else held and charged by the call.
SPEC 4.6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.ai.dialects.messages_same import MAX_SEARCHES, WEB_SEARCH
from outbound.ai.meter import Meter
from store.credits.prices import Price, TokenCounts
from store.credits.records import entry_record
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import (
    SDK,
    Spender,
    assert_error,
    both_ways,
    events_in,
    models_on,
    question,
)

pytestmark = pytest.mark.gen_test(timeout=20)

SEARCH = 10_000
PRICED = Price("2026-01", 3_000_000, 15_000_000, 300_000, 3_750_000, 6_000_000, SEARCH)
MAX_INPUT = 200_000
RICH = 10**8
BLOCKS: list[Any] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
]


@pytest.fixture
def price() -> Price:
    """The price of the model."""
    return PRICED


@pytest.fixture
def site(io_loop: IOLoop, ai_site: Site, upstream: ScriptedUpstream, price: Price) -> Iterator[Site]:
    """The model runs on the scripted upstream, at this price."""
    made = replace(ai_site, models=models_on(upstream.url, price=price))
    yield made
    io_loop.run_sync(made.models.close)


def asking(uses: object = 2, **changes: Any) -> dict[str, Any]:
    """A question with the tool."""
    return question(tools=[{"type": WEB_SEARCH, "name": "web_search", "max_uses": uses}], **changes)


def usage(searches: int) -> dict[str, Any]:
    """A report as the Messages API documents it."""
    return {"input_tokens": 1000, "output_tokens": 100, "server_tool_use": {"web_search_requests": searches}}


def held(uses: int, output: int = 100) -> int:
    """The most that a call may cost: all that the model reads, once more for each search."""
    return -(-(MAX_INPUT * (1 + uses) * 6_000_000 + output * 15_000_000) // 10**6) + uses * SEARCH


@both_ways
@pytest.mark.parametrize("searches", [0, 1, 2])
async def test_each_search_is_charged_and_shown(
    service: Service, upstream: ScriptedUpstream, searches: int, stream: bool
) -> None:
    spender = await Spender.make(service, amount=RICH)
    upstream.plan = Plan(message(*BLOCKS * searches, "Sunny.", usage=usage(searches)))
    if stream:
        events = events_of(message(*BLOCKS * searches, "Sunny."))
        events[-2]["usage"] = usage(searches)
        upstream.plan = Plan(events=events)
    answer = await spender.ask(asking(stream=stream))
    credits = events_in(answer.body)[-2]["credits"] if stream else json_of(answer)["credits"]
    assert credits["charged"] == 3_000 + 1_500 + searches * SEARCH
    assert await spender.charged() == [credits["charged"]]
    record = entry_record((await spender.account()).entries[0])
    assert (record["webSearches"], record["inputTokens"], record["outputTokens"]) == (searches, 1000, 100)
    assert upstream.calls[0].question["tools"] == asking()["tools"], "the tool goes on as it came"


async def test_the_apps_report_the_persons_page_and_the_file_count_the_searches(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender, browser = await Spender.make(service, amount=RICH), await service.signed_in()
    for searches, shown in ((0, False), (2, True)):
        upstream.plan = Plan(message(*BLOCKS * searches, "Sunny.", usage=usage(searches)))
        assert (await spender.ask(asking())).code == 200
        for group in ("day", "model", "app"):
            [item] = json_of(await spender.get(f"/credits/usage?group={group}"))["items"]
            assert item["webSearches"] == searches
        page = (await browser.get("/account/credits/usage")).body.decode()
        assert ("web search" in page, page.count("2\u00a0web searches")) == (shown, 3 * shown)
        header, row = (await browser.get("/account/credits/usage.csv")).body.decode().split("\r\n")[:2]
        assert (header.split(",")[-1], row.split(",")[-1]) == ("web_searches", str(searches))


async def test_the_hold_covers_every_search_and_all_that_is_read(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=0)
    await service.store.credits.grant(spender.user, held(2, 1) - 1)
    assert_error(await spender.ask(asking()), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, 1)
    report = {"input_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": MAX_INPUT * 3}, "output_tokens": 1}
    upstream.plan = Plan(message(usage={**report, "server_tool_use": {"web_search_requests": 2}}))
    assert json_of(await spender.ask(asking()))["credits"] == {"charged": held(2, 1), "remaining": 0}
    assert upstream.calls[0].question["max_tokens"] == 1, "cut to what the credits cover"
    await service.store.credits.grant(spender.user, held(2))
    upstream.plan = Plan(message(usage=usage(10**9)))
    assert json_of(await spender.ask(asking()))["credits"]["charged"] == held(2), "never more than was held"


@both_ways
async def test_a_cut_reply_is_charged_the_searches_that_it_shows(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service, amount=RICH)
    reply = message(*BLOCKS, "Sunny.", usage={"input_tokens": 1000})
    events = events_of(reply)
    upstream.plan = Plan(events=events, stops_after=len(events) - 3, then="cut")
    assert events_in((await spender.ask(asking(stream=True))).body)[-1]["type"] == "error"
    [charged] = await spender.charged()
    assert charged // SEARCH == 1
    assert entry_record((await spender.account()).entries[0])["webSearches"] == 1


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        pytest.param({"max_uses": None}, "tools[0].max_uses", id="without a bound"),
        pytest.param({"max_uses": 0}, "tools[0].max_uses", id="no search"),
        pytest.param({"max_uses": MAX_SEARCHES + 1}, "tools[0].max_uses", id="too many"),
        pytest.param({"max_uses": True}, "tools[0].max_uses", id="a flag"),
        pytest.param({"max_uses": 2.0}, "tools[0].max_uses", id="a fraction"),
        pytest.param({"type": "web_search_20260209"}, "tools[0].type", id="a version that runs code"),
        pytest.param({"type": "web_fetch_20250910"}, "tools[0].type", id="another tool"),
    ],
)
async def test_what_has_no_price_or_no_bound_is_refused_by_name(
    service: Service, upstream: ScriptedUpstream, tool: dict[str, Any], param: str
) -> None:
    spender = await Spender.make(service, amount=RICH)
    body = asking()
    body["tools"][0].update(tool)
    for path in (f"{SDK}/messages", f"{SDK}/messages/count_tokens"):
        refused = await spender.ask(body, path.replace(f"{SDK}/messages", SDK))
        assert (refused.code, param in refused.body.decode()) == (400, True)
    assert upstream.calls == []
    assert await spender.charged() == []


@pytest.mark.parametrize("price", [pytest.param(replace(PRICED, web_search=None), id="no price")])
async def test_without_a_price_the_tool_is_refused(service: Service, upstream: ScriptedUpstream, price: Price) -> None:
    spender = await Spender.make(service, amount=RICH)
    assert WEB_SEARCH in assert_error(await spender.ask(asking()), 400, "invalid_request")
    assert upstream.calls == []
    assert "pricePerCall" not in json_of(await spender.get("/ai/models"))["models"][0]


async def test_the_lists_of_models_have_the_price_of_a_search(service: Service) -> None:
    spender = await Spender.make(service)
    assert json_of(await spender.get("/ai/models"))["models"][0]["pricePerCall"] == {"webSearch": SEARCH}
    assert json_of(await spender.get("/ai/v1/models"))["data"][0]["webSearch"] == SEARCH


def test_a_report_in_two_events_counts_once() -> None:
    meter = Meter(question())
    events = events_of(message(*BLOCKS, "Sunny.", usage=usage(1)))
    events[-2]["usage"] = usage(1)
    for event in events:
        meter.see_event(event)
    assert meter.used() == meter.used_so_far() == TokenCounts(1000, 100, web_search=1)
