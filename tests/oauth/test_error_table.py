"""Section 7 of the specification, row by row, over HTTP: the cause, the status, the code and the body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.errors import CATALOGUE
from store import keys
from store.lifetimes import OAUTH
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.store.windows import full
from tests.support.store.world import every_key

Cause = Callable[[Service], Awaitable[HTTPResponse]]


async def _missing(service: Service) -> HTTPResponse:
    return await service.web.token(grant_type="authorization_code")


async def _malformed(service: Service) -> HTTPResponse:
    return await service.web.exchange(await service.code(), code_verifier="short")


async def _expired(service: Service) -> HTTPResponse:
    code = await service.code()
    for key in await every_key(service.store.client, f"*:{service.ada}:code:*"):
        await service.store.client.pexpire(key, 0)
    return await service.web.exchange(code)


async def _replayed(service: Service) -> HTTPResponse:
    code = await service.code()
    assert (await service.web.exchange(code)).code == 200
    return await service.web.exchange(code)


async def _mismatch(service: Service) -> HTTPResponse:
    return await service.web.exchange(await service.code(), redirect_uri="https://app.example/other")


async def _unregistered_scope(service: Service) -> HTTPResponse:
    tokens = await service.tokens(scope="profile")
    return await service.web.refresh(tokens["refresh_token"], scope="data:read")


async def _wrong_secret(service: Service) -> HTTPResponse:
    return await service.web.exchange("any", client_secret="wrong")


async def _wrong_token(service: Service) -> HTTPResponse:
    return await service.web.userinfo("wrong")


async def _revoked(service: Service) -> HTTPResponse:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    page = await browser.get("/account/apps")
    assert (await browser.submit(page, f"/account/apps/{service.web.client_id}/revoke")).code == 303
    return await service.web.userinfo(tokens["access_token"])


async def _narrow(service: Service) -> HTTPResponse:
    return await service.web.userinfo((await service.tokens(scope="data:read"))["access_token"])


async def _too_many(service: Service) -> HTTPResponse:
    token = (await service.tokens())["access_token"]
    await service.store.client.set(keys.limit(service.ada, OAUTH.name), full(OAUTH.limit))
    return await service.web.userinfo(token)


ROWS = [
    pytest.param(_missing, 400, "invalid_request", marks=pytest.mark.spec("7.invalid_request"), id="missing"),
    pytest.param(_malformed, 400, "invalid_request", marks=pytest.mark.spec("7.invalid_request"), id="malformed"),
    pytest.param(_expired, 400, "invalid_grant", marks=pytest.mark.spec("7.invalid_grant"), id="code expired"),
    pytest.param(_replayed, 400, "invalid_grant", marks=pytest.mark.spec("7.invalid_grant"), id="code replayed"),
    pytest.param(_mismatch, 400, "invalid_grant", marks=pytest.mark.spec("7.invalid_grant"), id="redirect_uri differs"),
    pytest.param(
        _unregistered_scope, 400, "invalid_scope", marks=pytest.mark.spec("7.invalid_scope"), id="scope not granted"
    ),
    pytest.param(_wrong_secret, 401, "invalid_client", marks=pytest.mark.spec("7.invalid_client"), id="wrong secret"),
    pytest.param(_wrong_token, 401, "invalid_token", marks=pytest.mark.spec("7.invalid_token"), id="wrong token"),
    pytest.param(_revoked, 401, "invalid_token", marks=pytest.mark.spec("7.invalid_token"), id="app disconnected"),
    pytest.param(
        _narrow, 403, "insufficient_scope", marks=pytest.mark.spec("7.insufficient_scope"), id="scope not carried"
    ),
    pytest.param(
        _too_many,
        429,
        "rate_limited",
        marks=[pytest.mark.spec("7.rate_limited"), pytest.mark.spec("8.1.oauth")],
        id="window full",
    ),
]


@pytest.mark.gen_test(timeout=60)
@pytest.mark.spec("2.5")
@pytest.mark.parametrize(("cause", "status", "code"), ROWS)
async def test_a_cause_has_its_status_and_code(service: Service, cause: Cause, status: int, code: str) -> None:
    response = await cause(service)
    body = json_of(response)
    assert (response.code, body["error"]) == (status, code)
    assert body["error_description"]
    assert CATALOGUE[code].status == status
    assert set(body) == {"error", "error_description", *(["retryAfter"] if status == 429 else [])}
    if status == 429:
        assert type(body["retryAfter"]) is int
        assert response.headers["Retry-After"] == str(body["retryAfter"])


@pytest.mark.gen_test
@pytest.mark.spec("7.invalid_scope")
async def test_a_scope_the_app_did_not_register_is_refused_with_a_redirect(service: Service) -> None:
    app = await service.add_app("narrow-app", scopes=("profile",))
    browser = await service.signed_in()
    response = await browser.get(app.authorize_url(scope="profile data:read"))
    assert answer_of(response)["error"] == "invalid_scope"


@pytest.mark.gen_test
async def test_an_unknown_address_answers_in_the_same_form(service: Service) -> None:
    response = await send(f"{service.base_url}/api/oauth/nothing")
    assert (response.code, json_of(response)["error"]) == (404, "not_found")
