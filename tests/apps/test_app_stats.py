"""Statistics of apps: counted without a store call, flushed periodically, summed over processes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from store import app_stats
from store import keys as spell
from store.credits.prices import TokenCounts
from store.lifetimes import DAY, OAUTH
from store.wiring import Store
from tests.support.http.driver import Service, send
from tests.support.processes.engines import FakeClock
from tests.support.processes.operator_commands import NEW_APP, child
from tests.support.processes.processes import QUICK, Server
from tests.support.store.windows import full
from tests.support.store.world import World, every_key


async def today(store: Store, client: str) -> tuple[int, ...]:
    """Today's calls, refusals, spending, connections and disconnections, and the people."""
    found = await store.app_stats.of(client)
    day = found.days[-1]
    return day.calls, day.limited, day.spent, day.connected, day.disconnected, found.people


@pytest.mark.gen_test
async def test_flushed_counts_are_stored_and_add_up(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    other = app_stats.AppStats(store.scripts)  # as another process
    for counting in (store.app_stats, other):
        counting.called(client, limited=False)
        counting.called(client, limited=True)
        counting.spent(client, 150, "large", TokenCounts(7, 6, 5, 4, 3, 2, 1).counted)
        counting.connected(client)
    other.disconnected(client)
    assert await today(store, client) == (0, 0, 0, 0, 0, 0)
    await asyncio.gather(store.app_stats.flush(), other.flush())
    await store.app_stats.flush()
    assert await today(store, client) == (4, 2, 300, 2, 1, 1)
    assert len((await store.app_stats.of(client)).days) == app_stats.DAYS_SHOWN
    (row,) = (await store.app_stats.of(client)).models
    assert (row.model, row.calls, row.charged) == ("large", 2, 300)
    assert row.counted == (14, 12, 10, 8, 6, 2)


@pytest.mark.gen_test
async def test_searches_add_to_a_row_that_an_earlier_release_wrote(store: Store) -> None:
    client = (await World.make(store)).app.client_id
    store.app_stats.spent(client, 10, "large", TokenCounts(1).counted)
    await store.app_stats.flush()
    days = spell.app_stats(client)["days"]
    (field,) = [name for name in await store.client.hkeys(days) if b"model" in name]
    await store.client.hset(days, field, "2 20 5 4 3 2 1")
    assert (await store.app_stats.of(client)).models[0].counted == (5, 4, 3, 2, 1)
    store.app_stats.spent(client, 10, "large", TokenCounts(1, web_search=3).counted)
    await store.app_stats.flush()
    assert await store.client.hget(days, field) == b"3 30 6 4 3 2 1 3"


@pytest.mark.gen_test
async def test_the_number_of_people_never_goes_below_zero(store: Store) -> None:
    world = await World.make(store)
    store.app_stats.disconnected(world.app.client_id)
    await store.app_stats.flush()
    assert (await store.app_stats.of(world.app.client_id)).people == 0


@pytest.mark.gen_test
async def test_deleted_apps_have_no_statistics(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    store.app_stats.connected(client)
    await store.app_stats.flush()
    assert await store.client.exists(spell.app_stats(client)["days"])
    await store.apps.begin_deletion(client)
    store.app_stats.connected(client)
    await store.app_stats.flush()
    await store.apps.finish_deletion(client)
    store.app_stats.connected(client)
    await store.app_stats.flush()
    left = [key for key in await every_key(store.client) if client.encode() in key]
    assert left == []


@pytest.mark.gen_test
async def test_old_days_and_statistics_of_unused_apps_expire(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world = await World.make(store)
    client, days = world.app.client_id, spell.app_stats(world.app.client_id)["days"]
    for _ in range(app_stats.DAYS_KEPT + 3):
        store.app_stats.called(client, limited=False)
        store.app_stats.spent(client, 0, "small: 2 words", TokenCounts(1).counted)
        await store.app_stats.flush()
        clock.advance(DAY / 1000)
    assert await store.client.hlen(days) == 2 * app_stats.DAYS_KEPT + 1  # and which day saw old ones go
    shown = (await store.app_stats.of(client)).models
    assert {row.model for row in shown} == {"small: 2 words"}
    assert len({row.day for row in shown}) == app_stats.DAYS_SHOWN - 1  # and today, without calls yet
    clock.advance(app_stats.DAYS_KEPT * DAY / 1000)
    assert not await store.client.exists(days)


@pytest.mark.gen_test
async def test_statistics_are_bounded(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_stats, "MOST_APPS", 2)
    counting = memory_store.app_stats
    for number in range(5):
        counting.called(f"app-{number}", limited=False)
    assert len(counting._counted) == 2
    monkeypatch.setattr(app_stats, "MOST_MODELS", 3)
    for number in range(5):
        counting.spent("app-0", 1, f"model-{number}", TokenCounts(1).counted)
        counting.spent("app-4", 1, f"model-{number}", TokenCounts(1).counted)
    assert {client: len(models) for client, models in counting._models.items()} == {"app-0": 3}


@pytest.mark.gen_test
async def test_calls_refusals_people_and_spending_are_counted_where_they_happen(service: Service) -> None:
    store, client = service.store, service.web.client_id
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)  # a call: the exchange
    await service.tokens(browser=browser, prompt="consent")  # again, by one who is connected already
    await service.web.userinfo(tokens["access_token"])
    await store.client.set(spell.limit(service.ada, OAUTH.name), full(OAUTH.limit))
    assert (await service.web.userinfo(tokens["access_token"])).code == 429
    await service.web.userinfo("lk_at_forged")
    await send(f"{service.base_url}/api/oauth/token", "POST", form={"client_id": client, "client_secret": "wrong"})
    await store.app_stats.flush()
    assert await today(store, client) == (2 + 1 + 1, 1, 0, 1, 0, 1)
    page = await browser.get("/account/apps")
    assert (await browser.submit(page, f"/account/apps/{client}/revoke")).code == 303
    await store.app_stats.flush()
    assert (await today(store, client))[3:] == (1, 1, 0)


@pytest.mark.gen_test
async def test_deleting_an_account_lowers_the_counts_of_its_apps(store: Store) -> None:
    world = await World.make(store)
    other, _ = await world.register("another-app")
    for app in (world.app, other, other):
        await store.tokens.mint(world.user, app, ("profile",))
    await store.app_stats.flush()
    assert [(await today(store, app.client_id))[3:] for app in (world.app, other)] == [(1, 0, 1), (1, 0, 1)]
    await world.revoke_app()  # which its handler counts
    store.app_stats.disconnected(world.app.client_id)
    await store.people.delete(world.user)
    await store.app_stats.flush()
    assert [(await today(store, app.client_id))[3:] for app in (world.app, other)] == [(1, 1, 0), (1, 1, 0)]


@pytest.mark.gen_test
async def test_charges_are_counted(service: Service) -> None:
    store, client = service.store, service.web.client_id
    await store.credits.grant(service.ada, 1_000_000)
    tokens = await service.tokens(scope="credits:spend")
    body = {"model": "latchkey-echo", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"Authorization": f"Bearer {tokens['access_token']}", "Content-Type": "application/json"}
    url = f"{service.base_url}/api/v1/ai/messages"
    answer = await send(url, "POST", body=json.dumps(body), headers=headers)
    said = json.loads(answer.body)
    charged = said["credits"]["charged"]
    assert charged > 0
    await store.app_stats.flush()
    assert (await today(store, client))[:3] == (2, 0, charged)
    (row,) = (await store.app_stats.of(client)).models
    tokens_used = (said["usage"]["input_tokens"], said["usage"]["output_tokens"], 0, 0, 0, 0)
    assert (row.model, row.calls, row.charged, row.counted) == ("latchkey-echo", 1, charged, tokens_used)


@pytest.mark.gen_test
async def test_counting_makes_no_store_call(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resource call is one script call, as without counting."""
    tokens = await service.tokens()
    await service.web.userinfo(tokens["access_token"])
    client: Any = service.store.client
    sent: list[Any] = []
    execute, evalsha = client.execute_command, client.evalsha

    async def counting(*words: Any, **options: Any) -> Any:
        if words[0] != "EVALSHA":  # some clients run scripts in this way, and others on a pipelined connection
            sent.append(words)
        return await execute(*words, **options)

    async def counting_scripts(*words: Any) -> Any:
        sent.append(words)
        return await evalsha(*words)

    monkeypatch.setattr(client, "execute_command", counting)
    monkeypatch.setattr(client, "evalsha", counting_scripts)
    for _ in range(10):
        assert (await service.web.userinfo(tokens["access_token"])).code == 200
    assert len(sent) == 10


@pytest.mark.gen_test
async def test_the_last_flush_follows_the_block(store: Store) -> None:
    world = await World.make(store)
    async with store.app_stats.flushing():
        store.app_stats.called(world.app.client_id, limited=False)
    assert (await today(store, world.app.client_id))[0] == 1


@pytest.mark.gen_test
async def test_a_flush_during_a_store_outage_loses_its_counts_and_logs_that(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = await World.make(memory_store)
    client: Any = memory_store.client

    async def away(*words: Any) -> Any:
        raise ConnectionError("away")

    with monkeypatch.context() as patch:
        patch.setattr(client, "evalsha", away)
        async with memory_store.app_stats.flushing():
            memory_store.app_stats.called(world.app.client_id, limited=False)
    assert [record.name for record in caplog.records] == ["latchkey.numbers"]
    await memory_store.app_stats.flush()
    assert (await today(memory_store, world.app.client_id))[0] == 0


@pytest.mark.gen_test(timeout=60)
async def test_shutdown_flushes_every_process() -> None:
    with Server("--workers", "2", *QUICK) as server:
        server.ready()
        app = child(server.data_dir, "app", "create", *NEW_APP, "--scopes", "profile", "--json").json
        form = {"client_id": app["client_id"], "client_secret": app["client_secret"], "token": "none of ours"}
        for _ in range(12):
            assert (
                await send(f"{server.url}/api/oauth/revoke", "POST", form=form, headers={"Connection": "close"})
            ).code == 200
        assert server.stop() == 0
        shown = child(server.data_dir, "app", "show", app["client_id"], "--json").json
    assert [(day["calls"], day["limited"]) for day in shown["days"]] == [(12, 0)]


@pytest.mark.gen_test
async def test_a_flush_in_progress_does_not_delay_shutdown(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver sometimes swallows a cancellation."""
    monkeypatch.setattr(app_stats, "FLUSH_SECONDS", 0)
    entered, swallowed = asyncio.Event(), 0

    async def stubborn() -> None:
        nonlocal swallowed
        if swallowed:
            return
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed += 1

    monkeypatch.setattr(memory_store.app_stats, "_flush_quietly", stubborn)
    async with memory_store.app_stats.flushing():
        await entered.wait()
    assert swallowed == 1
