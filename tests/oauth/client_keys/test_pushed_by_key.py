"""Pushed requests: how the app proves itself for them, and what became of the app until the browser comes. RFC 9126."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from store import keys
from tests.oauth.pushed.test_pushed import at as pushed_at
from tests.oauth.pushed.test_pushed import is_over, parameters, push
from tests.support.http.driver import CALLBACK, Service, answer_of, json_of, send
from tests.support.http.key_app import key_app

pytestmark = pytest.mark.gen_test(timeout=30)
PAR = "/api/oauth/par"


@pytest.mark.rfc("9126 2 audience")
async def test_an_assertion_may_name_the_issuer_or_either_endpoint(service: Service) -> None:
    app = await key_app(service)
    for audience in ("", "/api/oauth/token", PAR):
        proof = app.proof(app.assertion(aud=f"{app.base_url}{audience}"))
        assert (await app.post("par", **parameters(app), **proof)).code == 201, audience
    other = app.proof(app.assertion(aud=f"{app.base_url}/api/oauth/introspect"))
    refused = await app.post("par", **parameters(app), **other)
    assert (refused.code, json_of(refused)["error"]) == (401, "invalid_client")


@pytest.mark.rfc("9126 2.1 germane")
async def test_what_proves_the_app_is_no_part_of_the_request(service: Service) -> None:
    keyed = await key_app(service)
    proof = keyed.proof()
    by_key = await keyed.post("par", **parameters(keyed), **proof, grant_type="authorization_code")
    by_secret = await push(service.web, grant_type="client_credentials")
    assert (by_key.code, by_secret.code) == (201, 201)
    for app, secret in ((keyed, proof["client_assertion"]), (service.web, service.web.secret)):
        rows: Any = [key async for key in service.store.client.scan_iter(keys.pushed(app.client_id, "*")["pushed"])]
        assert len(rows) == 1
        kept: Any = await service.store.client.hgetall(rows[0])
        assert b"redirect_uri" in kept[b"params"]
        assert [name for name, value in kept.items() if str(secret).encode() in value] == []
        assert b"client_assertion" not in kept[b"params"]
        assert b"client_secret" not in kept[b"params"]
    answer = answer_of(await (await service.signed_in()).consent(pushed_at(keyed, json_of(by_key)["request_uri"])))
    assert (await keyed.exchange(answer["code"])).code == 200


@pytest.mark.rfc("9126 4 validate")
@pytest.mark.rfc("9126 7.4 policy")
async def test_the_registration_counts_as_it_is_when_the_browser_comes(service: Service) -> None:
    browser, store = await service.signed_in(), service.store
    urls = [pushed_at(service.web, json_of(await push(service.web))["request_uri"]) for _ in range(3)]
    app = await store.apps.find("web-app")
    assert app is not None
    await store.apps.update("web-app", scopes=("profile",))
    assert answer_of(await browser.get(urls[0]))["error"] == "invalid_scope"
    await store.apps.update("web-app", scopes=app.scopes, redirect_uris=("https://app.example/other",))
    page = await browser.get(urls[1])
    assert (page.code, "Location" in page.headers) == (400, False)
    await store.apps.update("web-app", redirect_uris=(CALLBACK,), status="disabled")
    page = await browser.get(urls[2])
    assert (page.code, "Location" in page.headers) == (400, False)
    await store.apps.update("web-app", status="active")
    assert await is_over(browser, urls[0])


@pytest.mark.rfc("9126 2 authentication")
async def test_a_public_app_may_push_and_another_may_not_be_named(service: Service) -> None:
    form = {**parameters(service.web), "client_id": service.native.client_id}
    refused = await send(f"{service.base_url}{PAR}", "POST", body=urlencode(form))
    assert (refused.code, json_of(refused)["error"]) == (400, "invalid_request"), "the redirect URI is the other's"
    refused = await send(f"{service.base_url}{PAR}", "POST", form=parameters(service.web))
    assert (refused.code, json_of(refused)["error"]) == (401, "invalid_client")
