"""Error pages: they show who is signed in and the next step, without using the store."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from tornado.httpclient import HTTPResponse

from store.results import Visitor
from tests.support.browser.pages import Page
from tests.support.http.driver import EMAIL, FRESH, PASSWORD, Service, json_of
from tests.support.store.world import to_change

pytestmark = pytest.mark.gen_test
GRACE = "grace@example.com"


def links_of(page: HTTPResponse) -> dict[str, str]:
    """The links of a page, by their words."""
    return {" ".join(link.text.split()): link.get("href") for link in Page(page.body.decode()).all("a")}


def forms_of(page: HTTPResponse) -> list[str]:
    """Where the forms of a page go."""
    return [form.get("action") for form in Page(page.body.decode()).all("form")]


async def test_error_pages_offer_sign_in_or_sign_out_in_one_click(service: Service) -> None:
    stranger, ada = service.browser(), await service.signed_in()
    for path in ("/nowhere", "/reset?link=x", "/oauth/authorize"):
        page = await stranger.get(path)
        assert page.code in (400, 404)
        assert links_of(page)["Sign in"] == "/signin"
        assert forms_of(page) == []
        page = await ada.get(path)
        assert links_of(page)["Your account"] == "/account"
        assert "Sign in" not in links_of(page)
        assert forms_of(page) == ["/signout"]
    assert (await ada.submit(page, "/signout")).code == 303
    assert (await ada.get("/account")).code == 303


async def test_public_pages_show_who_is_signed_in(service: Service) -> None:
    ada = await service.signed_in()
    for path in (f"/signin?next={FRESH}", f"/signup?next={FRESH}", "/forgot"):
        assert "/signout" in forms_of(await ada.get(path))
        assert "/signout" not in forms_of(await service.browser().get(path))
    assert links_of(await service.browser().get("/"))["Sign in"] == "/signin"
    # A session that is over is none, although the browser still has its cookie.
    await service.store.operator.set_password(EMAIL, b"another hash")
    assert "/signout" not in forms_of(await ada.get("/signin"))


async def test_error_pages_offer_a_next_step(service: Service) -> None:
    stranger, ada = service.browser(), await service.signed_in()
    assert links_of(await stranger.get("/nowhere"))["Go to the home page"] == "/"
    assert links_of(await ada.get("/nowhere"))["Go to your account"] == "/account"
    assert links_of(await stranger.get("/reset?link=x"))["Send a new link"] == "/forgot"
    assert links_of(await ada.get("/confirm?link=x"))["Send a new link"] == "/account/email"
    assert links_of(await ada.get("/account/email/change?link=x"))["Send a new link"] == "/account/email"


@pytest.mark.parametrize(("what", "path"), [("confirm", "/confirm"), ("change", "/account/email/change")])
async def test_a_link_for_another_person_offers_to_switch_accounts(service: Service, what: str, path: str) -> None:
    grace = await service.store.people.create(
        GRACE, "Grace", PASSWORD, verified=False, event="signed_up", visitor=Visitor()
    )
    links = service.store.links
    if what == "confirm":
        made = await links.to_confirm(grace, GRACE)
    else:
        session = service.store.sessions.open((await service.signed_in(GRACE)).cookies["latchkey_session"])
        assert session
        made = await to_change(service.store, session, "new@example.com")
    assert made
    address = f"{path}?link={made.text}"
    browser = await service.signed_in()
    page = await browser.get(address)
    assert page.code == 403
    assert EMAIL in page.body.decode()
    button = re.search(r"<form[^>]*>(?:(?!</form>).)*Sign out and open the link again", page.body.decode(), re.S)
    assert button
    field = {"_xsrf": browser.cookies["latchkey_xsrf"], "next": address}
    fields = re.findall(r'name="next" value="([^"]*)"', page.body.decode())
    assert fields == [address]
    out = await browser.send("/signout", "POST", form=field)
    assert out.headers["Location"] == address
    away = await browser.get(address)
    assert away.headers["Location"] == f"/signin?next={quote(address, safe='')}"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/account?name", "Your name was changed"),
        ("/account?removed", "Your picture was removed"),
        ("/account/security?changed", "Your password was changed"),
        ("/account/security?passkey-removed", "passkey was removed"),
        ("/developer/apps?deleted", "The app was deleted"),
        ("/developer/apps?x", "The app was deleted"),
    ],
)
async def test_a_url_alone_shows_no_success_message(service: Service, path: str, words: str) -> None:
    """Anybody can make a person open such a URL."""
    browser = await service.signed_in()
    page = await browser.get(path)
    assert page.code == 200
    assert words not in page.body.decode()


async def test_a_success_message_is_shown_once_in_its_own_browser(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    page = await browser.get("/account")
    done = await browser.submit(page, "/account", name="Countess")
    where = done.headers["Location"]
    assert "Your name was changed" not in (await other.get(where)).body.decode()
    assert "Your name was changed" not in (await browser.get("/account/apps")).body.decode()
    assert "Your name was changed" in (await browser.get(where)).body.decode()
    assert "Your name was changed" not in (await browser.get(where)).body.decode()
    assert "latchkey_done" not in browser.cookies


async def test_a_missing_xsrf_token_is_distinguished_from_a_denial(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.send("/signout", "POST", form={"x": "y"})
    assert page.code == 403
    assert "reload the page" in page.body.decode()
    assert "denied" not in page.body.decode()
    answer = await browser.send("/signout", "POST", form={"x": "y"}, headers={"Accept": "application/json"})
    assert "XSRF" in json_of(answer)["error_description"]


async def test_a_full_window_says_when_to_come_back(service: Service) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    for _ in range(20):
        assert (await browser.submit(page, "/signin", email=EMAIL, password="wrong password")).code == 400
    refused = await browser.submit(page, "/signin", email=EMAIL, password=PASSWORD)
    assert refused.code == 429
    seconds = int(refused.headers["Retry-After"])
    assert f"Try again in {seconds}\u00a0second" in refused.body.decode()


async def test_long_waits_are_given_in_minutes(service: Service) -> None:
    browser = service.browser()
    page = await browser.get("/forgot")
    for _ in range(5):
        assert (await browser.submit(page, "/forgot", email=EMAIL)).code == 200
    refused = await browser.submit(page, "/forgot", email=EMAIL)
    minutes = -(-int(refused.headers["Retry-After"]) // 60)
    assert f"Try again in {minutes}\u00a0minutes" in refused.body.decode()
