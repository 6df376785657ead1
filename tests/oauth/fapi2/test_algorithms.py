"""With the profile `fapi2`, ES256, PS256 and EdDSA sign everything, and RS256 nothing. FAPI 2.0 5.4.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dev.fuzz.jwts import b64
from store import lifetimes, limits
from store.apps.client_keys import registered_keys
from store.clock import wall
from store.crypto.dpop import token_hash
from store.crypto.jose import algorithms
from store.crypto.jose.private import PrivateKey
from store.crypto.seal import new_id
from tests.oauth.openid.test_id_tokens import header_of
from tests.support.http.api_shop import BILLS, ORDERS, Shop, at
from tests.support.http.dpop_app import Device, error_of
from tests.support.http.driver import CALLBACK, Service, answer_of, json_of
from tests.support.http.fapi_app import SETTINGS, FapiApp
from tests.support.http.key_app import KeyApp, key_app, key_for, set_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)

ALLOWED = ("ES256", "PS256", "EdDSA")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed clients count for their address, and these tests make many from one."""
    monkeypatch.setattr(limits, "ADDRESS", replace(lifetimes.ADDRESS, limit=100_000))


def signed_as(algorithm: str, key: PrivateKey, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """A token of this algorithm with a right signature. One key of RSA signs RS256 and PS256."""
    text = f"{b64({**header, 'alg': algorithm})}.{b64(claims)}"
    return f"{text}.{b64(algorithms.sign(algorithm, key.key, text.encode()))}"


def assertion(app: KeyApp, algorithm: str) -> str:
    return signed_as(algorithm, app.key, {"kid": app.key.kid}, app.claims())


def request_object(app: KeyApp, algorithm: str) -> str:
    claims = {"iss": app.client_id, "aud": app.base_url, "response_type": "code", "client_id": app.client_id}
    asked = {"redirect_uri": CALLBACK, "scope": "openid", "code_challenge": "x" * 43, "code_challenge_method": "S256"}
    return signed_as(algorithm, app.key, {"kid": app.key.kid}, {**claims, **asked})


def dpop(algorithm: str, url: str, method: str = "POST", token: str = "") -> str:
    """A DPoP proof of this algorithm, for a request without a token or with one."""
    key = key_for("EdDSA" if algorithm == "Ed25519" else algorithm)
    claims = {"jti": new_id(), "htm": method, "htu": url, "iat": int(wall.time())}
    ath = {"ath": token_hash(token)} if token else {}
    return signed_as(algorithm, key, {"typ": "dpop+jwt", "jwk": key.public.to_jwk()}, {**claims, **ath})


@pytest.mark.fapi("5.4.1-1.2 algorithms")
@each("algorithm", [*ALLOWED, "RS256"])
async def test_assertions_and_signed_requests(service: Service, algorithm: str) -> None:
    app = await FapiApp.of(service, key=key_for(algorithm))
    allowed = algorithm in ALLOWED
    good = app.key.proof(assertion(app.key, "PS256" if algorithm == "RS256" else algorithm))
    for endpoint in ("par", "token", "introspect", "revoke"):
        form = {"token": "any", "grant_type": "refresh_token", "refresh_token": "lk_rt_x"}
        answer = await app.post(endpoint, {**form, **app.key.proof(assertion(app.key, algorithm))})
        assert (error_of(answer) == (401, "invalid_client")) != allowed, endpoint
        if not allowed:
            said = "The assertion is refused: alg is PS256, ES256, EdDSA or Ed25519."
            assert json_of(answer)["error_description"] == said
    answer = await app.post("par", {**good, "request": request_object(app.key, algorithm)})
    assert error_of(answer) == ((201, "") if allowed else (400, "invalid_request_object"))


@pytest.mark.fapi("5.4.1-1.2 algorithms")
@each("algorithm", [*ALLOWED, "Ed25519", "RS256"])
async def test_proofs(service: Service, algorithm: str) -> None:
    app, base = await FapiApp.of(service), service.base_url
    allowed = algorithm != "RS256"
    pushed = await app.push(dpop=dpop(algorithm, f"{base}/api/oauth/par"))
    assert pushed.code == (201 if allowed else 400)
    code = await app.code(service)
    exchanged = await app.exchange(code, dpop=dpop(algorithm, f"{base}/api/oauth/token"))
    if not allowed:
        for answer in (pushed, exchanged):
            assert error_of(answer) == (400, "invalid_dpop_proof")
            said = json_of(answer)["error_description"]
            assert said == "alg of the DPoP proof is ES256, PS256, EdDSA or Ed25519."
        # One key of RSA signs both, so the token is bound to the key of the refused proofs.
        exchanged = await app.exchange(code, dpop=dpop("PS256", f"{base}/api/oauth/token"))
    token, url = json_of(exchanged)["access_token"], f"{base}/api/oauth/userinfo"
    called = await app.call(token, proof=dpop(algorithm, url, "GET", token))
    assert called.code == (200 if allowed else 401)
    if not allowed:
        # RFC 9449 7.1: what the app may sign with, not what other apps may.
        assert 'algs="ES256 PS256 EdDSA Ed25519"' in called.headers["WWW-Authenticate"]


@pytest.mark.fapi("5.4.1-1.3 none")
async def test_none_signs_nothing(service: Service) -> None:
    app = await FapiApp.of(service)
    for algorithm in ("none", "None", "HS256"):
        unsigned = f"{b64({'alg': algorithm, 'kid': app.key.key.kid})}.{b64(app.key.claims())}."
        for text in (unsigned, unsigned + b64("x" * 32)):
            assert error_of(await app.push(proof=app.key.proof(text))) == (401, "invalid_client")
            pushed = await app.push_object(text)
            assert error_of(pushed) == (400, "invalid_request_object")
            assert error_of(await app.push(dpop=text)) == (400, "invalid_dpop_proof")


async def test_other_apps_still_sign_with_rs256(service: Service) -> None:
    app = await key_app(service, algorithm="RS256")
    assert (await app.post("revoke", token="any", **app.proof())).code == 200


# What the server signs


@each("algorithm", ["ES256", "EdDSA"])
async def test_id_tokens_are_signed_with_the_algorithm_of_the_app(service: Service, algorithm: str) -> None:
    app = await FapiApp.of(service, id_token_alg=algorithm)
    assert header_of((await app.tokens(service))["id_token"])["alg"] == algorithm


async def test_an_id_token_signed_with_rs256_is_no_hint(service: Service) -> None:
    before = await service.add_app("bank", scopes=("openid", "profile"))
    browser = await service.signed_in()
    hint = (await service.tokens(before, browser, scope="openid"))["id_token"]
    assert header_of(hint)["alg"] == "RS256"
    app = await switched(service, "bank")
    pushed = app.address(await app.push(prompt="none", id_token_hint=hint))
    assert answer_of(await browser.get(pushed))["error"] == "invalid_request"
    page = await browser.get(f"/oauth/logout?id_token_hint={hint}")
    assert (page.code, b"Sign out?" in page.body) == (200, True), "the person decides"


async def switched(service: Service, client_id: str, **fields: Any) -> FapiApp:
    """An app that is switched to the profile."""
    key = key_for("ES256")
    changes = {"private_key_jwt": True, "secrets": (), "jwks": registered_keys(set_of(key)), **SETTINGS, **fields}
    await service.store.apps.update(client_id, profile="fapi2", **changes)
    return FapiApp(KeyApp(service.base_url, client_id, None, CALLBACK, key), Device())


@pytest.mark.fapi("5.4.1-1.2 algorithms")
async def test_an_api_that_wants_rs256_is_no_resource(service: Service) -> None:
    shop = await Shop.open(service)
    scopes = (*at(ORDERS, "read"), *at(BILLS, "read", "admin"))
    app = await FapiApp.of(service, api_scopes=scopes)

    async def for_itself() -> tuple[int, str]:
        return error_of(await app.token(grant_type="client_credentials", resource=ORDERS.identifier))

    tokens = await app.tokens(service, scope="openid read", resource=ORDERS.identifier)
    assert await for_itself() == (200, "")
    await service.store.apis.update(ORDERS.client_id, token_format="jwt", signing_alg="ES256")
    renewed = json_of(await app.refresh(tokens["refresh_token"], resource=ORDERS.identifier))
    assert header_of(renewed["access_token"])["alg"] == "ES256"
    assert await for_itself() == (200, "")
    await service.store.apis.update(ORDERS.client_id, token_format="jwt", signing_alg="RS256")
    refused = await app.refresh(renewed["refresh_token"], resource=ORDERS.identifier)
    assert error_of(refused) == (400, "invalid_target")
    assert await for_itself() == (400, "invalid_target")
    pushed = await app.push(scope="openid read", resource=ORDERS.identifier)
    assert error_of(pushed) == (400, "invalid_target")
    assert (await app.push(scope="openid read", resource=BILLS.identifier)).code == 201
    other = await service.add_app("other-shop", scopes=("openid",), api_scopes=at(ORDERS, "read"))
    token = (await service.tokens(other, scope="openid read", resource=ORDERS.identifier))["access_token"]
    assert header_of(token)["alg"] == "RS256", "for other apps nothing changes"
    assert await shop.at(ORDERS, token)
