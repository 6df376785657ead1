"""Credits on the account pages: balance, holds, ledger, and apps' monthly limits."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.format import MINUS
from store import keys
from store.credits.calls import CallEstimate, Hold
from store.credits.prices import Price, TokenCounts
from store.oauth.grants import Grant
from store.results import Caller
from store.wiring import Store
from tests.support.browser.second_factors import Person
from tests.support.http.driver import App, Browser, Service, json_of
from tests.support.processes.engines import FakeClock
from tests.support.store.world import World, refusal_of

CREDITS, APPS = "/account/credits", "/account/apps"
LIMIT = f"{APPS}/web-app/limit"
SPENDS = "profile credits:spend"
DAY = 86_400
EXACT_TIME = re.compile(r"[0-9]+ \w+ [0-9]{4}, [0-9:]+ UTC · ")
PRICE = Price("2026-11", 3_000_000, 15_000_000)


def words_of(page: HTTPResponse) -> str:
    """The page's text, on one line."""
    main = page.body.decode().partition("<main")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split()).replace(" ,", ",").replace(" .", ".")


async def connected(service: Service, app: App | None = None, browser: Browser | None = None) -> tuple[Browser, Caller]:
    """Ada, signed in and just re-authenticated, and an app that may spend."""
    browser = browser or await service.signed_in()
    tokens = await service.tokens(app, browser, scope=SPENDS)
    await confirmed(service, browser)
    token = service.store.tokens.open_access(tokens["access_token"])
    assert token is not None
    return browser, Caller.of(token, ("credits:spend",))


async def confirmed(service: Service, browser: Browser) -> None:
    """Ada re-authenticates, as a change of a limit requires."""
    ada = Person(service, browser)
    if not await ada.proved():
        await ada.reauth()


async def hold(store: Store, caller: Caller, output: int = 1000) -> Hold:
    """A call of a thousand tokens in that may cost 3,000 micro-dollars and 15 more for each token out."""
    await store.client.delete(keys.limit(caller.user, "ai"))
    estimate = CallEstimate("latchkey-echo", PRICE, 1000, output, 1, lasts=600_000)
    held = await store.calls.hold(caller, "credits:spend", estimate)
    assert isinstance(held, Hold)
    return held


async def charge(store: Store, caller: Caller, output: int = 10) -> None:
    """A complete call."""
    assert await store.calls.settle(await hold(store, caller), TokenCounts(1000, output)) is not None


async def grant_of(service: Service, browser: Browser, client: str = "web-app") -> Grant:
    """The status of a connected app."""
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    return next(grant for grant in (await service.store.grants.list(session)).grants if grant.client == client)


def field_of(page: HTTPResponse, name: str) -> str:
    """The value of a text field of a page."""
    found = re.search(rf'<input[^>]*name="{name}"[^>]*>', page.body.decode())
    assert found
    value = re.search(r'value="([^"]*)"', found[0])
    assert value
    return html.unescape(value[1])


# The page of credits


@pytest.mark.gen_test
async def test_a_person_without_credits_sees_a_notice(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(CREDITS)
    assert page.code == 200
    words = words_of(page)
    assert "Available credits $0.00" in words
    assert "Nothing yet" in words
    assert "Calls in progress" not in words
    for tab in ("/account", APPS, "/account/security"):
        assert f'href="{CREDITS}"'.encode() in (await browser.get(tab)).body


@pytest.mark.gen_test
async def test_balance_holds_and_ledger(service: Service) -> None:
    browser, caller = await connected(service)
    await service.store.credits.grant(service.ada, 5_000_000, reason="Payment no. 7 <b>")
    await service.store.credits.grant(service.ada, -1_000_000)
    await charge(service.store, caller, 10)  # $0.00315
    await hold(service.store, caller)  # $0.018
    words = EXACT_TIME.sub("", words_of(await browser.get(CREDITS)))
    assert "Available credits $3.97 Exact amount $3.97885 Balance $3.99 Held $0.01 for calls in progress" in words
    assert "Calls in progress" in words
    assert "Web App $0.018 ends in 9 minutes at the latest" in words
    used = "latchkey-echo, 1,000 tokens in, 10 out just now · prices 2026-11"
    charged = words.index(f"Web App {MINUS}$0.00315 {used} balance $3.99")
    taken = words.index(f"Taken back {MINUS}$1.00 just now balance $4.00")
    added = words.index("Added +$5.00 Payment no. 7 <b> just now balance $5.00")
    assert charged < taken < added
    assert "Opening balance" not in words
    assert "Older transactions" not in words
    activity = words_of(await browser.get("/account/security"))
    assert "Credits added" in activity
    assert "Credits taken back" in activity


@pytest.mark.gen_test
async def test_spending_is_summed_by_app(service: Service) -> None:
    browser, caller = await connected(service)
    _, other = await connected(service, await service.add_app("quill"), browser)
    await service.store.credits.grant(service.ada, 5_000_000)
    for spender, output in ((caller, 10), (other, 1000), (caller, 20)):
        await charge(service.store, spender, output)
    words = words_of(await browser.get(CREDITS))
    assert "Spent by app, in the transactions below: Quill $0.01 1 AI call Web App $0.00645 2 AI calls" in words


@pytest.mark.gen_test
async def test_a_deleted_app_keeps_its_spending(service: Service) -> None:
    browser, caller = await connected(service)
    await service.store.credits.grant(service.ada, 5_000_000)
    await charge(service.store, caller)
    await service.store.apps.delete("web-app")
    page = await browser.get(CREDITS)
    assert page.code == 200
    assert f"An app that no longer exists {MINUS}$0.00315" in words_of(page)


@pytest.mark.gen_test
async def test_pages_have_twenty_entries_without_gaps_or_repeats(service: Service) -> None:
    browser = await service.signed_in()
    for number in range(41):
        await service.store.credits.grant(service.ada, 1_000_000, reason=f"Payment {number:03}.")
    found, address = [], CREDITS
    while address:
        page = await browser.get(address)
        on_page = re.findall(r"Payment (\d+)\.", words_of(page))
        found.append(on_page)
        following = re.search(r'href="([^"]*)" rel="next"', page.body.decode())
        address = following[1] if following else ""
        # What comes in between two pages pushes nothing on.
        await service.store.credits.grant(service.ada, 1_000_000, reason="In between")
    assert [len(on_page) for on_page in found] == [20, 20, 1]
    assert [int(number) for on_page in found for number in on_page] == list(range(40, -1, -1))
    assert "Available credits" not in words_of(page)
    assert "Newest transactions" in words_of(page)


@pytest.mark.gen_test
async def test_exactly_twenty_entries_have_no_second_page(service: Service) -> None:
    browser = await service.signed_in()
    for _ in range(20):
        await service.store.credits.grant(service.ada, 1_000_000)
    page = await browser.get(CREDITS)
    assert words_of(page).count("Added +$1.00") == 20
    assert 'rel="next"' not in page.body.decode()


@pytest.mark.gen_test
async def test_folded_entries_become_a_dated_opening_balance(service: Service, clock: FakeClock) -> None:
    for amount in (5_000_000, -2_000_000):
        await service.store.credits.grant(service.ada, amount, reason="Long ago")
    clock.advance(401 * DAY)
    for _ in range(20):
        await service.store.credits.grant(service.ada, 1_000_000)
    browser = await service.signed_in()
    words = words_of(await browser.get(CREDITS))
    assert "Available credits $23.00" in words
    assert "Long ago" not in words
    assert re.search(r"Opening balance \$3\.00 Sum of all transactions until \d+ \w+ \d{4}", words)
    await service.store.credits.grant(service.ada, 1_000_000)
    first = await browser.get(CREDITS)
    assert "Opening balance" not in words_of(first)
    following = re.search(r'href="([^"]*)" rel="next"', first.body.decode())
    assert following
    assert "Opening balance $3.00" in words_of(await browser.get(following[1]))


@pytest.mark.gen_test
async def test_with_all_entries_folded_only_the_opening_balance_is_shown(service: Service, clock: FakeClock) -> None:
    await service.store.credits.grant(service.ada, 5_000_000)
    clock.advance(401 * DAY)
    await service.store.client.xtrim(keys.credits(service.ada)["ledger"], maxlen=0)
    balance = keys.credits(service.ada)["balance"]
    await service.store.client.hset(balance, mapping={"opening": 5_000_000, "opening_at": 1_767_225_600_000})
    words = words_of(await (await service.signed_in()).get(CREDITS))
    assert "Opening balance $5.00 Sum of all transactions until 1 January 2026" in words
    assert "Nothing yet" not in words


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("before=1767225600000-0", 200, id="older than all"),
        pytest.param("before=1-0", 200, id="the first there can be"),
        pytest.param("before=999999999999999999-999999999999999999", 200, id="ahead of all"),
        pytest.param("before=", 200, id="nothing"),
        pytest.param("before=0-0", 400, id="before which nothing can be"),
        pytest.param("before=99999999999999999999-0", 400, id="beyond 64 bits"),
        pytest.param("before=1767225600000", 400, id="half an id"),
        pytest.param("before=%2B", 400, id="a range of the store"),
        pytest.param("before=(1-0", 400, id="another"),
        pytest.param("before=1-0%20", 400, id="a space"),
        pytest.param("before=1-0%0A", 400, id="a line break"),
        pytest.param("before=%D9%A1-0", 400, id="digits of another script"),
        pytest.param("before=1-0&before=2-0", 400, id="a repeated parameter"),
        pytest.param("before=%00", 400, id="a NUL"),
    ],
)
async def test_a_page_is_selected_by_an_entry_id(service: Service, query: str, status: int) -> None:
    await service.store.credits.grant(service.ada, 5_000_000)
    page = await (await service.signed_in()).get(f"{CREDITS}?{query}")
    assert page.code == status
    assert page.headers["Content-Type"].startswith("text/html")


@pytest.mark.gen_test(timeout=60)
async def test_accepted_entry_ids_are_valid_on_every_engine(store: Store) -> None:
    world = await World.make(store)
    await store.credits.grant(world.user, 5_000_000)
    for before, found in (("1-0", 0), ("1767225600000-0", 0), ("999999999999999999-999999999999999999", 1)):
        _, account = await store.credits.of(world.session, before=before)
        assert len(account.entries) == found, before


@pytest.mark.gen_test
async def test_people_see_only_their_own_credits(service: Service) -> None:
    await service.store.credits.grant(service.ada, 5_000_000, reason="For Ada")
    await service.add_person("eve@example.com", "Eve")
    assert "For Ada" not in words_of(await (await service.signed_in("eve@example.com")).get(CREDITS))
    away = await service.browser().get(CREDITS)
    assert (away.code, away.headers["Location"]) == (303, "/signin?next=%2Faccount%2Fcredits")


# The limit of an app


@pytest.mark.gen_test
async def test_each_app_shows_what_it_spent_this_month_and_its_limit(service: Service, clock: FakeClock) -> None:
    browser, caller = await connected(service)
    await connected(service, await service.add_app("reader"), browser)
    await service.store.credits.grant(service.ada, 5_000_000)
    await charge(service.store, caller)
    words = words_of(await browser.get(APPS))
    assert "It spent $0.00315 of your credits this month. It has no limit." in words
    assert "It spent $0.00 of your credits this month." in words
    assert (await browser.submit(await browser.get(APPS), LIMIT, dollars="2.5")).code == 303
    page = await browser.get(APPS)
    assert "It spent $0.00315 of your credits this month. Its limit is $2.50." in words_of(page)
    clock.advance(32 * DAY)
    browser = await service.signed_in()
    assert "It spent $0.00 of your credits this month. Its limit is $2.50." in words_of(await browser.get(APPS))


@pytest.mark.gen_test
async def test_an_app_that_may_not_spend_has_no_limit_to_set(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    await confirmed(service, browser)
    page = await browser.get(APPS)
    assert b"/limit" not in page.body
    form = {"_xsrf": browser_token(page), "dollars": "5"}
    assert (await browser.send(LIMIT, "POST", form=form)).code == 404
    assert (await browser.send(LIMIT, "POST", form={**form, "dollars": "1,500"})).code == 400
    assert (await browser.send(f"{APPS}/unknown/limit", "POST", form=form)).code == 404
    assert (await grant_of(service, browser)).spend_limit is None


@pytest.mark.gen_test
async def test_a_disconnected_app_has_no_limit_to_set(service: Service) -> None:
    browser, _ = await connected(service)
    await browser.submit(await browser.get(APPS), f"{APPS}/web-app/revoke")
    page = await browser.get(APPS)
    assert "Recently disconnected" in words_of(page)
    assert b"/limit" not in page.body
    form = {"_xsrf": browser_token(page), "dollars": "5"}
    assert (await browser.send(LIMIT, "POST", form=form)).code == 404


def browser_token(page: HTTPResponse) -> str:
    """The XSRF token of any form of a page."""
    found = re.search(r'name="_xsrf" value="([^"]+)"', page.body.decode())
    assert found
    return found[1]


@pytest.mark.gen_test
async def test_a_limit_can_be_set_changed_and_removed_and_is_enforced(service: Service) -> None:
    browser, caller = await connected(service)
    await service.store.credits.grant(service.ada, 5_000_000)
    for typed, limit, shown in (
        ("0.002", 2000, "0.002"),
        ("0", 0, "0.00"),
        ("$1000000", 10**12, "1000000.00"),
        ("", None, ""),
        ("12", 12_000_000, "12.00"),
    ):
        answer = await browser.submit(await browser.get(APPS), LIMIT, dollars=typed)
        assert (answer.code, answer.headers["Location"]) == (303, f"{APPS}?{'no-limit' if limit is None else 'limit'}")
        assert "The spending limit was" not in words_of(await browser.get(APPS)), "the address alone says nothing"
        said = words_of(await browser.get(answer.headers["Location"]))
        assert ("limit was removed" if limit is None else "limit was saved") in said
        assert (await grant_of(service, browser)).spend_limit == limit
        assert field_of(await browser.get(APPS), "dollars") == shown
        if limit in (0, 2000):
            assert await refusal_of(hold(service.store, caller)) == "app_spend_limit"
        else:
            await hold(service.store, caller)
    assert "Spending limit changed · Web App" in words_of(await browser.get("/account/security"))


@pytest.mark.gen_test
@pytest.mark.parametrize("typed", ["1,500", "-1", "five", "0.0000001", "1000001", "1e3"])
async def test_an_invalid_amount_is_reported_at_its_field_and_changes_nothing(service: Service, typed: str) -> None:
    browser, _ = await connected(service)
    await connected(service, await service.add_app("reader"), browser)
    await browser.submit(await browser.get(APPS), LIMIT, dollars="7")
    page = await browser.submit(await browser.get(APPS), LIMIT, dollars=typed)
    assert page.code == 400
    text = page.body.decode()
    assert "<title>Error: " in text
    assert text.count('role="alert"') == text.count('aria-invalid="true"') == 1
    alert = re.search(r'role="alert" id="([^"]+)"', text)
    field = re.search(r'<input[^>]*aria-invalid="true"[^>]*>', text)
    assert alert
    assert field
    assert f'aria-describedby="{alert[1]} ' in field[0]
    assert f'value="{typed}"' in field[0]
    assert "It spent $0.00 of your credits this month. Its limit is $7.00." in words_of(page)
    assert (await grant_of(service, browser)).spend_limit == 7_000_000
    assert (await browser.submit(page, LIMIT, dollars="8")).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize("fields", [{}, {"dollars": "1,500"}, {"dollars": 5}, {"dollars": ["5"]}])
async def test_programs_get_errors_as_json(service: Service, fields: dict[str, Any]) -> None:
    browser, _ = await connected(service)
    await browser.submit(await browser.get(APPS), LIMIT, dollars="7")
    token = browser_token(await browser.get(APPS))
    sent = {"Content-Type": "application/json", "Accept": "application/json", "X-Xsrftoken": token}
    answer = await browser.send(LIMIT, "POST", headers=sent, body=json.dumps(fields))
    assert answer.code == 400
    assert json_of(answer)["error"] == "invalid_request"
    assert (await grant_of(service, browser)).spend_limit == 7_000_000


@pytest.mark.gen_test
@pytest.mark.trap(22)
async def test_a_limit_needs_its_token_its_origin_and_its_person(service: Service) -> None:
    browser, _ = await connected(service)
    await browser.submit(await browser.get(APPS), LIMIT, dollars="7")
    token = browser_token(await browser.get(APPS))
    bare = await browser.send(LIMIT, "POST", form={"dollars": "9"}, headers={"Sec-Fetch-Mode": "same-origin"})
    foreign = await browser.send(
        LIMIT, "POST", form={"dollars": "9", "_xsrf": token}, headers={"Origin": "https://evil.example"}
    )
    assert (bare.code, foreign.code) == (403, 403)
    assert (await browser.get(LIMIT)).code == 405
    session = browser.cookies.pop("latchkey_session")
    away = await browser.send(LIMIT, "POST", form={"dollars": "9", "_xsrf": token})
    assert (away.code, away.headers["Location"]) == (303, "/signin?next=%2Faccount")
    browser.cookies["latchkey_session"] = session
    assert (await grant_of(service, browser)).spend_limit == 7_000_000
