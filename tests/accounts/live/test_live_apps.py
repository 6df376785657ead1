"""The stream of what connected apps do: its content, who gets it, when it ends, and what it costs."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, suppress

import pytest
from tornado.httpclient import HTTPResponse

from handlers.account import live
from handlers.core.live.watches import Watches
from handlers.core.site import Site
from handlers.core.words.languages import shipped
from handlers.core.words.wording import Wording
from store import keys
from store.oauth.budgets import Budget
from store.oauth.grants import NOTHING, Watched, WatchedApp
from store.results import NO_CHOICE
from tests.support.http.driver import Browser, Service, send
from tests.support.http.upstream import ScriptedUpstream
from tests.support.processes.live_page import PATH, LivePage
from tests.support.store.ai_spender import Spender

pytestmark = pytest.mark.gen_test(timeout=20)
SCOPES = ("profile", "credits:read", "credits:spend", "data:read", "data:write")
FAST = 0.02  # seconds between two looks


@pytest.fixture
def site(ai_site: Site) -> Site:
    """Looks often; the model runs on the scripted upstream."""
    object.__setattr__(ai_site, "watches", Watches(FAST, most=6, each=4))
    return ai_site


@pytest.fixture
def breathless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments come at once."""
    monkeypatch.setattr(live, "BREATH", 0.01)


async def press(browser: Browser, client: str, button: str) -> HTTPResponse:
    return await browser.submit(await browser.get("/account/apps"), f"/account/apps/{client}/{button}")


async def until_none(site: Site) -> None:
    """Waits until no page is open."""
    while site.watches.places.taken:
        await asyncio.sleep(FAST)


async def test_calls_and_money_show_as_they_happen(service: Service, upstream: ScriptedUpstream) -> None:
    async with LivePage.opening(service.base_url) as visit:
        spender = await Spender.make(service, *SCOPES)
        client, browser = spender.app.client_id, await service.signed_in()
        page = await visit(browser)
        assert page.status == 200
        assert "text/event-stream" in page.head
        assert "no-store" in page.head
        first = await page.until(client, "No calls right now")
        assert (first["spent"], first["paused"], page.all) == ("$0.00", False, [client])
        answer = await spender.ask()
        assert answer.code == 200
        spent = (await page.until(client, "1 AI call today"))["spent"]
        assert spent not in ("$0.00", "")
        await spender.get("/data/notes")
        assert "1 AI call today · 1 read in the last minute" in (await page.until(client, "1 read"))["doing"]
        # Without scripts, the page has the same figures.
        loaded = (await browser.get("/account/apps")).body.decode()
        assert "1 AI call today · 1 read in the last minute" in loaded
        assert f"<strong>{spent}</strong>" in loaded
        await press(browser, client, "pause")
        assert (await page.until(client, '"paused": true'))["paused"]
        await press(browser, client, "revoke")
        async with asyncio.timeout(2):
            while page.all:
                await page.event()
        await page.leave()


async def test_the_stream_ends_with_its_session_and_its_cookie_opens_nothing(service: Service, site: Site) -> None:
    async with LivePage.opening(service.base_url) as visit:
        browser, other = await service.signed_in(), await service.signed_in()
        stolen = Browser(browser.base_url, dict(browser.cookies))
        await service.tokens(browser=browser)
        pages = [await visit(one) for one in (browser, stolen, other)]
        for page in pages:
            assert await page.event() == "apps"
        await browser.submit(await browser.get("/account"), "/signout")
        for page in pages[:2]:
            assert await page.ends() == ["apps", "end"]
        for one in (stolen, service.browser()):
            refused = await visit(one)
            assert refused.status == 401
        assert not pages[2].events[1:], "another device goes on"
        await service.store.operator.set_status("ada@example.com", "disabled")
        assert await pages[2].ends() == ["apps", "end"]
        await until_none(site)


async def test_an_open_page_does_not_keep_its_session_alive(service: Service) -> None:
    async with LivePage.opening(service.base_url) as visit:
        browser = await service.signed_in()
        session = service.store.sessions.open(browser.cookies["latchkey_session"])
        assert session is not None
        key = keys.session(session.user, session.session_id)
        await service.store.client.hset(key, "seen_at", 1)
        page = await visit(browser)
        assert await page.event() == "apps"
        assert await service.store.client.hget(key, "seen_at") == b"1"
        await service.store.client.delete(key)
        assert await page.ends() == ["apps", "end"]


async def test_pages_of_a_session_share_one_look_and_nobody_looks_for_nobody(service: Service, site: Site) -> None:
    async with LivePage.opening(service.base_url) as visit:
        browser, looks = await service.signed_in(), 0
        watch = service.store.grants.watch

        async def counted(session: object, before: object) -> object:
            nonlocal looks
            looks += 1
            return await watch(session, before)  # type: ignore[arg-type]  # they are passed on

        service.store.grants.watch = counted  # type: ignore[method-assign, assignment]  # counts
        pages = [await visit(browser) for _ in range(4)]
        assert len(site.watches._watches) == 1
        refused = await visit(browser)
        assert refused.status == 429, "as many as one person may have"
        for page in pages:
            await page.leave()
        async with asyncio.timeout(5):
            await until_none(site)
        assert not site.watches._watches
        seen = looks
        await asyncio.sleep(5 * FAST)
        assert looks == seen


async def test_looks_end_with_the_last_page_even_if_one_swallows_its_cancellation() -> None:
    looks, looking = 0, asyncio.Event()

    async def look(before: Watched) -> Watched:
        nonlocal looks
        looks += 1
        looking.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        return before

    with Watches(FAST).page("a session", asyncio.Event(), look, Watched(NO_CHOICE, (), "")):
        await looking.wait()
    await asyncio.sleep(5 * FAST)
    assert looks == 1


async def test_many_sessions_look_less_often() -> None:
    async def look(before: Watched) -> Watched:
        return before

    seen, watches = Watched(NO_CHOICE, (), ""), Watches()
    for sessions, pause in ((1, 1.0), (100, 1.0), (512, 5.12)):
        with ExitStack() as pages:
            for number in range(sessions):
                pages.enter_context(watches.page(str(number), asyncio.Event(), look, seen))
            assert watches.pause() == pause
    assert watches.pause() == 1.0


async def test_comments_keep_a_quiet_stream_open_and_a_stop_ends_it(
    service: Service, site: Site, breathless: None
) -> None:
    async with LivePage.opening(service.base_url) as visit:
        browser = await service.signed_in()
        page = await visit(browser)
        assert [await page.event() for _ in range(3)] == ["apps", "comment", "comment"]
        site.watches.close()
        assert (await page.ends())[-1] == "end"
        late = await visit(browser)
        assert await late.ends() == ["end"], "a server that stops sends pages to another"
        assert (await send(service.base_url + PATH, "HEAD", described=False)).code == 401


async def test_a_budget_moves_and_apps_that_do_not_change_are_not_sent_again() -> None:
    quiet = WatchedApp("quiet", False, 0, (), NOTHING)
    before = WatchedApp("spends", False, 0, (Budget("credits", 1_000_000, "total", (), 0, 0),), NOTHING)
    after = before._replace(spent=250_000, budgets=(Budget("credits", 1_000_000, "total", (), 0, 250_000),))
    event = live.event_of((quiet, after), (quiet, before), Wording(shipped().default))
    told = json.loads(event.split(b"data: ")[1])
    bar = {"used": "$0.25", "share": 25, "label": "25% used"}
    shown = {"paused": False, "spent": "$0.25", "doing": "No calls right now", "budgets": {"budget_credits": bar}}
    assert told == {"apps": {"spends": shown}}
