"""What an app may have the person go through: `prompt`, `max_age`, `acr_values`. OpenID Connect Core 3.1.2.1."""

from __future__ import annotations

import html
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.oauth.openid.test_sign_in import claims_in, openid_app, refusal
from tests.support.http.driver import EMAIL, App, Browser, Service, answer_of, fields_of, json_of, query_of
from tests.support.lists.offenders import each
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


async def signed_in_for(browser: Browser, url: str, email: str = EMAIL) -> str:
    """Signs in as this request demands. Returns the address at which the request goes on."""
    back = await sent_to_sign_in(browser, url)
    location: str = (await browser.sign_in(email, next=back)).headers["Location"]
    assert location.startswith("/oauth/authorize?")
    return location


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 login")
@pytest.mark.openid("core 3.1.2.3 login")
@pytest.mark.openid("core 15.1 prompt")
@pytest.mark.trap(46)
async def test_prompt_login_takes_a_new_sign_in_and_nothing_else(service: Service, clock: FakeClock) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    first = json_of(await app.exchange(await service.code(app, browser, scope="openid")))
    clock.advance(600)
    url = app.authorize_url(scope="openid", prompt="login")
    # Whoever goes back without signing in is sent there again.
    assert await sent_to_sign_in(browser, await sent_to_sign_in(browser, url))
    marked = await signed_in_for(browser, url)
    code = answer_of(await browser.get(marked))["code"]
    after = await claims_in(service, json_of(await app.exchange(code))["id_token"])
    before = await claims_in(service, first["id_token"])
    assert after["auth_time"] - before["auth_time"] >= 600
    assert after["sid"] == before["sid"], "in the same browser, so that signing out tells the apps of both sign-ins"
    # The sign-in counts for ten minutes.
    clock.advance(599)
    assert "code" in answer_of(await browser.get(marked))
    clock.advance(2)
    assert await sent_to_sign_in(browser, marked)


@pytest.mark.gen_test
@pytest.mark.trap(46)
@each("demand", [{"prompt": "login"}, {"max_age": "0"}, {"max_age": "50"}, {"prompt": "login", "max_age": "5000"}])
async def test_a_sign_in_counts_for_its_request_and_its_person_alone(
    service: Service, clock: FakeClock, demand: dict[str, str]
) -> None:
    if await service.store.apps.find("openid-app") is None:
        await openid_app(service)
        await service.add_person("mallory@example.com")
    app = App(service.base_url, "openid-app", None)
    url = app.authorize_url(scope="openid", **demand)
    early, ada, mallory = [await service.signed_in(one) for one in (EMAIL, EMAIL, "mallory@example.com")]
    clock.advance(100)
    own = query_of(await signed_in_for(ada, url))["progress"][0]
    theirs = query_of(await signed_in_for(mallory, url, "mallory@example.com"))["progress"][0]
    clock.advance(100)
    # Another request, another person's mark, and a session that is older than the sign-in.
    other = app.authorize_url(scope="openid", **demand, state="another", nonce="another")
    for browser, marked in (
        (ada, f"{other}&progress={own}"),
        (ada, f"{url}&progress={theirs}"),
        (mallory, f"{url}&progress={own}"),
        (early, f"{url}&progress={own}"),
    ):
        assert await sent_to_sign_in(browser, marked)
    assert (await ada.get(f"{url}&progress={own}")).code in (200, 303)


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 max_age")
@pytest.mark.openid("core 15.1 max_age")
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
        marked = await signed_in_for(browser, app.authorize_url(scope="openid", max_age=age))
        assert "code" in answer_of(await browser.get(marked))


@pytest.mark.gen_test
async def test_a_decision_takes_a_sign_in_as_new_as_the_request_demands(service: Service, clock: FakeClock) -> None:
    app, early = await openid_app(service), await service.signed_in()
    clock.advance(100)
    late = await service.signed_in()
    page = await late.get(app.authorize_url(scope="openid", max_age="50"))
    form = fields_of(page, "/api/oauth/authorize")
    own = fields_of(await early.get(app.authorize_url(scope="openid")), "/api/oauth/authorize")["_xsrf"]
    sent = await early.send("/api/oauth/authorize", "POST", form={**form, "_xsrf": own, "decision": "allow"})
    assert sent.code == 400
    # Time that passes on the page itself does not count.
    clock.advance(100)
    assert "code" in answer_of(await late.submit(page, "/api/oauth/authorize", decision="allow"))


async def stronger(service: Service, method: str) -> Browser:
    """A browser with a session that began in this way."""
    browser = await service.signed_in()
    session = next(filter(None, map(service.store.sessions.open, browser.cookies.values())))
    await service.store.client.hset(session.keys()["session"], "method", method)
    return browser


@pytest.mark.gen_test
async def test_a_decision_takes_a_sign_in_as_strong_as_the_request_demands(service: Service) -> None:
    app, weak, strong = await openid_app(service), await service.signed_in(), await stronger(service, "otp")
    page = await strong.get(app.authorize_url(scope="openid", acr_values="2"))
    form = fields_of(page, "/api/oauth/authorize")
    own = fields_of(await weak.get(app.authorize_url(scope="openid")), "/api/oauth/authorize")["_xsrf"]
    sent = await weak.send("/api/oauth/authorize", "POST", form={**form, "_xsrf": own, "decision": "allow"})
    assert sent.code == 400
    code = answer_of(await strong.submit(page, "/api/oauth/authorize", decision="allow"))["code"]
    claims = await claims_in(service, json_of(await app.exchange(code))["id_token"])
    assert (claims["acr"], claims["amr"]) == ("2", ["pwd", "otp", "mfa"])


@pytest.mark.gen_test
@pytest.mark.openid("core 2 acr")
async def test_the_level_is_the_best_of_those_requested(service: Service) -> None:
    app, levels = await openid_app(service), {}
    for method in ("pwd", "otp", "pwd+passkey", "passkey"):
        browser = await stronger(service, method)
        for acr_values in ("", "1", "2 1", "phr 2 1"):
            code = await service.code(app, browser, scope="openid", acr_values=acr_values)
            claims = await claims_in(service, json_of(await app.exchange(code))["id_token"])
            levels[method, acr_values] = claims["acr"]
    assert levels == {
        ("pwd", ""): "1",
        ("pwd", "1"): "1",
        ("pwd", "2 1"): "1",
        ("pwd", "phr 2 1"): "1",
        ("otp", ""): "2",
        ("otp", "1"): "1",
        ("otp", "2 1"): "2",
        ("otp", "phr 2 1"): "2",
        ("pwd+passkey", ""): "phr",
        ("pwd+passkey", "1"): "1",
        ("pwd+passkey", "2 1"): "2",
        ("pwd+passkey", "phr 2 1"): "phr",
        ("passkey", ""): "phr",
        ("passkey", "1"): "1",
        ("passkey", "2 1"): "2",
        ("passkey", "phr 2 1"): "phr",
    }


@pytest.mark.gen_test
async def test_select_account_shows_who_is_signed_in(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    url = app.authorize_url(scope="openid", prompt="select_account")
    page = await browser.get((await browser.get(url)).headers["Location"])
    text = page.body.decode()
    assert "Choose an account" in text
    onward = html.unescape(text.split('class="choice" href="')[1].split('"')[0])
    assert "code" in answer_of(await browser.get(onward))
    # Another account: sign out, sign in as somebody else, and go on without another question of this kind.
    await service.add_person("bob@example.com")
    signed_out = await browser.submit(page, "/signin/choose")
    back = next_of(signed_out.headers["Location"])
    assert "select_account" in query_of(back)["prompt"]
    signed_in = await browser.sign_in("bob@example.com", next=back)
    redirect = await browser.consent(signed_in.headers["Location"])
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
        assert b"needs a stronger sign-in" in page.body
        quiet = await browser.get(app.authorize_url(scope="openid", acr_values=acr, prompt="none"))
        assert refusal(quiet) == "unmet_authentication_requirements"
    # The way on leads to the sign-in page, with this person's address, and does not sign them out.
    page = await browser.get(app.authorize_url(scope="openid", acr_values="2"))
    onward = html.unescape(page.body.decode().split('class="button full" href="')[1].split('"')[0])
    again = await browser.get(onward)
    assert f'value="{EMAIL}"'.encode() in again.body
    assert query_of(next_of(onward))["acr_values"] == ["2"]
    for acr in ("1", "phr 1", "unknown"):
        tokens = json_of(await app.exchange(await service.code(app, browser, scope="openid", acr_values=acr)))
        assert (await claims_in(service, tokens["id_token"]))["acr"] == "1"


@pytest.mark.gen_test
async def test_the_way_back_to_the_app_is_a_form_where_the_app_wants_one(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    weak = {"scope": "openid", "acr_values": "2", "response_mode": "form_post"}
    page = await browser.get(app.authorize_url(**weak))
    assert fields_of(page, app.redirect_uri)["error"] == "unmet_authentication_requirements"
    assert "error=" not in page.body.decode()
    assert "form-action" not in page.headers["Content-Security-Policy"]
    # Nobody is sent at once to an app that anybody may have registered.
    curious = await service.add_app("curious", scopes=("openid",), owner=service.ada)
    for person in (browser, service.browser()):
        page = await person.get(curious.authorize_url(scope="openid", prompt="none", response_mode="form_post"))
        fields = fields_of(page, curious.redirect_uri)
        assert fields["error"] in ("login_required", "consent_required")
        assert (fields["state"], fields["iss"]) == ("a-state", service.base_url)
        assert b"data-submit-now" not in page.body
