"""Userinfo over HTTP. SPEC 2.3, 4.4, 5.4."""

from __future__ import annotations

import pytest
from tornado.httpclient import HTTPResponse

from tests.support.http.driver import EMAIL, NAME, Service, bearer_challenge, json_of, send
from tests.support.lists.offenders import each


async def userinfo(service: Service, *authorization: str, method: str = "GET") -> HTTPResponse:
    """A userinfo request with this Authorization header, if any."""
    headers = {"Authorization": authorization[0]} if authorization else {}
    return await send(f"{service.base_url}/api/oauth/userinfo", method, headers=headers)


@pytest.mark.gen_test
@pytest.mark.spec("1")
@pytest.mark.spec("2.3")
@pytest.mark.spec("4.4")
@pytest.mark.spec("8.2")
async def test_userinfo_identifies_the_person(service: Service) -> None:
    tokens = await service.tokens()
    for method in ("GET", "POST"):
        response = await userinfo(service, f"Bearer {tokens['access_token']}", method=method)
        assert response.code == 200
        assert response.headers["Content-Type"] == "application/json"
        person = json_of(response)
        assert person.pop("picture").startswith(f"{service.base_url}/picture/")
        assert person == {"sub": service.ada, "email": EMAIL, "email_verified": True, "name": NAME}
        assert {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} <= set(response.headers)
    head = await userinfo(service, f"Bearer {tokens['access_token']}", method="HEAD")
    assert head.code == 200
    assert head.body == b""


@pytest.mark.gen_test
@pytest.mark.spec("2.3")
async def test_sub_is_the_same_for_every_app_and_differs_between_people(service: Service) -> None:
    browser = await service.signed_in()
    subs = {
        json_of(await app.userinfo((await service.tokens(app, browser))["access_token"]))["sub"]
        for app in (service.web, service.native, service.web)
    }
    assert subs == {service.ada}
    bob = await service.add_person("bob@example.com")
    tokens = await service.tokens(browser=await service.signed_in("bob@example.com"))
    assert json_of(await service.web.userinfo(tokens["access_token"]))["sub"] == bob != service.ada


@pytest.mark.gen_test
@pytest.mark.openid("core 5.1 email")
@pytest.mark.trap(34)
async def test_an_unconfirmed_address_is_reported_as_unverified(service: Service) -> None:
    browser = service.browser()
    page = await browser.get("/signup")
    await browser.submit(page, "/signup", email="victim@example.com", name="Mallory", password="correct horse battery")
    tokens = await service.tokens(browser=browser)
    userinfo = json_of(await service.web.userinfo(tokens["access_token"]))
    assert userinfo["email"] == "victim@example.com"
    assert userinfo["email_verified"] is False
    assert b"Not confirmed" in (await browser.get("/account")).body


@pytest.mark.fapi("5.3.4-3 validity")
@pytest.mark.gen_test
@pytest.mark.spec("5.4")
@pytest.mark.spec("7")
@pytest.mark.trap(21)
@each(
    "authorization",
    [
        pytest.param("Bearer lk_at_invented", id="an invented token"),
        pytest.param("Bearer " + "x" * 30_000, id="an endless token"),
        pytest.param("Bearer TOKEN.", id="a character more"),
        pytest.param("Bearer TOKEN TOKEN", id="the token twice"),
        pytest.param("Bearer", id="no token"),
        pytest.param("Bearer \u00e9\u00e9\u00e9", id="letters beyond ASCII"),
        pytest.param("TOKEN", id="no scheme"),
        pytest.param("Basic d2ViLWFwcDp4", id="another scheme"),
        pytest.param("bearerTOKEN", id="no space"),
        pytest.param('Bearer "TOKEN"', id="in quotes"),
    ],
)
async def test_a_wrong_token_is_401_invalid_token(service: Service, authorization: str) -> None:
    tokens = await service.tokens()
    response = await userinfo(service, authorization.replace("TOKEN", tokens["access_token"]))
    assert response.code == 401
    assert json_of(response)["error"] == "invalid_token"
    # RFC 6750 3.1: no error for who tried no bearer token.
    tried = ['error="invalid_token"'] if authorization.partition(" ")[0] == "Bearer" else []
    assert response.headers["WWW-Authenticate"] == bearer_challenge(service.base_url, *tried)


@pytest.mark.fapi("5.3.4-2 query")
@pytest.mark.gen_test
@pytest.mark.spec("5.4")
async def test_a_missing_token_is_401_without_an_error_in_the_challenge(service: Service) -> None:
    response = await userinfo(service)
    assert response.code == 401
    assert json_of(response)["error"] == "invalid_token"
    assert response.headers["WWW-Authenticate"] == bearer_challenge(service.base_url)  # RFC 6750 3.1
    tokens = await service.tokens()
    for query in (f"access_token={tokens['access_token']}", f"token={tokens['access_token']}"):
        response = await send(f"{service.base_url}/api/oauth/userinfo?{query}")
        assert response.code == 401
    body = {"access_token": tokens["access_token"]}
    assert (await send(f"{service.base_url}/api/oauth/userinfo", "POST", form=body)).code == 401


@pytest.mark.gen_test
@pytest.mark.openid("core 5.3 bearer")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_bearer_scheme_is_case_insensitive(service: Service, scheme: str) -> None:
    tokens = await service.tokens()
    assert (await userinfo(service, f"{scheme} {tokens['access_token']}")).code == 200


@pytest.mark.fapi("5.3.4-4 sufficient")
@pytest.mark.gen_test
@pytest.mark.spec("5.4")
@pytest.mark.spec("2.4")
@pytest.mark.spec("7")
async def test_a_token_without_the_scope_is_403_insufficient_scope(service: Service) -> None:
    tokens = await service.tokens(scope="data:read credits:read apps:read")
    response = await userinfo(service, f"Bearer {tokens['access_token']}")
    assert response.code == 403
    assert json_of(response)["error"] == "insufficient_scope"
    challenge = bearer_challenge(service.base_url, 'error="insufficient_scope"', 'scope="openid profile"')
    assert response.headers["WWW-Authenticate"] == challenge


@pytest.mark.gen_test
async def test_a_deregistered_scope_is_gone_from_existing_tokens(service: Service) -> None:
    tokens = await service.tokens()
    await service.store.apps.update("web-app", scopes=("data:read", "data:write"))
    assert (await service.web.userinfo(tokens["access_token"])).code == 403
    assert json_of(await service.web.refresh(tokens["refresh_token"]))["scope"] == "data:read data:write"
