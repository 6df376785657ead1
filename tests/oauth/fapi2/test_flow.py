"""A sign-in of an app with the profile `fapi2`, and that nothing weaker passes. FAPI 2.0 Security Profile 5.3.2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.application import Latchkey
from store import lifetimes, limits
from store.apps.registration import InvalidRegistration
from store.clock import wall
from tests.oauth.openid.test_id_tokens import header_of
from tests.support.http.dpop_app import error_of
from tests.support.http.driver import CALLBACK, Service, answer_of, json_of, send
from tests.support.http.fapi_app import FapiApp
from tests.support.http.key_app import query_pairs
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=60)

REFUSED = (401, "invalid_client")
NO_PROOF: dict[str, str] = {}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed clients count for their address, and these tests make many from one."""
    monkeypatch.setattr(limits, "ADDRESS", replace(lifetimes.ADDRESS, limit=100_000))


@pytest.mark.fapi("5.3.2.1-5 DPoP")
@pytest.mark.fapi("5.3.2.2-2 PAR")
@pytest.mark.fapi("5.3.2.2-7 iss")
@pytest.mark.fapi("5.3.2.2-12 request_uri")
@pytest.mark.fapi("5.3.2.3-1 sub")
@pytest.mark.fapi("5.3.4-1 header")
async def test_the_whole_flow(service: Service) -> None:
    app, browser = await FapiApp.of(service), await service.signed_in()
    pushed = await app.push()
    assert 0 < json_of(pushed)["expires_in"] < 600
    answer = answer_of(await browser.consent(app.address(pushed)))
    assert set(answer) == {"code", "state", "iss"}
    assert answer["iss"] == service.base_url
    tokens = json_of(await app.exchange(answer["code"]))
    assert tokens["token_type"] == "DPoP"
    assert header_of(tokens["id_token"])["alg"] == "ES256"
    claims = (await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))).claims
    assert (claims["sub"], claims["nonce"]) == (service.ada, "a-nonce")
    assert json_of(await app.call(tokens["access_token"]))["sub"] == service.ada
    told = await app.introspect(tokens["access_token"])
    assert (told["token_type"], told["cnf"]) == ("DPoP", {"jkt": app.device.jkt})
    renewed = json_of(await app.refresh(tokens["refresh_token"]))
    assert (await app.call(renewed["access_token"])).code == 200
    ended = await app.post("revoke", {"token": renewed["refresh_token"], **app.key.proof()})
    assert ended.code == 200
    assert (await app.call(renewed["access_token"])).code == 401


@pytest.mark.fapi("5.3.2.2-7 iss")
async def test_errors_have_iss_too(service: Service) -> None:
    app, browser = await FapiApp.of(service), await service.signed_in()
    denied = answer_of(await browser.consent(app.address(await app.push()), "deny"))
    assert (denied["error"], denied["iss"]) == ("access_denied", service.base_url)


# Requests


@pytest.mark.fapi("5.3.2.2-3 only PAR")
async def test_a_request_in_the_address_is_refused(service: Service) -> None:
    app, browser = await FapiApp.of(service), await service.signed_in()
    urls = [app.key.authorize_url(), app.key.signed_url(), app.key.authorize_url(prompt="none")]
    await app.answer(browser)  # nor does remembered consent help
    for url in urls:
        answer = answer_of(await browser.get(url))
        assert (answer["error"], answer["error_description"]) == (
            "invalid_request",
            "This app must push its authorization requests (PAR).",
        )
    posted = await browser.send("/oauth/authorize", "POST", form=query_pairs(urls[0]))
    assert answer_of(await browser.get(posted.headers["Location"]))["error"] == "invalid_request"


@pytest.mark.fapi("5.3.2.1-6 authentication")
@pytest.mark.fapi("5.3.2.2-4 PAR by a stranger")
@each("endpoint", ["par", "token", "introspect"])
async def test_only_an_assertion_proves_the_app(service: Service, endpoint: str) -> None:
    app = await FapiApp.of(service)
    form = {"grant_type": "refresh_token", "refresh_token": "lk_rt_x", "token": "any"}
    form |= query_pairs(app.key.authorize_url())
    for proof in (NO_PROOF, {"client_secret": "s" * 43}, {"client_secret": ""}):
        assert error_of(await app.post(endpoint, {**form, **proof})) == REFUSED
    assert error_of(await app.post(endpoint, {**form, **app.key.proof()})) != REFUSED


async def test_a_wrong_proof_ends_no_token_and_no_proof_ends_what_one_has(service: Service) -> None:
    app = await FapiApp.of(service)
    tokens = await app.tokens(service)
    form = {"token": tokens["access_token"], "client_id": app.client_id}
    assert error_of(await app.post("revoke", {**form, "client_secret": "s" * 43})) == REFUSED
    assert (await app.call(tokens["access_token"])).code == 200
    assert (await app.post("revoke", form)).code == 200, "whoever has a token may end it (SPEC 4.5)"


@pytest.mark.fapi("5.3.2.1-8 audience")
@each("endpoint", ["par", "token", "introspect", "revoke"])
async def test_the_audience_is_the_issuer_alone_as_a_string(service: Service, endpoint: str) -> None:
    app, base = await FapiApp.of(service), service.base_url
    form = {"grant_type": "refresh_token", "refresh_token": "lk_rt_x", "token": "any"}
    form |= query_pairs(app.key.authorize_url())
    token, called = f"{base}/api/oauth/token", f"{base}/api/oauth/{endpoint}"
    for audience in (token, called, [base], [base, token], [base, called], f"{base}/", [], None):
        proof = app.key.proof(app.key.assertion(aud=audience))
        refused = await app.post(endpoint, {**form, **proof})
        assert error_of(refused) == REFUSED, audience
        said = json_of(refused)["error_description"]
        assert said == "The assertion is refused: aud is the issuer alone, as a string."
    proof = app.key.proof(app.key.assertion(aud=base))
    assert error_of(await app.post(endpoint, {**form, **proof})) != REFUSED


@pytest.mark.fapi("5.3.2.2-1 response_type")
@pytest.mark.fapi("5.3.2.2-5 PKCE")
@pytest.mark.fapi("5.3.2.2-6 redirect_uri")
@each(
    ("changes", "error"),
    [
        pytest.param({"response_type": "token"}, "unsupported_response_type", id="token"),
        pytest.param({"response_type": "code id_token"}, "unsupported_response_type", id="code id_token"),
        pytest.param({"response_type": None}, "invalid_request", id="no response type"),
        pytest.param({"code_challenge": None}, "invalid_request", id="no PKCE"),
        pytest.param({"code_challenge_method": "plain"}, "invalid_request", id="plain"),
        pytest.param({"code_challenge_method": None}, "invalid_request", id="no method, so plain"),
        pytest.param({"redirect_uri": None}, "invalid_request", id="no redirect URI"),
        pytest.param({"redirect_uri": CALLBACK + "/"}, "invalid_request", id="another path"),
        pytest.param({"redirect_uri": CALLBACK + "?x"}, "invalid_request", id="a query"),
        pytest.param({"redirect_uri": "http://127.0.0.1/cb"}, "invalid_request", id="loopback"),
        pytest.param({"redirect_uri": CALLBACK.replace("https", "http")}, "invalid_request", id="http"),
        pytest.param({"nonce": "n" * 513}, "invalid_request", id="a nonce that is too long"),
    ],
)
async def test_a_weaker_request_is_refused(service: Service, changes: dict[str, Any], error: str) -> None:
    app = await FapiApp.of(service)
    assert error_of(await app.push(**changes)) == (400, error)


@pytest.mark.fapi("5.3.2.2-5 PKCE")
async def test_a_code_is_worth_nothing_without_its_verifier(service: Service) -> None:
    app = await FapiApp.of(service)
    code = await app.code(service)
    for verifier in (None, "w" * 43):
        assert error_of(await app.exchange(code, code_verifier=verifier)) == (400, "invalid_grant")
    assert (await app.exchange(code)).code == 200


@pytest.mark.fapi("5.3.2.2-14 nonce")
async def test_a_nonce_of_64_characters_works(service: Service) -> None:
    tokens = await (await FapiApp.of(service)).tokens(service, nonce="n" * 64)
    claims = (await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))).claims
    assert claims["nonce"] == "n" * 64


@pytest.mark.rfc("9101 11.1 consent")
@pytest.mark.fapi("5.3.2.2-13 consent")
async def test_the_person_sees_who_asks_and_for_what(service: Service) -> None:
    app, browser = await FapiApp.of(service), await service.signed_in()
    page = (await browser.get(app.address(await app.push(scope="openid profile data:read")))).body.decode()
    for words in ("app.example", "scope:profile", "scope:data:read"):
        assert words in page


# Tokens


@pytest.mark.fapi("5.3.2.1-2 passwords")
async def test_the_password_grant_is_refused(service: Service) -> None:
    app = await FapiApp.of(service)
    answer = await app.token(grant_type="password", username="ada@example.com", password="correct horse battery")
    assert error_of(answer) == (400, "unsupported_grant_type")


@pytest.mark.fapi("5.3.2.1-4 bound")
async def test_no_token_is_issued_without_a_proof(service: Service) -> None:
    app = await FapiApp.of(service)
    code = await app.code(service)
    assert error_of(await app.exchange(code, dpop="")) == (400, "invalid_dpop_proof")
    tokens = json_of(await app.exchange(code))
    assert error_of(await app.refresh(tokens["refresh_token"], dpop="")) == (400, "invalid_dpop_proof")
    assert json_of(await app.refresh(tokens["refresh_token"]))["token_type"] == "DPoP"


@pytest.mark.fapi("5.3.4-5 sender")
async def test_a_token_is_worth_nothing_without_its_key(service: Service) -> None:
    app, thief = await FapiApp.of(service), await FapiApp.of(service)
    token = (await app.tokens(service))["access_token"]
    assert (await app.key.userinfo(token)).code == 401
    assert (await thief.call(token)).code == 401
    assert (await app.call(token)).code == 200


@pytest.mark.fapi("5.3.2.1-9 repeat")
async def test_a_lost_refresh_is_repeated_for_a_minute(service: Service, later: Callable[[float], None]) -> None:
    app = await FapiApp.of(service)
    tokens = await app.tokens(service)
    first = json_of(await app.refresh(tokens["refresh_token"]))
    later(50)
    again = json_of(await app.refresh(tokens["refresh_token"]))
    assert again["refresh_token"] == first["refresh_token"]
    assert (await app.call(again["access_token"])).code == 200
    later(11)
    assert error_of(await app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.fapi("5.3.2.1-10 nonces")
async def test_the_server_may_demand_its_nonces(service: Service, server: Latchkey) -> None:
    server.site = replace(server.site, dpop_nonce_required=True)
    app = await FapiApp.of(service)
    code = await app.code(service)
    refused = await app.exchange(code)
    assert error_of(refused) == (400, "use_dpop_nonce")
    app.device.nonce = refused.headers["DPoP-Nonce"]
    assert (await app.call(json_of(await app.exchange(code))["access_token"])).code == 200


@pytest.mark.fapi("5.3.2.1-11 codes")
async def test_a_code_lives_for_a_minute(service: Service, clock: FakeClock) -> None:
    app = await FapiApp.of(service)
    code = await app.code(service)
    clock.advance(60.1)
    assert error_of(await app.exchange(code)) == (400, "invalid_grant")


@pytest.mark.fapi("5.3.2.2-9 once")
async def test_a_code_works_once(service: Service) -> None:
    app = await FapiApp.of(service)
    code = await app.code(service)
    tokens = json_of(await app.exchange(code))
    assert error_of(await app.exchange(code)) == (400, "invalid_grant")
    assert (await app.call(tokens["access_token"])).code == 401


@pytest.mark.fapi("5.3.2.1-12 code binding")
@pytest.mark.parametrize("by_proof", [True, False], ids=["by the proof of the push", "by dpop_jkt"])
async def test_a_code_is_bound_to_a_key(service: Service, by_proof: bool) -> None:
    app, other = await FapiApp.of(service), await FapiApp.of(service)
    bound = {"dpop": app.dpop("par")} if by_proof else {"dpop_jkt": app.device.jkt}
    code = await app.code(service, **bound)
    refused = await app.exchange(code, dpop=other.dpop())
    assert refused.code == 400
    assert (await app.exchange(code)).code == 200


@pytest.mark.fapi("5.3.2.1-14 privileges")
async def test_a_token_gets_no_more_than_was_asked(service: Service) -> None:
    app = await FapiApp.of(service)
    tokens = await app.tokens(service, scope="openid data:read")
    narrow = json_of(await app.refresh(tokens["refresh_token"], scope="openid"))
    assert (tokens["scope"], narrow["scope"]) == ("openid data:read", "openid")
    assert (await app.call(narrow["access_token"], "/api/v1/data/notes")).code == 403


# Clocks


@each("claim", ["iat", "nbf"])
@pytest.mark.fapi("5.3.2.1-13 early")
@pytest.mark.fapi("5.3.2.1-13 too early")
async def test_clocks_may_be_ten_seconds_ahead_and_not_more_than_sixty(service: Service, claim: str) -> None:
    app = await FapiApp.of(service)
    now = int(wall.time())
    for ahead, accepted in ((0, True), (10, True), (62, False), (600, False)):
        early: dict[str, Any] = {claim: now + ahead}
        long: dict[str, Any] = {**early, "exp": now + 500}
        proved = await app.push(proof=app.key.proof(app.key.assertion(**long)))
        asked = await app.push_object(app.key.request_object(scope="openid profile", **early, exp=now + 900))
        bound = await app.push(dpop=app.dpop("par", **early))
        answers = [proved.code == 201, asked.code == 201, bound.code == 201]
        assert answers == [accepted] * 3, (claim, ahead)


# The registration


@pytest.mark.fapi("5.3.2.1-3 confidential")
@pytest.mark.fapi("5.3.2.2-8 http")
@each(
    "changes",
    [
        pytest.param({"public": True, "private_key_jwt": False}, id="public"),
        pytest.param({"private_key_jwt": False}, id="a secret"),
        pytest.param({"redirect_uris": ("http://127.0.0.1/cb",)}, id="a loopback address"),
        pytest.param({"redirect_uris": ("http://localhost/cb",)}, id="localhost"),
        pytest.param({"redirect_uris": (CALLBACK, "com.example.app:/cb")}, id="a scheme of its own"),
        pytest.param({"post_logout_redirect_uris": ("http://127.0.0.1/bye",)}, id="a page after signing out"),
        pytest.param({"require_pushed": False}, id="requests in addresses"),
        pytest.param({"dpop_required": False}, id="bearer tokens"),
        pytest.param({"pkce_required": False}, id="no PKCE"),
        pytest.param({"iss_in_response": False}, id="no iss"),
        pytest.param({"refresh_retry_seconds": 59}, id="a shorter retry"),
        pytest.param({"id_token_alg": "RS256"}, id="RS256"),
        pytest.param({"jwks": ""}, id="no keys"),
        pytest.param({"profile": "fapi1"}, id="an unknown profile"),
    ],
)
async def test_nothing_weaker_is_registered(service: Service, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRegistration, match="profile"):
        await FapiApp.of(service, "refused-app", **changes)
    app = await FapiApp.of(service)
    with pytest.raises(InvalidRegistration, match="profile"):
        await service.store.apps.update(app.client_id, **changes)


@pytest.mark.fapi("5.2.1-1 connections")
@each("name", ["jwks_uri", "webhook_url", "backchannel_logout_uri"])
async def test_the_server_calls_the_app_over_tls_alone(service: Service, name: str) -> None:
    app = await FapiApp.of(service)
    keys = {"jwks": ""} if name == "jwks_uri" else {}
    with pytest.raises(InvalidRegistration, match="begins with https://"):
        await service.store.apps.update(app.client_id, **{**keys, name: "http://127.0.0.1:9/"})
    changed = await service.store.apps.update(app.client_id, **{**keys, name: "https://app.example/"})
    assert changed.profile == "fapi2"


async def test_the_metadata_has_what_the_profile_needs(service: Service) -> None:
    found = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    assert {"ES256", "EdDSA"} <= {*found["id_token_signing_alg_values_supported"]}
    for name in ("token_endpoint_auth_signing_alg", "request_object_signing_alg", "dpop_signing_alg"):
        assert {"ES256", "PS256", "EdDSA"} <= {*found[f"{name}_values_supported"]}
