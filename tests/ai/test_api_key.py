"""Access tokens in `X-Api-Key`, for clients of the Messages API that send no `Authorization`."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from tests.support.http.dpop_app import bound
from tests.support.http.driver import Service, bearer_challenge, json_of, send, send_raw
from tests.support.http.upstream import KEY, ScriptedUpstream
from tests.support.store.ai_spender import NATIVE, SDK, Spender, mint, question

pytestmark = pytest.mark.gen_test(timeout=20)

COUNT, MODELS, ONE = f"{SDK}/count_tokens", "/api/v1/ai/v1/models", "/api/v1/ai/v1/models/scripted"
CALLS = ((NATIVE, True), (SDK, True), (COUNT, True), (MODELS, False), (ONE, False), ("/api/v1/ai/models", False))
"""The addresses below /api/v1/ai/, and whether they take a body."""


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


async def call(service: Service, path: str, body: dict[str, Any] | None = None, **headers: str) -> HTTPResponse:
    """A call with these headers; underscores become hyphens."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is None:
        return await send(service.base_url + path, headers=sent)
    sent["Content-Type"] = "application/json"
    return await send(service.base_url + path, "POST", body=json.dumps(body), headers=sent)


async def test_a_token_in_the_api_key_works_below_ai_only(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for path, posts in CALLS:
        answer = await call(service, path, question() if posts else None, X_Api_Key=spender.token)
        assert answer.code == 200, path
    for sent in upstream.calls:
        assert sent.request.headers["X-Api-Key"] == KEY, "the operator's, never the app's"
        assert spender.token not in str(dict(sent.request.headers.get_all()))
    assert len(await spender.charged()) == 2
    for path in ("/api/v1/credits/balance", "/api/v1/apps", "/api/oauth/userinfo", "/api/v1/data/notes"):
        assert (await call(service, path, X_Api_Key=spender.token)).code == 401, path


async def test_a_dead_token_in_the_api_key_is_told_so(service: Service) -> None:
    answer = await call(service, SDK, question(), X_Api_Key="lk_at_invented")
    assert (answer.code, json_of(answer)["error"]["type"]) == (401, "authentication_error")
    assert answer.headers["WWW-Authenticate"] == bearer_challenge(service.base_url, 'error="invalid_token"')


async def test_another_api_key_is_ignored_and_never_logged_or_forwarded(
    service: Service, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    spender = await Spender.make(service)
    other = await mint(service, service.web, "profile")
    foreign = "sk-ant-of-the-app-itself"
    tokens = ("", "Bearer", "Basic YTpi")
    for key in (foreign, f" {spender.token[1:]}", f"Bearer {spender.token}", spender.token.upper()):
        assert (await call(service, SDK, question(), X_Api_Key=key)).code == 401
        assert (
            await call(service, SDK, question(), X_Api_Key=key, Authorization=f"Bearer {spender.token}")
        ).code == 200
    # With an Authorization, however wrong, nothing else counts.
    for sent in (*tokens, "Bearer sk-wrong"):
        assert (await call(service, SDK, question(), X_Api_Key=spender.token, Authorization=sent)).code == 401
    narrow = await call(service, SDK, question(), X_Api_Key=spender.token, Authorization=f"Bearer {other}")
    assert narrow.code == 403
    text = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert foreign not in text
    assert spender.token not in text
    assert len(upstream.calls) == 4
    assert all(foreign not in str(dict(one.request.headers.get_all())) for one in upstream.calls)


async def test_two_api_keys_are_none(service: Service) -> None:
    spender = await Spender.make(service)
    line = f"X-Api-Key: {spender.token}\r\n"
    for headers, expected in ((line, 200), (line * 2, 401)):
        status, _ = await send_raw(service.base_url, f"GET {MODELS} HTTP/1.1\r\n{headers}".encode())
        assert status == expected


@pytest.mark.trap(54)
async def test_a_bound_token_is_refused_in_the_api_key(service: Service, upstream: ScriptedUpstream) -> None:
    _, tokens = await bound(service)
    answer = await call(service, MODELS, X_Api_Key=tokens["access_token"], Anthropic_Version="2023-06-01")
    assert (answer.code, json_of(answer)["error"]["type"]) == (401, "authentication_error")
    spender = replace(await Spender.make(service), token=tokens["access_token"])
    assert (await call(service, SDK, question(), X_Api_Key=spender.token)).code == 401
    assert upstream.calls == []


async def test_browsers_may_send_the_api_key_to_ai_calls_alone(service: Service) -> None:
    for path, names_it in ((SDK, True), (MODELS, True), ("/api/v1/credits/balance", False)):
        preflight = await send(service.base_url + path, "OPTIONS", headers={"Origin": "https://app.example"})
        allowed = preflight.headers["Access-Control-Allow-Headers"].lower().split(", ")
        assert ("x-api-key" in allowed) == names_it, path


async def test_the_openapi_document_names_the_api_key(service: Service) -> None:
    document = json_of(await send(f"{service.base_url}/openapi.json"))
    assert document["components"]["securitySchemes"]["apiKey"]["name"] == "X-Api-Key"
    for path, item in document["paths"].items():
        for method, operation in item.items():
            offered = {"apiKey": []} in operation.get("security", [])
            assert offered == path.startswith("/api/v1/ai/"), (method, path)
