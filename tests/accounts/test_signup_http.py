"""Sign-up and invitations over HTTP."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from tests.support.browser import signup
from tests.support.browser.signup import cookies_of, sign_up, signed_in_as
from tests.support.http.driver import FRESH, PASSWORD, Browser, Service, fields_of, json_of
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock

DAY = 86400

facts, site = signup.facts, signup.site


@pytest.mark.gen_test
async def test_sign_up_makes_an_account_and_signs_in(service: Service) -> None:
    browser = service.browser()
    response = await sign_up(browser, "grace@example.com")
    assert response.code == 303
    assert response.headers["Location"] == "/account?welcome"
    assert "Your account is ready. We e-mailed you a link" in (await browser.get("/account?welcome")).body.decode()
    assert await signed_in_as(browser) == "grace@example.com"
    other = service.browser()
    assert (await other.sign_in("grace@example.com")).code == 303
    assert await signed_in_as(other) == "grace@example.com"


@pytest.mark.gen_test
@pytest.mark.parametrize("typed", ["GRACE@Example.COM", "  grace@example.com ", "grace@EXAMPLE.com"])
async def test_one_address_is_one_account_in_every_spelling(service: Service, typed: str) -> None:
    assert (await sign_up(service.browser(), "Grace@example.com")).code == 303
    taken = await sign_up(service.browser(), typed)
    assert taken.code == 400
    assert b"already an account with this e-mail address" in taken.body
    browser = service.browser()
    assert (await browser.sign_in(typed)).code == 303
    assert await signed_in_as(browser) == "grace@example.com"


@pytest.mark.gen_test
@pytest.mark.trap(21)
@each(
    ("changes", "words"),
    [
        pytest.param({"email": ""}, "e-mail", id="no address"),
        pytest.param({"email": "no address"}, "e-mail", id="no address at all"),
        pytest.param({"email": "a@" + "b" * 5000}, "254", id="an endless address"),
        pytest.param({"email": "a@b@c"}, "one @", id="two @"),
        pytest.param({"email": "a\u202eb@example.com"}, "e-mail", id="a character that turns the text around"),
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"name": "x" * 10_000}, "100", id="an endless name"),
        pytest.param({"name": "\u200b"}, "name", id="an invisible name"),
        pytest.param({"name": "a\u202eb"}, "direction", id="a name that turns the text around"),
        pytest.param({"password": ""}, "at least 10", id="no password"),
        pytest.param({"password": "short"}, "at least 10", id="a short password"),
        pytest.param({"password": "x" * 300}, "at most 256", id="an endless password"),
        pytest.param({"password": "password123"}, "too easy to guess", id="a well-known password"),
        pytest.param({"password": "grace@example.com"}, "e-mail address", id="the address as password"),
    ],
)
async def test_the_sign_up_form_shows_its_errors(service: Service, changes: dict[str, str], words: str) -> None:
    browser = service.browser()
    page = await browser.get("/signup?next=%2Faccount")
    form = {"email": "grace@example.com", "name": "Grace <b>", "password": "secret horse battery", **changes}
    response = await browser.submit(page, "/signup", **form)
    text = response.body.decode()
    assert response.code == 400
    alert = re.search(r'role="alert"[^>]*>([^<]*)', text)
    assert alert
    assert words in alert[1]
    assert "secret horse battery" not in text
    assert "<b>" not in text
    assert fields_of(response, "/signup")["next"] == "/account"
    assert "latchkey_session" not in cookies_of(response)
    assert await service.store.people.find("grace@example.com") is None


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "facts", [{"signup": word} for word in ("open", "off", "invite")], ids=lambda facts: facts["signup"]
)
async def test_the_front_page_offers_sign_up_if_it_is_open(service: Service, facts: dict[str, Any]) -> None:
    offered = b'href="/signup">Create an account' in (await service.browser().get("/")).body
    assert offered == (facts["signup"] == "open")
    assert b"/signup" not in (await (await service.signed_in()).get("/")).body


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "off"}, {"signup": "invite"}], ids=["off", "invite"])
async def test_sign_up_may_be_closed(service: Service) -> None:
    browser = service.browser()
    for path in ("/signup", "/signup?invite=invented"):
        assert (await browser.get(path)).code == 403
    assert b"Create an account" not in (await browser.get("/signin")).body
    form = {**fields_of(await browser.get("/signin"), "/signin"), "name": "Eve", "password": PASSWORD}
    response = await browser.send("/signup", "POST", form={**form, "email": "eve@example.com", "invite": "x"})
    assert response.code == 403
    assert await service.store.people.find("eve@example.com") is None
    assert (await browser.sign_in()).code == 303  # people with an account still sign in


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "invite"}, {"signup": "open"}], ids=["invite", "open"])
async def test_an_invitation_makes_one_account_with_a_confirmed_address(service: Service, clock: FakeClock) -> None:
    invite = await service.store.people.invite("grace@example.com")
    browser = service.browser()
    page = await browser.get(f"/signup?invite={invite}")
    assert page.code == 200
    assert b"grace@example.com" in page.body
    # The address is the invitation's, whatever the form says; a failed try does not use it up.
    form = {"email": "eve@example.com", "name": "Grace"}
    failed = await browser.submit(page, "/signup", **form, password="short")
    assert failed.code == 400
    assert (await browser.submit(failed, "/signup", **form, password=PASSWORD)).code == 303
    assert await signed_in_as(browser) == "grace@example.com"
    assert json_of(await userinfo_of(service, browser))["email_verified"] is True
    assert await service.store.people.find("eve@example.com") is None
    assert await service.store.people.invited(invite) is None
    late = await service.store.people.invite("late@example.com")
    clock.advance(7 * DAY + 1)
    assert await service.store.people.invited(late) is None


@pytest.mark.gen_test
async def test_an_expired_invitation_is_reported_and_keeps_the_input(service: Service) -> None:
    old = await service.store.people.invite("grace@example.com")
    browser = service.browser()
    form = await browser.get(f"/signup?invite={old}")
    await service.store.people.invite("grace@example.com")
    page = await browser.get(f"/signup?invite={old}&next=%2Faccount")
    assert page.code == 400
    assert "This link has expired or was already used" in page.body.decode()
    assert "invite" not in fields_of(page, "/signup")
    sent = await browser.submit(form, "/signup", name="Grace", email="grace@example.com", password=PASSWORD)
    assert sent.code == 400
    assert "This link has expired or was already used" in sent.body.decode()
    assert 'value="Grace"' in sent.body.decode()
    assert await service.store.people.find("grace@example.com") is None
    done = await browser.submit(page, "/signup", name="Grace", email="grace@example.com", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, "/account?welcome")


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "invite"}])
async def test_an_expired_invitation_is_distinguished_from_a_missing_one(service: Service) -> None:
    browser = service.browser()
    assert "You need an invitation" in (await browser.get("/signup")).body.decode()
    assert "This invitation has expired or was already used" in (await browser.get("/signup?invite=over")).body.decode()


async def userinfo_of(service: Service, browser: Browser) -> HTTPResponse:
    tokens = await service.tokens(browser=browser)
    return await service.web.userinfo(tokens["access_token"])


@pytest.mark.gen_test
async def test_signing_up_ends_the_earlier_session(service: Service) -> None:
    browser = await service.signed_in()
    planted = browser.cookies["latchkey_session"]
    assert (await sign_up(browser, "grace@example.com", query=f"?next={FRESH}")).code == 303
    other = service.browser()
    other.cookies["latchkey_session"] = planted
    assert await signed_in_as(other) is None
