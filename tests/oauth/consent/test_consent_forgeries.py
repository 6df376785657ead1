"""Forged decisions about a consent: without a token, with another browser's, from another origin. SPEC 1, 4.2."""

from __future__ import annotations

import pytest

from tests.support.http.decision import DECIDE
from tests.support.http.driver import Service, fields_of

# What each does to the request that would otherwise decide, or revoke.
FORGERIES = [
    pytest.param({"_xsrf": None}, {}, id="no token"),
    pytest.param({"_xsrf": "2|aaaaaaaa|bbbbbbbb|1"}, {}, id="an invented token"),
    pytest.param({"_xsrf": ""}, {}, id="an empty token"),
    pytest.param({"_xsrf": None}, {"Sec-Fetch-Mode": "navigate"}, id="said to be a navigation"),
    pytest.param({"_xsrf": None}, {"Sec-Fetch-Mode": "no-cors"}, id="said to be no-cors"),
    pytest.param({"_xsrf": None}, {"Sec-Fetch-Mode": "same-origin"}, id="said to be same-origin"),
    pytest.param(
        {"_xsrf": None}, {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, id="said to come from the page"
    ),
    pytest.param({"_xsrf": None}, {"X-Requested-With": "XMLHttpRequest"}, id="said to be a script"),
    pytest.param({}, {"Origin": "https://evil.test"}, id="a token, from another origin"),
    pytest.param({}, {"Origin": "null"}, id="a token, from a sandbox"),
    pytest.param({}, {"Origin": "https://localhost"}, id="a token, from the origin over TLS"),
]


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.3 forgery")
@pytest.mark.trap(22)
@pytest.mark.parametrize(("fields", "headers"), FORGERIES)
async def test_forged_forms_do_nothing(
    service: Service, fields: dict[str, str | None], headers: dict[str, str]
) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url(scope="profile data:read credits:spend"))
    consent = await browser.get(service.web.authorize_url(prompt="consent"))
    apps = await browser.get("/account/apps")
    security = await browser.get("/account/security")
    passwords = {"current_password": "correct horse battery", "new_password": "another horse battery"}
    for page, action, values in (
        (consent, DECIDE, {"decision": "deny"}),
        (apps, "/account/apps/web-app/revoke", {}),
        (apps, "/account/apps/web-app/limit", {"dollars": "9"}),
        (security, "/account/security", passwords),
        (security, "/signout", {}),
    ):
        form = {**fields_of(page, action), **values, **fields}
        kept = {name: value for name, value in form.items() if value is not None}
        response = await browser.send(action, "POST", form=kept, headers=headers)
        assert response.code == 403, action
    # Everything is as it was, and the same forms work when the page sends them.
    apps_now = await browser.get("/account/apps")
    assert b"Disconnect <bdi>Web App" in apps_now.body
    assert b"It has no limit" in apps_now.body
    assert (await browser.submit(consent, DECIDE, decision="deny")).code == 303
    assert (await browser.submit(security, "/account/security", **passwords)).code == 303


@pytest.mark.gen_test
@pytest.mark.trap(22)
async def test_another_browsers_xsrf_token_is_refused(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    page, foreign = await browser.get("/account/apps"), await other.get("/account/apps")
    assert fields_of(page, "/signout")["_xsrf"]
    response = await browser.send("/signout", "POST", form={"_xsrf": fields_of(foreign, "/signout")["_xsrf"]})
    assert response.code == 403


@pytest.mark.gen_test
@pytest.mark.trap(27)
async def test_xsrf_is_checked_before_the_body_and_only_on_pages(service: Service) -> None:
    browser = await service.signed_in()
    for path in (
        DECIDE,
        "/signin",
        "/signup",
        "/signout",
        "/account/apps/web-app/revoke",
        "/account/apps/web-app/limit",
        "/account/security",
    ):
        too_large = await browser.send(path, "POST", form={"x": "y" * 100_000})
        assert too_large.code == 403, path
    tokens = await service.tokens(browser=browser)
    # The cookies ride along; the API asks for no XSRF token and gives no authority for them either.
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": "web-app"}
    refreshed = await browser.send("/api/oauth/token", "POST", form={**form, "client_secret": service.web.secret or ""})
    assert refreshed.code == 200
    assert (await browser.send("/api/oauth/revoke", "POST", form={"token": "x"})).code == 200
    assert (await browser.send("/api/oauth/userinfo", "POST")).code == 401
