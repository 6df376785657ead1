"""The account chooser: what the list of a browser has, what choosing does, and what the cookie gives a thief."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.accounts.signin.listed_accounts import MOST
from store.names import MAX_EMAIL_BYTES
from tests.support.browser.signup import signed_in_as
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, answer_of

BOB = "bob@example.com"
CHOOSE, REMOVE = "/signin/choose", "/signin/choose/remove"

pytestmark = pytest.mark.gen_test


def entries(page: HTTPResponse) -> dict[str, str]:
    """The accounts that the page lists signed out, newest first, with the ids of their entries."""
    text = page.body.decode()
    found = re.findall(r'<button class="choice" name="account" value="([^"]+)">(.*?)</button>', text, re.S)
    return {html.unescape(re.findall("<bdi>(.*?)</bdi>", words)[0]): one for one, words in found}


def onward(page: HTTPResponse) -> str | None:
    """Where the account leads that is signed in."""
    found = re.search(r'<a class="choice" href="([^"]+)"', page.body.decode())
    return html.unescape(found[1]) if found else None


async def two_people(service: Service) -> Browser:
    """A browser in which first Bob and then Ada signed in."""
    await service.add_person(BOB)
    browser = await service.signed_in(BOB)
    await browser.sign_in(EMAIL)
    return browser


async def test_the_live_account_goes_on_and_another_one_is_asked_for_proof(service: Service) -> None:
    browser = await two_people(service)
    page = await browser.get(f"{CHOOSE}?next=/account/apps")
    assert (list(entries(page)), onward(page)) == ([BOB], "/account/apps")
    copied = service.browser()
    copied.cookies["latchkey_session"] = browser.cookies["latchkey_session"]
    chosen = await browser.submit(page, CHOOSE, account=entries(page)[BOB])
    assert (chosen.code, chosen.headers["Location"]) == (303, "/signin?next=%2Faccount%2Fapps")
    for one in (browser, copied):
        assert await signed_in_as(one) is None, "the choice ends the session itself"
    filled = await browser.get(chosen.headers["Location"])
    assert f'value="{BOB}"'.encode() in filled.body
    assert BOB not in chosen.headers["Location"]
    # The choice was for this target. The list has both again, as links to a proof.
    assert b"@example.com" not in (await browser.get("/signin")).body
    assert list(entries(await browser.get(CHOOSE))) == [EMAIL, BOB]
    await browser.submit(filled, "/signin", email=BOB, password=PASSWORD)
    assert await signed_in_as(browser) == BOB
    assert "latchkey_chosen" not in browser.cookies


async def test_another_account_starts_with_an_empty_form(service: Service) -> None:
    browser = await two_people(service)
    page = await browser.get(CHOOSE)
    await browser.submit(page, CHOOSE, account=entries(page)[BOB])
    left = await browser.submit(await browser.get(CHOOSE), CHOOSE, account=None)
    assert left.headers["Location"] == "/signin"
    assert b"@example.com" not in (await browser.get("/signin")).body


async def test_sign_out_keeps_the_list_and_entries_go_one_by_one(service: Service) -> None:
    browser = await two_people(service)
    await browser.submit(await browser.get("/account"), "/signout")
    assert b'href="/signin/choose"' in (await browser.get("/signin")).body
    page = await browser.get(CHOOSE)
    assert list(entries(page)) == [EMAIL, BOB]
    removed = await browser.submit(page, REMOVE, account=entries(page)[EMAIL])
    assert removed.code == 303
    page = await browser.get(removed.headers["Location"])
    assert list(entries(page)) == [BOB]
    await browser.submit(page, REMOVE, account=entries(page)[BOB])
    assert "latchkey_accounts" not in browser.cookies
    assert (await browser.get(CHOOSE)).headers["Location"] == "/signin"
    assert b"/signin/choose" not in (await browser.get("/signin")).body


async def test_a_deleted_account_leaves_the_list_of_its_browser(service: Service) -> None:
    browser = await two_people(service)
    page = await browser.get("/account/delete")
    assert (await browser.submit(page, "/account/delete", email=EMAIL, password=PASSWORD)).code == 303
    assert list(entries(await browser.get(CHOOSE))) == [BOB]


async def test_the_list_keeps_the_newest_and_follows_a_new_address(service: Service) -> None:
    people = [f"person-{number}@example.com" for number in range(MOST + 1)]
    browser = service.browser()
    users = [await service.add_person(one) for one in people]
    for one in people:
        await browser.sign_in(one)
    page = await browser.get(CHOOSE)
    assert list(entries(page)) == people[-2:0:-1]
    # The entry is the person's, with the address of the session that is live.
    await service.store.client.hset(keys.person(users[-1])["user"], "email", "moved@example.com")
    await browser.submit(await browser.get(CHOOSE), "/signout")
    assert list(entries(await browser.get(CHOOSE))) == ["moved@example.com", *people[-2:0:-1]]


async def test_a_stolen_list_shows_addresses_and_signs_nobody_in(service: Service) -> None:
    browser, thief = await two_people(service), service.browser()
    thief.cookies["latchkey_accounts"] = browser.cookies["latchkey_accounts"]
    page = await thief.get(CHOOSE)
    assert (list(entries(page)), onward(page)) == ([EMAIL, BOB], None)
    await thief.submit(page, CHOOSE, account=entries(page)[EMAIL])
    assert await signed_in_as(thief) is None
    assert await signed_in_as(browser) == EMAIL, "the thief's choice ends no session of others"
    # No scripts and no other site read it, and nothing in it is readable.
    cookie = browser.cookies["latchkey_accounts"]
    assert "example" not in cookie
    assert all(part.startswith("lk_la_") for part in cookie.split("."))


@pytest.mark.parametrize("forged", ["", "lk_la_", "lk_la_" + "A" * 90, "." * 3000, "x" * 5000])
async def test_a_forged_list_is_empty(service: Service, forged: str) -> None:
    browser = service.browser()
    browser.cookies["latchkey_accounts"] = forged
    assert (await browser.get(CHOOSE)).headers["Location"] == "/signin"
    await browser.sign_in()
    assert await signed_in_as(browser) == EMAIL
    assert list(entries(await browser.get(CHOOSE))) == []


async def test_a_forged_choice_signs_out_and_fills_in_nothing(service: Service) -> None:
    browser = await two_people(service)
    page = await browser.get(CHOOSE)
    assert (await browser.submit(page, CHOOSE, account="x" * 4000)).headers["Location"] == "/signin"
    assert b"@example.com" not in (await browser.get("/signin")).body
    await browser.sign_in()
    foreign = await browser.send(CHOOSE, "POST", form={"account": "", "next": "/"})
    assert foreign.code == 403, "no other site's form signs anybody out"
    assert await signed_in_as(browser) == EMAIL
    led = await browser.submit(await browser.get(CHOOSE), CHOOSE, account=None, next="https://evil.example/")
    assert led.headers["Location"] == "/signin"


async def test_the_longest_list_fits_a_cookie(service: Service) -> None:
    lists = service.store.listed_accounts
    cookie = ""
    for number in range(MOST + 2):
        email = f"{number}{'é' * ((MAX_EMAIL_BYTES - 13) // 2)}@example.com"
        cookie = lists.with_account(lists.open(cookie), f"{number:032x}", email)
    assert len(lists.open(cookie)) == MOST
    assert len(cookie) < 2200
    assert lists.with_account(lists.open(cookie), "f" * 32, "x" * 300) == cookie


async def test_select_account_leads_here_and_back(service: Service) -> None:
    browser = await two_people(service)
    url = service.web.authorize_url(scope="profile", prompt="select_account")
    led = await browser.get(url)
    assert urlsplit(led.headers["Location"]).path == CHOOSE
    page = await browser.get(led.headers["Location"])
    assert b"to continue to" in page.body
    assert b"Web App" in page.body
    redirect = await browser.consent(onward(page) or "")
    assert "code" in answer_of(redirect)
    # The mark counts for this request and this person alone.
    other = service.web.authorize_url(scope="profile", prompt="select_account", state="another")
    mark = parse_qs(urlsplit(onward(page) or "").query)["progress"][0]
    assert urlsplit((await browser.get(f"{other}&progress={mark}")).headers["Location"]).path == CHOOSE
    # Signed out, the list comes first. After the proof nobody is asked again.
    await browser.submit(page, "/signout")
    led = await browser.get(url)
    assert urlsplit(led.headers["Location"]).path == CHOOSE
    page = await browser.get(led.headers["Location"])
    chosen = await browser.submit(page, CHOOSE, account=entries(page)[BOB])
    signed_in = await browser.submit(
        await browser.get(chosen.headers["Location"]), "/signin", email=BOB, password=PASSWORD
    )
    assert b"(bob@example.com)" in (await browser.get(signed_in.headers["Location"])).body
    # A browser without a list goes on to sign in at once.
    stranger = await service.browser().get(url)
    assert stranger.headers["Location"].startswith("/signin?next=" + quote("/oauth/authorize?", safe=""))


async def test_who_wants_none_of_them_makes_an_account_for_prompt_create(service: Service) -> None:
    browser = await two_people(service)
    led = await browser.get(service.web.authorize_url(scope="profile", prompt="create"))
    page = await browser.get(led.headers["Location"])
    away = await browser.submit(page, CHOOSE, account=None, create="1")
    assert urlsplit(away.headers["Location"]).path == "/signup"
