"""Dynamic registration and its management. RFC 7591, RFC 7592."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from store.names import DEVICE_GRANT, EXCHANGE_GRANT
from store.refused import Refused
from store.wiring import Store
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.self_registered import NATIVE, post_registration, register
from tests.support.processes.engines import FakeClock

QUIET: dict[str, Any] = {"scope": None, "state": None}


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server that registers every app."""
    return Site(memory_store, base_url, dynamic_registration="open")


@pytest.mark.gen_test
@pytest.mark.rfc("7591 3 POST")
@pytest.mark.rfc("7591 3.2.1 response")
async def test_a_registered_app_gets_tokens_without_scope_and_state(service: Service) -> None:
    app = await register(service.base_url)
    redirect = await (await service.signed_in()).consent(app.authorize_url(**QUIET))
    answer = answer_of(redirect)
    assert redirect.headers["Location"].startswith("http://localhost:33418/callback?")
    assert "state" not in answer
    tokens = json_of(await app.exchange(answer["code"]))
    assert tokens["scope"] == "profile"
    fresh = json_of(await app.refresh(tokens["refresh_token"]))
    assert (await app.userinfo(fresh["access_token"])).code == 200
    assert (await app.revoke(fresh["refresh_token"], client_id=app.client_id)).code == 200
    assert (await app.userinfo(fresh["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.rfc("7591 2 defaults")
@pytest.mark.rfc("7591 2 unknown")
@pytest.mark.rfc("7591 3.2.1 expires")
async def test_what_is_left_out_has_the_defaults_of_the_rfc(service: Service) -> None:
    metadata = {"redirect_uris": ["http://127.0.0.1/cb"], "application_type": "web", "software_id": "unknown to us"}
    made = json_of(await post_registration(service.base_url, metadata))
    assert made["token_endpoint_auth_method"] == "client_secret_basic"
    assert made["client_secret_expires_at"] == 0
    assert made["client_secret"].startswith("lk_cs_")
    assert (made["client_name"], made["response_types"]) == ("127.0.0.1", ["code"])
    assert "software_id" not in made
    assert "authorization_details_types" not in made, "it may not ask for credits:spend"
    kept = await service.store.apps.find(made["client_id"])
    assert kept
    assert kept.pkce_required
    assert kept.refresh_lifetime_days == 365
    assert not kept.from_operator


@pytest.mark.gen_test
async def test_the_answer_says_what_the_app_may_use(service: Service) -> None:
    service.store.self_registered.scopes = ("profile", "credits:spend")
    asked = ["authorization_code", DEVICE_GRANT, EXCHANGE_GRANT, "password"]
    metadata = {"redirect_uris": ["http://127.0.0.1/cb"], "grant_types": asked, "authorization_details_types": ["x"]}
    made = json_of(await post_registration(service.base_url, metadata))
    assert made["grant_types"] == ["authorization_code", "refresh_token", DEVICE_GRANT, EXCHANGE_GRANT]
    assert made["authorization_details_types"] == ["credits", "llm-inference"]


_REFUSED = [
    pytest.param({"authorization_details_types": "credits"}, "invalid_client_metadata", id="details"),
    pytest.param({"redirect_uris": []}, "invalid_redirect_uri", id="none"),
    pytest.param({"redirect_uris": ["http://app.example/cb"]}, "invalid_redirect_uri", id="http"),
    pytest.param({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri", id="script"),
    pytest.param({"redirect_uris": ["https://a.example/cb"] * 21}, "invalid_redirect_uri", id="many"),
    pytest.param({"redirect_uris": "https://a.example/cb"}, "invalid_client_metadata", id="no list"),
    pytest.param({"token_endpoint_auth_method": "client_secret_jwt"}, "invalid_client_metadata", id="method"),
    pytest.param({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata", id="no keys"),
    pytest.param({"jwks": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}}, "invalid_client_metadata", id="secret key"),
    pytest.param(
        {"jwks": {"keys": []}, "jwks_uri": "https://a.example/jwks"}, "invalid_client_metadata", id="both sets"
    ),
    pytest.param({"grant_types": ["client_credentials"]}, "invalid_client_metadata", id="grant"),
    pytest.param({"response_types": ["token"]}, "invalid_client_metadata", id="response"),
    pytest.param({"application_type": "desktop"}, "invalid_client_metadata", id="type"),
    pytest.param({"client_name": "Latchkey Security"}, "invalid_client_metadata", id="our name"),
    pytest.param({"client_name": "a" * 101}, "invalid_client_metadata", id="long name"),
    pytest.param({"client_name": ["a"]}, "invalid_client_metadata", id="no text"),
    pytest.param({"dpop_bound_access_tokens": "yes"}, "invalid_client_metadata", id="no flag"),
    pytest.param({"id_token_signed_response_alg": "HS256"}, "invalid_client_metadata", id="algorithm"),
    pytest.param({"sector_identifier_uri": "https://a.example/s"}, "invalid_client_metadata", id="sector"),
    pytest.param({"contacts": ["x" * 20_000]}, "invalid_client_metadata", id="long"),
]


@pytest.mark.gen_test
@pytest.mark.rfc("7591 2 redirect_uris")
@pytest.mark.rfc("7591 2 one set")
@pytest.mark.rfc("7591 2.1 types")
@pytest.mark.rfc("7591 3.2.2 errors")
@pytest.mark.parametrize(("metadata", "error"), _REFUSED)
async def test_refused_metadata_have_the_errors_of_the_rfc(
    service: Service, metadata: dict[str, Any], error: str
) -> None:
    refused = await post_registration(service.base_url, {**NATIVE, **metadata})
    assert (refused.code, json_of(refused)["error"]) == (400, error)
    assert len(await service.store.apps.list()) == 2


@pytest.mark.gen_test
async def test_registration_is_off_unless_the_operator_switches_it_on(app: Any, service: Service) -> None:
    discovery = f"{service.base_url}/.well-known/oauth-authorization-server"
    assert json_of(await send(discovery))["registration_endpoint"] == f"{service.base_url}/api/oauth/register"
    app.site = replace(app.site, dynamic_registration="off")
    assert "registration_endpoint" not in json_of(await send(discovery))
    assert (await post_registration(service.base_url, NATIVE)).code == 404


@pytest.mark.gen_test
@pytest.mark.rfc("7591 3 initial access token")
async def test_a_registration_token_counts_for_its_uses_and_its_time(
    clock: FakeClock, app: Any, service: Service
) -> None:
    app.site = replace(app.site, dynamic_registration="token")
    tokens = service.store.initial_tokens
    now = await service.store.apps.now()
    _, once = await tokens.create(1, 0)
    _, brief = await tokens.create(None, now + 60_000)
    for token in ("", "lk_ri_invented"):
        refused = await post_registration(service.base_url, NATIVE, token)
        assert (refused.code, refused.headers["WWW-Authenticate"].partition(" ")[0]) == (401, "Bearer")
    # Refused metadata use no token up.
    assert (await post_registration(service.base_url, {"redirect_uris": []}, once)).code == 400
    await register(service.base_url, once)
    assert (await post_registration(service.base_url, NATIVE, once)).code == 401
    for _ in range(3):
        await register(service.base_url, brief)
    clock.advance(61)
    assert (await post_registration(service.base_url, NATIVE, brief)).code == 401
    assert await tokens.list() == []


@pytest.mark.gen_test
async def test_a_revoked_registration_token_registers_nothing(app: Any, service: Service) -> None:
    app.site = replace(app.site, dynamic_registration="token")
    made, token = await service.store.initial_tokens.create(None, 0, "For Bea")
    assert [one.name for one in await service.store.initial_tokens.list()] == ["For Bea"]
    await service.store.initial_tokens.revoke(made.id)
    assert (await post_registration(service.base_url, NATIVE, token)).code == 401
    with pytest.raises(Refused, match="not_found"):
        await service.store.initial_tokens.revoke(made.id)


@pytest.mark.gen_test
@pytest.mark.rfc("7592 2.1 read")
@pytest.mark.rfc("7592 3 location")
@pytest.mark.rfc("7592 5 entropy")
async def test_only_the_token_of_a_registration_reads_it(service: Service) -> None:
    app, other = await register(service.base_url), await register(service.base_url)
    read = json_of(await app.manage("GET"))
    assert read["client_id"] == app.client_id
    assert read["registration_access_token"] == app.access_token
    assert "client_secret" not in read
    for token in ("", "lk_rg_invented", other.access_token):
        refused = await app.manage("GET", token=token)
        assert (refused.code, json_of(refused)["error"]) == (401, "invalid_token")
    # An app that somebody registered has no such token, not even an empty one.
    web = replace(app, client_id="web-app", access_token="")
    assert (await web.manage("GET")).code == 401


@pytest.mark.gen_test
@pytest.mark.rfc("7592 2.2 update")
@pytest.mark.rfc("7592 2.2 server's")
async def test_a_change_of_redirect_uris_ends_remembered_consent(service: Service) -> None:
    uris = ["https://app.example/a", "https://app.example/b"]
    app = await register(service.base_url, redirect_uris=uris[:1])
    browser = await service.signed_in()
    await browser.consent(app.authorize_url(**QUIET))
    assert (await browser.get(app.authorize_url(**QUIET))).code == 303
    whole = {**NATIVE, "client_id": app.client_id, "redirect_uris": uris}
    assert (await app.manage("PUT", {**whole, "client_id": "another"})).code == 400
    assert (await app.manage("PUT", {**whole, "client_id_issued_at": 1})).code == 400
    assert (await app.manage("PUT", {**whole, "client_secret": "wrong"})).code == 400
    changed = json_of(await app.manage("PUT", whole))
    assert changed["redirect_uris"] == uris
    page = await browser.get(app.authorize_url(**QUIET))
    assert (page.code, b"decision" in page.body) == (200, True)


@pytest.mark.gen_test
@pytest.mark.rfc("7592 2.2 server's")
async def test_a_change_leaves_what_the_operator_decided(service: Service) -> None:
    app, apps = await register(service.base_url), service.store.apps
    ruled = {"second_step": True, "calls_per_minute": 5, "introspections_per_minute": 6, "spend_per_day": 7}
    await apps.update(app.client_id, allowed_groups=("staff",), refresh_lifetime_days=7, **ruled)
    assert (await app.manage("PUT", {**NATIVE, "client_id": app.client_id})).code == 200
    kept = await apps.find(app.client_id)
    assert kept is not None
    assert (kept.allowed_groups, kept.refresh_lifetime_days) == (("staff",), 7)
    assert {name: getattr(kept, name) for name in ruled} == ruled
    page = await (await service.signed_in()).get(app.authorize_url(**QUIET))
    assert "is only for members of certain groups" in page.body.decode()


@pytest.mark.gen_test
async def test_an_app_that_becomes_confidential_gets_a_secret(service: Service) -> None:
    app = await register(service.base_url, redirect_uris=["https://app.example/a"])
    whole = {**NATIVE, "client_id": app.client_id, "redirect_uris": ["https://app.example/a"]}
    made = json_of(await app.manage("PUT", {**whole, "token_endpoint_auth_method": "client_secret_post"}))
    assert made["client_secret"]
    assert made["token_endpoint_auth_method"] == "client_secret_post"
    again = json_of(await app.manage("PUT", {**whole, "token_endpoint_auth_method": "client_secret_post"}))
    assert "client_secret" not in again  # it keeps the one that it has
    app.secret = made["client_secret"]
    code = answer_of(await (await service.signed_in()).consent(app.authorize_url(**QUIET)))["code"]
    assert (await app.exchange(code, client_secret="wrong")).code == 401
    assert (await app.exchange(code)).code == 200


@pytest.mark.gen_test
@pytest.mark.rfc("7592 2.3 delete")
async def test_a_deleted_registration_ends_its_tokens(service: Service) -> None:
    app = await register(service.base_url)
    code = answer_of(await (await service.signed_in()).consent(app.authorize_url(**QUIET)))["code"]
    access = json_of(await app.exchange(code))["access_token"]
    assert (await app.manage("DELETE")).code == 204
    assert (await app.userinfo(access)).code == 401
    assert (await app.manage("GET")).code == 401
    unused = await register(service.base_url)
    assert (await unused.manage("DELETE")).code == 204
    assert await service.store.apps.find(unused.client_id) is None


@pytest.mark.gen_test
async def test_the_types_of_authorization_details_are_kept_and_shown(service: Service) -> None:
    types = ["llm-inference", "payment_initiation", "llm-inference"]
    app = await register(service.base_url, authorization_details_types=types)
    shown = json_of(await app.manage("GET"))
    assert shown["authorization_details_types"] == ["llm-inference"], "RFC 9396 10, those of this server"
    whole = {**NATIVE, "client_id": app.client_id}
    changed = json_of(await app.manage("PUT", {**whole, "authorization_details_types": ["credits"]}))
    assert changed["authorization_details_types"] == ["credits"]
    assert "authorization_details_types" not in json_of(await app.manage("PUT", whole))
    bad = await app.manage("PUT", {**whole, "authorization_details_types": "credits"})
    assert json_of(bad)["error"] == "invalid_client_metadata"
