"""What an app may have the person go through: `prompt`, `max_age`, `acr_values`. OpenID Connect Core 3.1.2.1."""

from __future__ import annotations

import html
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.oauth.openid.test_sign_in import claims_in, openid_app, refusal
from tests.support.http.driver import Browser, Service, answer_of, json_of
from tests.support.processes.engines import FakeClock


def next_of(location: str, page: str = "/signin") -> str:
    """The address to which a sign-in page leads on."""
    assert urlsplit(location).path == page, location
    return parse_qs(urlsplit(location).query)["next"][0]


async def sent_to_sign_in(browser: Browser, url: str) -> str:
    """Where the sign-in page leads that this request asks for."""
    page = await browser.get(url)
    assert page.code == 303, page.body
    return next_of(page.headers["Location"])


@pytest.mark.gen_test
async def test_prompt_login_takes_a_new_sign_in_and_nothing_else(service: Service, clock: FakeClock) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    first = json_of(await app.exchange(await service.code(app, browser, scope="openid")))
    clock.advance(600)
    back = await sent_to_sign_in(browser, app.authorize_url(scope="openid", prompt="login"))
    # Whoever goes back without signing in is sent there again.
    assert await sent_to_sign_in(browser, back)
    await browser.sign_in(next=back)
    code = answer_of(await browser.get(back))["code"]
    after = await claims_in(service, json_of(await app.exchange(code))["id_token"])
    before = await claims_in(service, first["id_token"])
    assert after["auth_time"] - before["auth_time"] >= 600
    assert after["sid"] != before["sid"]
    # The mark holds for an hour.
    clock.advance(3601)
    assert await sent_to_sign_in(browser, back)


@pytest.mark.gen_test
async def test_max_age_is_the_age_of_the_sign_in(service: Service, clock: FakeClock) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    clock.advance(100)
    assert "code" in answer_of(await browser.get(app.authorize_url(scope="openid", max_age="200")))
    assert (
        refusal(await browser.get(app.authorize_url(scope="openid", max_age="50", prompt="none"))) == "login_required"
    )
    for age in ("50", "0"):
        clock.advance(60)
        back = await sent_to_sign_in(browser, app.authorize_url(scope="openid", max_age=age))
        await browser.sign_in(next=back)
        assert "code" in answer_of(await browser.get(back))


@pytest.mark.gen_test
async def test_select_account_shows_who_is_signed_in(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    url = app.authorize_url(scope="openid", prompt="select_account")
    page = await browser.get(url)
    assert page.code == 200
    assert b"Which account do you want to use?" in page.body
    text = page.body.decode()
    onward = html.unescape(text.split('class="button full" href="')[1].split('"')[0])
    assert "code" in answer_of(await browser.get(onward))
    # Another account: sign out, sign in as somebody else, and go on without another question of this kind.
    await service.add_person("bob@example.com")
    again = html.unescape(text.split('name="next" value="')[1].split('"')[0])
    signed_out = await browser.submit(page, "/signout", next=again)
    assert signed_out.headers["Location"] == again
    back = await sent_to_sign_in(browser, again)
    await browser.sign_in("bob@example.com", next=back)
    redirect = await browser.consent(back)
    tokens = json_of(await app.exchange(answer_of(redirect)["code"]))
    assert (await claims_in(service, tokens["id_token"]))["sub"] != service.ada


@pytest.mark.gen_test
async def test_prompt_create_leads_to_the_page_that_makes_an_account(service: Service) -> None:
    app = await openid_app(service)
    page = await service.browser().get(app.authorize_url(scope="openid", prompt="create"))
    assert next_of(page.headers["Location"], "/signup").startswith("/oauth/authorize?")


@pytest.mark.gen_test
async def test_a_weak_sign_in_is_stepped_up_or_refused(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    for acr in ("2", "phr"):
        page = await browser.get(app.authorize_url(scope="openid", acr_values=acr))
        assert page.code == 200
        assert b"wants to be surer" in page.body
        quiet = await browser.get(app.authorize_url(scope="openid", acr_values=acr, prompt="none"))
        assert refusal(quiet) == "unmet_authentication_requirements"
    for acr in ("1", "phr 1", "unknown"):
        tokens = json_of(await app.exchange(await service.code(app, browser, scope="openid", acr_values=acr)))
        assert (await claims_in(service, tokens["id_token"]))["acr"] == "1"
