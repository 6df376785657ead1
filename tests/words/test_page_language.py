"""The language of a page, from the app's request, the person's choice, a cookie and the browser."""

from __future__ import annotations

import re

import pytest
from tornado.httpclient import HTTPResponse

from dev.words import pseudo
from dev.words.pseudo import BACKWARDS, LONGER, longer
from handlers.core.site import Site
from handlers.core.words.languages import Languages, shipped
from store.results import NO_CHOICE, Preferences
from store.wiring import Store
from tests.oauth.pushed.test_pushed import address
from tests.support.http.driver import PASSWORD, Browser, Service, json_of
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test
MADE = pseudo.languages()


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return Site(memory_store, base_url, languages=Languages([*shipped().all, *MADE.all]))


def language(page: HTTPResponse) -> str:
    """The language that a page says it has, in its head and in its header."""
    found = re.search(r'<html lang="([\w-]+)" dir="(\w+)">', page.body.decode())
    assert found
    assert found[1] == page.headers["Content-Language"]
    assert found[2] == ("rtl" if found[1] == BACKWARDS.tag else "ltr")
    assert page.headers["Vary"] == "Accept-Language, Cookie"
    return found[1]


async def prefer(service: Service, browser: Browser, preferences: Preferences) -> None:
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    await service.store.profiles.prefer(session, preferences, VISITOR)


async def test_a_page_has_the_language_that_the_browser_asks_for(service: Service) -> None:
    browser = service.browser()
    assert language(await browser.get("/signin")) == "en"
    assert language(await browser.get("/signin", **{"Accept-Language": "nl, ar-XB;q=0.8, en;q=0.5"})) == "ar-XB"
    assert language(await browser.get("/nowhere", **{"Accept-Language": "en-XA"})) == "en-XA"
    assert language(await browser.get("/signin", **{"Accept-Language": "nl"})) == "en"
    portuguese = await browser.get("/signin", **{"Accept-Language": "pt-PT"})
    assert language(portuguese) == "pt-BR"
    assert "Esqueceu a senha?" in portuguese.body.decode()


async def test_sentences_of_a_page_in_japanese_have_no_blank_between_them(service: Service) -> None:
    browser = await service.signed_in()
    page = (await browser.get("/account/delete", **{"Accept-Language": "ja"})).body.decode()
    assert "してください。アプリが自身の" in page


async def test_json_is_english(service: Service) -> None:
    browser = service.browser()
    for path in ("/nowhere", "/api/nowhere"):
        page = await browser.get(path, Accept="application/json", **{"Accept-Language": "en-XA"})
        assert json_of(page)["error_description"] == "There is nothing here."
        assert "Content-Language" not in page.headers


async def test_the_persons_choice_goes_before_the_browsers(service: Service) -> None:
    browser = await service.signed_in()
    await prefer(service, browser, Preferences("ar_XB", ""))
    for path in ("/account", "/account/apps", "/account/credits", "/account/security", "/account/delete"):
        assert language(await browser.get(path, **{"Accept-Language": "en-XA"})) == "ar-XB", path


async def test_a_page_that_knows_nobody_has_the_choice_from_a_cookie(service: Service) -> None:
    browser = await service.signed_in()
    await prefer(service, browser, Preferences("ar_XB", ""))
    assert language(await browser.get("/nowhere")) == "en"
    await browser.get("/account")
    assert browser.cookies["latchkey_language"] == "ar_XB"
    assert language(await browser.get("/nowhere")) == "ar-XB"
    await prefer(service, browser, NO_CHOICE)
    await browser.get("/account")
    assert language(await browser.get("/nowhere")) == "en"


async def test_a_cookie_of_nobody_changes_nothing(service: Service) -> None:
    browser = service.browser()
    for cookie in ("xx", "../en", "", "a" * 4000):
        browser.cookies["latchkey_language"] = cookie
        assert language(await browser.get("/signin")) == "en"


async def test_a_language_that_is_gone_is_no_error(service: Service) -> None:
    browser = await service.signed_in()
    await prefer(service, browser, Preferences("tlh", "Mars/Olympus"))
    assert language(await browser.get("/account", **{"Accept-Language": "en-XA"})) == "en-XA"


async def test_an_app_asks_for_languages(service: Service) -> None:
    """OpenID Connect Core 3.1.2.1, from the sign-in page to the consent page."""
    browser = service.browser()
    to_sign_in = await browser.get(service.web.authorize_url(ui_locales="tlh en-XA"))
    page = await browser.get(to_sign_in.headers["Location"])
    assert language(page) == "en-XA"
    wrong = await browser.submit(page, "/signin", email="ada@example.com", password="not this one")
    assert (wrong.code, language(wrong)) == (400, "en-XA")
    browser = await service.signed_in()
    await prefer(service, browser, Preferences("ar_XB", ""))
    assert language(await browser.get(service.web.authorize_url(ui_locales="en-XA"))) == "en-XA"
    assert language(await browser.get(service.web.authorize_url(ui_locales="tlh"))) == "ar-XB"
    refused = await browser.get(service.web.authorize_url(redirect_uri="https://evil.example/", ui_locales="en-XA"))
    assert (refused.code, language(refused)) == (400, "en-XA")


async def test_a_pushed_request_asks_for_languages(service: Service) -> None:
    browser = service.browser()
    to_sign_in = await browser.get(await address(service.web, ui_locales="en-XA", login_hint="ada@example.com"))
    page = await browser.get(to_sign_in.headers["Location"])
    assert language(page) == "en-XA"
    back = await browser.submit(page, "/signin", email="ada@example.com", password=PASSWORD)
    assert language(await browser.get(back.headers["Location"])) == "en-XA"


async def test_times_are_in_the_zone_of_the_person_then_of_the_browser(service: Service) -> None:
    browser = await service.signed_in()
    assert re.search(r'title="[^"]+ UTC"', (await browser.get("/account/security")).body.decode())
    for cookie in ("Asia/Kolkata", "Asia/Calcutta"):
        browser.cookies["latchkey_zone"] = cookie
        assert re.search(r'title="[^"]+ UTC\+5:30"', (await browser.get("/account/security")).body.decode())
    for cookie in ("../../etc/passwd", "/etc/localtime", "x" * 4000, "Nowhere/Else"):
        browser.cookies["latchkey_zone"] = cookie
        assert re.search(r'title="[^"]+ UTC"', (await browser.get("/account/security")).body.decode())
    browser.cookies["latchkey_zone"] = "Asia/Kolkata"
    await prefer(service, browser, Preferences("", "Pacific/Honolulu"))
    assert re.search('title="[^"]+ UTC\N{MINUS SIGN}10"', (await browser.get("/account/security")).body.decode())


async def test_the_script_that_tells_the_zone_knows_its_cookie(service: Service) -> None:
    browser = service.browser()
    assert 'data-cookie="latchkey_zone"' in (await browser.get("/signin")).body.decode()
    assert "zone.js" not in (await browser.get("/signup")).body.decode(), "a page that runs no scripts"


async def test_relative_times_are_in_the_language_of_the_page(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account/security", **{"Accept-Language": LONGER.tag})
    assert longer("just now") in page.body.decode()
