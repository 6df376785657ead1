"""What AI calls used: the rows on every engine, the report for apps, the person's page and file."""

from __future__ import annotations

import csv
import io
from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest

from handlers.core.site import Site
from store import keys as spell
from store.credits.prices import Price, TokenCounts
from store.credits.used import Total
from store.lifetimes import CREDITS_USAGE, DAY, USAGE
from store.wiring import Store
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import ScriptedUpstream
from tests.support.processes.engines import FakeClock
from tests.support.store.ai_spender import MODEL, cost, mint
from tests.support.store.ai_spender import Spender as HttpSpender
from tests.support.store.credit_spender import DOLLAR, FREE, PRICE, Spender, a_world
from tests.support.store.world import World

within_a_minute = pytest.mark.gen_test(timeout=60)


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


async def two_apps(store: Store) -> tuple[World, Spender, Spender]:
    """A person with a dollar and two apps."""
    world, other = await a_world(store), await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    return world, await Spender.make(world), await Spender.make(world, other.app)


async def call(app: Spender, model: str, *tokens: int, price: Price = PRICE, searches: int = 0) -> None:
    """A call of a model that used these tokens and made these searches."""
    hold = await app.hold(500, 500, model=model, price=price)
    await app.store.calls.settle(hold, TokenCounts(*tokens)._replace(web_search=searches))


@within_a_minute
async def test_a_settlement_adds_each_kind_of_token_to_its_day_app_and_model(store: Store) -> None:
    world, first, second = await two_apps(store)
    dear = Price("dear", 1_000_000, 2_000_000, 500_000)
    await call(first, "large", 10, 5, 3, 2, 1)
    await call(first, "large", 1, 1, 4, price=dear)
    await call(first, "small", 7, 8, price=FREE)
    await call(second, "large", 20, 0)
    await first.store.calls.release(await first.hold(9))
    await call(second, "large", 0, 0)
    hold = await second.hold(50, model="large")
    for _ in range(2):
        await store.calls.settle(hold, TokenCounts(2, 0))
    _, usage = await store.usage.of(world.session, 30)
    rows = {(row.client, row.model): (row.calls, row.charged, row.tokens) for row in usage.rows}
    one, two = first.caller.client, second.caller.client
    assert rows == {
        (one, "large"): (2, 21 + 1 + 2 + 2, TokenCounts(11, 6, 7, 2, 1)),
        (one, "small"): (1, 0, TokenCounts(7, 8)),
        (two, "large"): (2, 22, TokenCounts(22, 0)),
    }
    account = await store.credits.show(world.user)
    assert sum(row.charged for row in usage.rows) == -sum(entry.amount for entry in account.entries if entry.client)
    assert usage.by(lambda row: row.model)["large"] == Total(4, 48, TokenCounts(33, 6, 7, 2, 1))
    assert (await store.usage.all_of(world.user)).rows == usage.rows
    report, _ = await store.usage.report(second.caller, "credits:read")
    assert {row.client for row in report.rows} == {two}, "an app sees itself"


@within_a_minute
async def test_searches_are_counted_next_to_rows_that_an_earlier_release_can_read_and_add_to(store: Store) -> None:
    world, first, second = await two_apps(store)
    known, client = spell.credits(world.user), store.client
    await call(first, "large", 10, 5)
    await call(second, "large", 1, 1)
    assert not await client.exists(known["searches"]), "calls without searches write no key"
    await call(first, "large", 10, 5, searches=2)
    await call(first, "large", 0, 0, searches=1)
    rows: Any = await client.hgetall(known["used"])
    assert sorted(rows.values()) == [b"1 2 1 1 0 0 0", b"3 30 20 10 0 0 0"], "seven numbers"
    assert abs(await client.pttl(known["searches"]) - USAGE) < 60_000
    _, usage = await store.usage.of(world.session, 30)
    one, two = first.caller.client, second.caller.client
    assert {row.client: row.tokens for row in usage.rows} == {
        one: TokenCounts(20, 10, web_search=3),
        two: TokenCounts(1, 1),
    }
    assert usage.by(lambda row: row.model)["large"] == Total(4, 32, TokenCounts(21, 11, web_search=3))
    assert (await store.usage.all_of(world.user)).rows == usage.rows
    report, _ = await store.usage.report(second.caller, "credits:read")
    assert [row.tokens.web_search for row in report.rows] == [0], "an app sees its own searches"
    await store.people.delete(world.user)
    assert not await client.exists(known["searches"])


@within_a_minute
async def test_rows_of_usage_are_bounded_and_the_oldest_days_go_first(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.credits.calls.MOST_ROWS", 20)
    world, app, _ = await two_apps(memory_store)
    name, client = spell.credits(world.user)["used"], memory_store.client
    days = []
    for _ in range(6):
        app = await Spender.make(world)
        world.session = await world.sign_in()
        for number in range(5):
            await call(app, f"model {number}", 1, 0, searches=number % 2)
        _, usage = await memory_store.usage.of(world.session, 400)
        days.append(Counter(row.day for row in usage.rows))
        clock.advance(DAY / 1000)
    assert [sum(one.values()) for one in days] == [5, 10, 15, 20, 20, 20]
    assert set(map(max, days)) == {min(days[0]) + timedelta(number) for number in range(6)}
    assert abs(await client.pttl(name) - USAGE + DAY) < 60_000
    app = await Spender.make(world)
    for number in range(25):
        await call(app, f"another {number}", 1, 0, searches=1)
    rows: Any = await client.hgetall(name)
    assert len(rows) == 21
    assert [value for field, value in rows.items() if field.endswith(b"  ")] == [b"5 5 5 0 0 0 0"]
    searched: Any = await client.hgetall(spell.credits(world.user)["searches"])
    assert searched == {field: b"5" if field.endswith(b"  ") else b"1" for field in rows}, "searches go with their rows"


@within_a_minute
async def test_the_report_gives_the_days_that_the_app_asks_for(
    clock: FakeClock, service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await HttpSpender.make(service)
    for _ in range(2):
        assert (await spender.ask()).code == 200
    today = date.fromtimestamp(clock.time())
    clock.advance(DAY / 1000)
    spender = await HttpSpender.make(service)
    assert (await spender.ask()).code == 200
    other = await HttpSpender.make(service, app=await service.add_app("other-app"), amount=0)

    def item(calls: int, **of: str) -> dict[str, Any]:
        tokens = {"input": 25 * calls, "output": 31 * calls, "cacheRead": 0, "cacheWrite": 0, "cacheWrite1h": 0}
        return {**of, "calls": calls, "charged": cost(25, 31) * calls, "tokens": tokens, "webSearches": 0}

    async def items(query: str) -> Any:
        answer = await spender.get(f"/credits/usage{query}")
        assert (answer.code, answer.headers["X-RateLimit-Limit"]) == (200, "60")
        body = json_of(answer)
        assert (body.pop("currency"), body.pop("scale")) == ("USD", 6)
        return body["items"]

    days = [item(2, day=today.isoformat()), item(1, day=(today + timedelta(1)).isoformat())]
    assert await items("") == await items("?group=day") == days
    assert await items(f"?from={today}&to={today}") == days[:1]
    assert await items(f"?from={today + timedelta(1)}") == days[1:]
    assert await items(f"?to={today}") == days[:1]
    assert await items(f"?to={today - timedelta(1)}") == await items("?to=1970-01-01") == []
    assert await items("?group=model") == await items("?group=model&from=1970-01-01") == [item(3, model=MODEL)]
    assert await items("?group=app") == [item(3, client_id=service.web.client_id)]
    assert json_of(await other.get("/credits/usage"))["items"] == []
    for wrong in (
        "?group=person",
        "?from=2026-1-1",
        "?from=2026-02-30",
        f"?from={today}&to=2020-01-01",
        "?to=1969-12-31",
    ):
        answer = await spender.get(f"/credits/usage{wrong}")
        assert (answer.code, json_of(answer)["error"]) == (400, "invalid_request"), wrong
    narrow = HttpSpender(
        service, service.web, service.ada, await mint(service, service.web, "credits:spend"), service.base_url
    )
    assert (await narrow.get("/credits/usage")).code == 403
    assert CREDITS_USAGE.limit == 60


@within_a_minute
async def test_a_person_sees_usage_on_a_page_and_as_a_file(service: Service, upstream: ScriptedUpstream) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account/credits/usage")
    assert "Nothing was used in this period." in page.body.decode()
    spender = await HttpSpender.make(service)
    assert (await spender.ask()).code == 200
    text = (await browser.get("/account/credits/usage?days=7")).body.decode()
    for words in (MODEL, "25\u00a0tokens in, 31 out", "1\u00a0AI call", "By app", "/account/credits/usage.csv?days=7"):
        assert words in text
    answer = await browser.get("/account/credits/usage.csv?days=7")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert [
        (row["client_id"], row["model"], row["calls"], row["input_tokens"], row["output_tokens"]) for row in rows
    ] == [(service.web.client_id, MODEL, "1", "25", "31")]
    assert (await service.browser().get("/account/credits/usage")).code == 303
