"""Mails about spending limits and a low balance: once for each crossing, and only to people who want them."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from outbound.mail.message import plain_text
from store import keys
from store.credits.notices import Notice
from store.lifetimes import DAY
from store.results import Caller
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.browser import email_links
from tests.support.browser.email_links import Post
from tests.support.http.driver import EMAIL, text_of
from tests.support.processes.engines import Engine, FakeClock
from tests.support.processes.processes import at_once
from tests.support.store.credit_spender import DOLLAR, Spender, a_world
from tests.support.store.world import World, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)
confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

MONTH = 31 * DAY / 1000
SWITCH = "/account/credits/mails"


def heard(store: Store, low: int = 0) -> list[tuple[str, int]]:
    """What the store's notices are about, with the share or the limit, from now on."""
    found: list[tuple[str, int]] = []

    def tell(notice: Notice) -> None:
        assert notice.warned.addresses
        found.append((notice.about, notice.share or notice.limit))

    store.calls.notices.reach, store.calls.notices.tell, store.calls.notices.low = lambda: True, tell, low
    return found


async def spender(store: Store) -> tuple[World, Spender]:
    world = await a_world(store)
    await store.credits.grant(world.user, DOLLAR)
    return world, await Spender.make(world)


@within_a_minute
async def test_each_share_of_a_limit_is_noticed_once(store: Store) -> None:
    world, app = await spender(store)
    await app.limit(world, 1000)
    found = heard(store)
    await app.spend(499)
    assert found == []
    await app.spend(1)
    assert found == [("app", 50)]
    await app.spend(200)
    await app.spend(250)
    assert found == [("app", 50), ("app", 80)]
    for _ in range(3):
        assert await refusal_of(app.ask(60)) == "app_spend_limit"
    assert found[2:] == [("app", 100)], "used up is what refuses a call, and later ones say nothing new"
    await app.spend(50)
    assert len(found) == 3, "nor does the last micro-dollar"
    await app.limit(world, 3000)
    await app.spend(1500)
    assert found[3:] == [("app", 80)], "the greatest share that a charge crossed, of the new limit"


@within_a_minute
async def test_a_limit_is_noticed_again_in_its_next_period(memory_store: Store, clock: FakeClock) -> None:
    world, app = await spender(memory_store)
    memory_store.calls.daily.per_person = 100
    await app.limit(world, 250)
    found = heard(memory_store)
    for _ in range(2):
        await app.spend(100)
        assert await refusal_of(app.ask(1)) == "person_spend_limit"
        clock.advance(DAY / 1000)
        app = await Spender.make(world)
    assert Counter(found) == {("day", 100): 2, ("app", 80): 1}
    clock.advance(MONTH)
    app = await Spender.make(world)
    found.clear()
    await app.spend(100)
    assert found == [("day", 100)], "40% of a new month"


@within_a_minute
async def test_a_low_balance_is_noticed_at_each_fall(store: Store) -> None:
    world, app = await spender(store)
    found = heard(store, low=DOLLAR - 100)
    await app.spend(100)
    assert found == []
    await app.spend(1)
    await app.spend(1)
    assert found == [("balance", DOLLAR - 100)]
    await store.credits.grant(world.user, 50)
    await app.spend(60)
    assert found == [("balance", DOLLAR - 100)] * 2


@within_a_minute
async def test_nobody_is_told_who_does_not_want_it_or_without_a_mail_server(store: Store) -> None:
    world, app = await spender(store)
    await app.limit(world, 10)
    found = heard(store, low=DOLLAR)
    await store.credits.choose_mails(world.session, wanted=False)
    await app.spend(6)
    assert found == []
    await store.credits.choose_mails(world.session, wanted=True)
    store.calls.notices.reach = lambda: False
    await app.spend(2)
    assert found == []
    store.calls.notices.reach = lambda: True
    await app.spend(2)
    assert found == [("app", 100)]


@pytest.fixture
def stores(valkey_engine: Engine, open_store: OpenStore) -> list[Store]:
    """Three stores on one engine, like separate processes."""
    return [open_store(valkey_engine.url) for _ in range(3)]


@within_a_minute
async def test_concurrent_crossings_have_one_notice_each(stores: list[Store]) -> None:
    world, app = await spender(stores[0])
    await app.limit(world, 1000)
    found = [heard(store, low=DOLLAR - 500) for store in stores]
    apps = [Spender(store, app.caller) for store in stores]
    holds = [(apps[number % 3], await app.hold(10)) for number in range(95)]
    await at_once(one.settle(hold, 10) for one, hold in holds)
    await at_once(refusal_of(one.ask(100)) for one in apps * 5)
    shares = {("app", share): 1 for share in (50, 80, 100)}
    assert Counter(itertools.chain(*found)) == {**shares, ("balance", DOLLAR - 500): 1}


@within_a_minute
async def test_the_mail_names_the_app_by_its_id_and_the_switch_turns_it_off(post: Post) -> None:
    service, store = post.service, post.service.store
    ada = await service.signed_in()
    await store.apps.update("web-app", None, name="Call 555 0100")
    registration, _ = await store.apps.fresh("web-app")
    assert registration is not None
    await store.credits.grant(service.ada, DOLLAR)
    tokens = await store.tokens.mint(service.ada, registration, ("credits:spend",))
    token = store.tokens.open_access(tokens.access_token)
    assert token is not None
    app = Spender(store, Caller.of(token, ("credits:spend",)))
    store.calls.daily.per_person, store.calls.notices.low = 1000, DOLLAR
    await store.client.hset(keys.grant(service.ada, "web-app"), "spend_limit", "600")
    await post.settled()
    post.mails.mails.clear()
    await app.spend(600)
    await post.settled()
    full = " ".join(plain_text(await post.mails.newest(EMAIL, "A spending limit is used up")).split())
    for words in ("100% of the $0.0006 that you let it spend this month", "App ID: web-app", "stop until next month"):
        assert words in full
    day = " ".join(plain_text(await post.mails.newest(EMAIL, "50% of a spending limit is used")).split())
    assert "used 50% of the $0.001 that you can spend today" in day
    low = " ".join(plain_text(await post.mails.newest(EMAIL, "Your credits are running low")).split())
    assert "less than $1.00" in low
    assert "555" not in day + low + full
    assert len(post.mails.to(EMAIL)) == 3
    page = await ada.get("/account/credits")
    assert "When 50%, 80% or all of a spending limit is used" in text_of(page)
    assert (await ada.submit(page, SWITCH, wanted=None)).headers["Location"] == "/account/credits?mails"
    page = await ada.get("/account/credits?mails")
    assert "Saved." in text_of(page)
    assert "checked" not in page.body.decode()
    assert await refusal_of(app.ask(1)) == "app_spend_limit"
    await store.client.hdel(keys.grant(service.ada, "web-app"), "spend_limit")
    await app.spend(400)
    await post.settled()
    assert len(post.mails.to(EMAIL)) == 3
