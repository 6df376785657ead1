"""`private_key_jwt`: an app proves itself with its key, and in no other way. RFC 7523, RFC 7521."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from tornado.httpclient import HTTPResponse

from dev.fuzz.jwts import b64, signed, wrong_jwts
from store import keys, lifetimes, limits
from store.apps.client_keys import InvalidKeys, registered_keys
from store.apps.registration import InvalidRegistration, Registration
from store.clock import wall
from store.crypto.jose import algorithms
from store.crypto.jose.private import PrivateKey
from store.lifetimes import ASSERTION
from store.refused import Refused
from tests.support.http.driver import CALLBACK, Service, json_of, send
from tests.support.http.key_app import key_app, key_for, set_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=30)


def error_of(response: HTTPResponse) -> tuple[int, str]:
    """Status and error code."""
    return response.code, json_of(response)["error"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed clients count for their address, and these tests make more than a hundred from one."""
    monkeypatch.setattr(limits, "ADDRESS", replace(lifetimes.ADDRESS, limit=100_000))


def ps256(key: PrivateKey, header: dict[str, Any], claims: dict[str, Any]) -> str:
    """A token that an RSA key signed with PS256."""
    text = f"{b64(header)}.{b64(claims)}"
    return f"{text}.{b64(algorithms.sign('PS256', key.key, text.encode()))}"


@pytest.mark.rfc("7523 5 RS256")
@each("algorithm", ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"])
async def test_each_algorithm_proves_an_app_at_every_endpoint(service: Service, algorithm: str) -> None:
    app = await key_app(service, algorithm="EdDSA" if algorithm == "Ed25519" else algorithm)

    def proof() -> dict[str, str]:
        if algorithm == "PS256":
            return app.proof(ps256(app.key, {"alg": "PS256", "kid": app.key.kid}, app.claims()))
        return app.proof(app.assertion({"alg": algorithm}))

    code = await service.code(app)
    tokens = json_of(await app.exchange(code, **proof()))
    live = await app.post("introspect", token=tokens["access_token"], **proof())
    assert json_of(live)["client_id"] == app.client_id
    renewed = json_of(await app.refresh(tokens["refresh_token"], **proof()))
    assert (await app.post("revoke", token=renewed["refresh_token"], **proof())).code == 200
    assert (await app.userinfo(renewed["access_token"])).code == 401


async def test_the_assertion_alone_names_the_app(service: Service) -> None:
    app = await key_app(service)
    code = await service.code(app)
    assert (await app.exchange(code, client_id=None)).code == 200
    other = await app.exchange(await service.code(app), client_id="web-app")
    assert error_of(other) == (401, "invalid_client")


@pytest.mark.rfc("7523 3-3 token endpoint")
@each(
    "audience",
    [
        pytest.param(lambda base, called: base, id="the issuer"),
        pytest.param(lambda base, called: f"{base}/api/oauth/token", id="the token endpoint"),
        pytest.param(lambda base, called: called, id="the endpoint that is called"),
        pytest.param(lambda base, called: [base], id="a list of one"),
        pytest.param(lambda base, called: [base, f"{base}/api/oauth/token"], id="a list of ours"),
    ],
)
async def test_an_assertion_may_name_the_issuer_or_an_endpoint(service: Service, audience: Any) -> None:
    app = await key_app(service)
    for endpoint in ("introspect", "revoke"):
        aud = audience(service.base_url, f"{service.base_url}/api/oauth/{endpoint}")
        assert (await app.post(endpoint, token="any", **app.proof(app.assertion(aud=aud)))).code == 200


@pytest.mark.rfc("7523 3-1 iss")
@pytest.mark.rfc("7523 3-2 sub")
@pytest.mark.rfc("7523 3-3 aud")
@pytest.mark.rfc("7523 3-4 exp")
@pytest.mark.rfc("7523 3-4 far")
@pytest.mark.rfc("7523 3-5 nbf")
@pytest.mark.rfc("7523 3.2 invalid_client")
@pytest.mark.trap(55)
@each(
    "changes",
    [
        pytest.param({"aud": None}, id="no audience"),
        pytest.param({"aud": "https://other.example"}, id="another server"),
        pytest.param({"aud": "BASE/"}, id="the issuer with a slash"),
        pytest.param({"aud": ["BASE", "https://other.example"]}, id="another server too"),
        pytest.param({"aud": "BASE/api/oauth/introspect"}, id="another endpoint"),
        pytest.param({"aud": []}, id="an empty list"),
        pytest.param({"aud": {"a": 1}}, id="an object"),
        pytest.param({"iss": "web-app"}, id="another issuer"),
        pytest.param({"iss": None}, id="no issuer"),
        pytest.param({"sub": "web-app"}, id="another subject"),
        pytest.param({"sub": None}, id="no subject"),
        pytest.param({"exp": None}, id="no end"),
        pytest.param({"exp": -60}, id="an end in the past"),
        pytest.param({"exp": 660}, id="an end in eleven minutes"),
        pytest.param({"exp": 3.2e9}, id="an end in a century"),
        pytest.param({"nbf": 120}, id="a beginning in the future"),
        pytest.param({"iat": 120}, id="a birth in the future"),
        pytest.param({"jti": None}, id="no jti"),
        pytest.param({"jti": ""}, id="an empty jti"),
        pytest.param({"jti": 5}, id="a number as jti"),
        pytest.param({"jti": "j" * 257}, id="a long jti"),
    ],
)
async def test_wrong_claims_are_refused(service: Service, changes: dict[str, Any]) -> None:
    app = await key_app(service)
    now = int(wall.time())
    made = {name: at(service.base_url, now, name, value) for name, value in changes.items()}
    response = await app.post("revoke", token="any", **app.proof(app.assertion(**made)))
    assert error_of(response) == (401, "invalid_client")


def at(base_url: str, now: int, name: str, value: Any) -> Any:
    """A claim of the table: dates are from now on, `BASE` is the issuer."""
    if name in ("exp", "nbf", "iat") and value is not None:
        return now + value
    if isinstance(value, list):
        return [at(base_url, now, name, one) for one in value]
    return value.replace("BASE", base_url) if isinstance(value, str) else value


async def test_a_refused_assertion_uses_up_no_code(service: Service) -> None:
    app = await key_app(service)
    code = await service.code(app)
    response = await app.exchange(code, **app.proof(app.assertion(aud="https://other.example")))
    assert error_of(response) == (401, "invalid_client")
    assert (await app.exchange(code)).code == 200


@pytest.mark.rfc("7523 3-6 iat")
async def test_an_assertion_without_a_birth_that_lasts_ten_minutes_works(service: Service) -> None:
    app = await key_app(service)
    long = app.assertion(iat=None, exp=int(wall.time()) + 600)
    assert (await app.post("revoke", token="any", **app.proof(long))).code == 200


@pytest.mark.rfc("7523 3-9 signature")
@pytest.mark.rfc("7523 3-10 valid")
@pytest.mark.trap(39)
@pytest.mark.trap(44)
@each("algorithm", ["ES256", "RS256", "EdDSA"])
async def test_every_wrong_kind_of_token_is_refused(service: Service, algorithm: str) -> None:
    app = await key_app(service, algorithm=algorithm)
    header = {"typ": "JWT", "alg": app.key.algorithm, "kid": app.key.kid}
    for what, text in wrong_jwts(app.key, header, app.claims()).items():
        if not text:
            continue
        response = await app.post("revoke", token="any", **app.proof(text))
        whole = len(text) < 65_000
        assert error_of(response) == ((401, "invalid_client") if whole else (413, "invalid_request")), what
    assert (await app.post("revoke", token="any", **app.proof())).code == 200


@pytest.mark.rfc("7523 2.2 one")
@pytest.mark.rfc("7523 3-8 others")
async def test_an_assertion_is_one_token_with_any_other_claims(service: Service) -> None:
    app = await key_app(service)
    two = f"{app.assertion()} {app.assertion()}"
    assert error_of(await app.post("revoke", token="any", **app.proof(two))) == (401, "invalid_client")
    body = urlencode([("token", "any"), *app.proof().items(), ("client_assertion", app.assertion())])
    assert error_of(await send(f"{app.base_url}/api/oauth/revoke", "POST", body=body)) == (400, "invalid_request")
    more = app.proof(app.assertion(email="ada@example.com", scope=["profile"], version=2))
    assert (await app.post("revoke", token="any", **more)).code == 200


async def test_a_token_for_another_use_is_no_assertion(service: Service) -> None:
    app = await key_app(service)
    for typ in ("oauth-authz-req+jwt", "dpop+jwt", "at+jwt", "logout+jwt"):
        response = await app.post("revoke", token="any", **app.proof(app.assertion({"typ": typ})))
        assert error_of(response) == (401, "invalid_client"), typ
    typed = app.assertion({"typ": "client-authentication+jwt"})
    assert (await app.post("revoke", token="any", **app.proof(typed))).code == 200


@pytest.mark.rfc("7523 3-9 signature")
async def test_another_app_s_key_proves_nothing(service: Service) -> None:
    app = await key_app(service)
    other = await key_app(service, key=key_for("ES256", 1))
    forged = signed(other.key, {"alg": "ES256"}, app.claims())
    assert error_of(await app.post("revoke", token="any", **app.proof(forged))) == (401, "invalid_client")
    named = signed(other.key, {"alg": "ES256", "kid": app.key.kid}, app.claims())
    assert error_of(await app.post("revoke", token="any", **app.proof(named))) == (401, "invalid_client")


@each("endpoint", ["token", "revoke", "introspect"])
async def test_an_app_with_a_key_cannot_use_another_method(service: Service, endpoint: str) -> None:
    app = await key_app(service)
    form = {"grant_type": "refresh_token", "refresh_token": "lk_rt_x", "token": "any", "client_id": app.client_id}
    basic = {"Authorization": "Basic " + base64.b64encode(f"{app.client_id}:secret".encode()).decode()}
    url = f"{service.base_url}/api/oauth/{endpoint}"
    for secret, headers in (("a-secret", None), (None, basic), ("lk_cs_" + "x" * 43, None)):
        fields = {**form, **({"client_secret": secret} if secret else {})}
        assert error_of(await send(url, "POST", form=fields, headers=headers)) == (401, "invalid_client")
    if endpoint != "revoke":  # whoever has a token may end it
        assert error_of(await send(url, "POST", form=form)) == (401, "invalid_client")


async def test_no_secret_can_be_made_for_an_app_with_a_key(service: Service) -> None:
    app = await key_app(service)
    with pytest.raises(Refused):
        await service.store.apps.rotate_secret(app.client_id)
    jwks = registered_keys(set_of(app.key))
    with pytest.raises(InvalidRegistration):
        Registration("a", "A", (CALLBACK,), ("profile",), secrets=(b"x" * 32,), private_key_jwt=True, jwks=jwks)


async def test_an_app_with_another_method_cannot_use_its_key(service: Service) -> None:
    jwks = registered_keys(set_of(key_for("ES256")))
    confidential = await key_app(service, private_key_jwt=False, jwks=jwks)
    public = await key_app(service, private_key_jwt=False, public=True, jwks=jwks)
    for app in (confidential, public):
        assert error_of(await app.exchange(await service.code(app))) == (401, "invalid_client")


async def test_an_api_cannot_use_an_assertion(service: Service) -> None:
    app = await key_app(service)
    form = {"token": "any", **app.proof(app.assertion(iss="api_" + "a" * 15, sub="api_" + "a" * 15))}
    assert error_of(await app.post("introspect", **form)) == (401, "invalid_client")


@pytest.mark.rfc("7523 2.2 type")
@each(
    ("changes", "error"),
    [
        pytest.param({"client_assertion_type": None}, "invalid_request", id="no type"),
        pytest.param({"client_assertion": None}, "invalid_request", id="no assertion"),
        pytest.param({"client_assertion_type": "urn:other"}, "invalid_client", id="another type"),
        pytest.param({"client_secret": "s"}, "invalid_client", id="a secret too"),
        pytest.param({"client_assertion": "x"}, "invalid_client", id="no token"),
        pytest.param({"client_assertion": "a.b.c"}, "invalid_client", id="no base64"),
        pytest.param({"client_assertion": "a" * 60_000}, "invalid_client", id="a long text"),
    ],
)
async def test_malformed_credentials_are_refused(service: Service, changes: dict[str, str | None], error: str) -> None:
    app = await key_app(service)
    response = await app.exchange(await service.code(app), **changes)
    assert (response.code, json_of(response)["error"]) == (400 if error == "invalid_request" else 401, error)


async def test_a_header_beside_an_assertion_is_refused(service: Service) -> None:
    app = await key_app(service)
    basic = {"Authorization": "Basic " + base64.b64encode(f"{app.client_id}:x".encode()).decode()}
    form = {"token": "any", **app.proof()}
    response = await send(f"{service.base_url}/api/oauth/revoke", "POST", form=form, headers=basic)
    assert error_of(response) == (401, "invalid_client")


@pytest.mark.rfc("7523 3-7 jti")
async def test_an_assertion_counts_once_at_all_endpoints_together(service: Service) -> None:
    app = await key_app(service)
    proof = app.proof(app.assertion(jti="once", exp=int(wall.time()) + 500))
    assert (await app.post("revoke", token="any", **proof)).code == 200
    for endpoint in ("revoke", "introspect"):
        again = await app.post(endpoint, token="any", **proof)
        assert error_of(again) == (401, "invalid_client")
    # Another assertion with the same jti is the same; another app's is not.
    anew = app.proof(app.assertion(jti="once", exp=int(wall.time()) + 501))
    assert error_of(await app.post("revoke", token="any", **anew)) == (401, "invalid_client")
    other = await key_app(service)
    assert (await other.post("revoke", token="any", **other.proof(other.assertion(jti="once")))).code == 200


async def test_the_mark_of_an_assertion_outlives_it_and_then_goes(service: Service) -> None:
    app = await key_app(service)
    assert (await app.post("revoke", token="any", **app.proof(app.assertion(jti="j")))).code == 200
    found = [key async for key in service.store.client.scan_iter(keys.assertion(app.client_id, "*"))]
    assert len(found) == 1
    left = await service.store.client.pttl(found[0])
    assert 60_000 + 60_000 < left <= ASSERTION
    assert b"j" not in (await service.store.client.get(found[0]) or b"j")


async def test_a_request_that_is_malformed_uses_up_no_assertion(service: Service) -> None:
    app = await key_app(service)
    proof = app.proof()
    assert (await app.post("token", grant_type="authorization_code", **proof)).code == 400
    assert (await app.post("revoke", token="any", **proof)).code == 200


async def test_a_disabled_app_s_assertion_is_refused(service: Service) -> None:
    app = await key_app(service)
    await service.store.apps.update(app.client_id, status="disabled")
    assert error_of(await app.post("introspect", token="any", **app.proof())) == (401, "invalid_client")


async def test_a_key_s_own_algorithm_limits_it(service: Service) -> None:
    key = key_for("RS256")
    only = registered_keys(set_of({**key.public.to_jwk(), "alg": "RS256"}))
    app = await key_app(service, key=key, jwks=only)
    assert (await app.post("revoke", token="any", **app.proof())).code == 200
    other = ps256(key, {"alg": "PS256", "kid": key.kid}, app.claims())
    assert error_of(await app.post("revoke", token="any", **app.proof(other))) == (401, "invalid_client")


@each(
    ("text", "why"),
    [
        pytest.param(b"{", "isn't a valid JSON", id="no JSON"),
        pytest.param(b"[]", "isn't a valid JSON", id="a list"),
        pytest.param(b'{"keys":[]}', "no usable signing key", id="no keys"),
        pytest.param(b'{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}', "private", id="a shared secret"),
        pytest.param(set_of({**key_for("ES256").public.to_jwk(), "d": "x"}), "private", id="a private key"),
        pytest.param(b'{"keys":[' + b"{}," * 30_000 + b"{}]}", "too large", id="a large set"),
    ],
)
def test_only_a_sound_set_of_public_keys_registers(text: bytes, why: str) -> None:
    with pytest.raises(InvalidKeys, match=why):
        registered_keys(text)


@each(
    ("fields", "why"),
    [
        pytest.param({"private_key_jwt": True}, "registers jwks or jwksUri", id="a method without keys"),
        pytest.param({"private_key_jwt": True, "public": True, "jwks": "x"}, "one way", id="two methods"),
        pytest.param({"jwks": "x", "jwks_uri": "https://a.example/jwks"}, "not both", id="both sources"),
        pytest.param({"jwks_uri": "http://a.example/jwks"}, "jwksUri looks like", id="a URL without TLS"),
        pytest.param({"jwks_uri": "https://user@a.example/jwks"}, "jwksUri looks like", id="a URL with a user"),
        pytest.param({"jwks_uri": "file:///etc/passwd"}, "jwksUri looks like", id="a file"),
    ],
)
def test_a_registration_has_one_method_and_one_source_of_keys(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Registration("an-app", "An App", (CALLBACK,), ("profile",), **fields)


def test_a_registration_with_keys_survives_the_store() -> None:
    jwks = registered_keys(set_of(key_for("ES256"), key_for("RS256")))
    sources: list[dict[str, Any]] = [{"jwks": jwks}, {"jwks_uri": "https://a.example/jwks"}]
    for fields in sources:
        app = Registration("an-app", "An App", (CALLBACK,), ("profile",), private_key_jwt=True, **fields)
        assert Registration.unpack(app.pack()) == app
        assert app.record()["authMethod"] == "private_key_jwt"


async def test_metadata_names_the_method_and_its_algorithms(service: Service) -> None:
    found = json_of(await send(f"{service.base_url}/.well-known/oauth-authorization-server"))
    for endpoint in ("token", "revocation", "introspection"):
        assert "private_key_jwt" in found[f"{endpoint}_endpoint_auth_methods_supported"]
        listed = found[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]
        assert listed == ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"]
