"""Tokens and keys of a played person: for Latchkey and for APIs, opaque and signed, bound to a key or not."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, import_key

from latchkey.testing import Api, App, Key, Latchkey, LatchkeyError, Person, TokenResponse
from store.accounts.signin.totp import STEP, code_at
from tests.support.http.driver import VERIFIER, Browser, challenge
from tests.support.processes.processes import QUICK, Server

pytestmark = pytest.mark.filterwarnings("ignore:EdDSA is deprecated")

ORDERS = "https://orders.example.com"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests drive."""
    with Server("--redis-url=memory", *QUICK) as running:
        yield running.ready()


@pytest.fixture
def latchkey(server: Server) -> Latchkey:
    """The client that drives it; its store is empty."""
    made = Latchkey(server.url)
    made.reset()
    return made


@pytest.fixture
def orders(latchkey: Latchkey) -> Api:
    """An API that asks about tokens."""
    return latchkey.api(ORDERS, scopes={"orders:read": "See your orders", "orders:write": "Place orders"})


def claims_of(latchkey: Latchkey, text: str, typ: str) -> dict[str, Any]:
    """The claims of a token, checked by another library with the keys of the service."""
    found = jwt.decode(text, KeySet.import_key_set(latchkey.jwks()), algorithms=["RS256", "ES256", "EdDSA"])
    assert found.header["typ"] == typ
    return dict(found.claims)


def introspected(latchkey: Latchkey, api: Api, token: TokenResponse) -> dict[str, Any]:
    """What the API learns about a token."""
    form = {"token": token.access_token, "client_id": api.client_id, "client_secret": api.client_secret}
    answer = httpx.post(f"{latchkey.url}/api/oauth/introspect", data=form)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def userinfo(latchkey: Latchkey, headers: dict[str, str]) -> httpx.Response:
    return httpx.get(f"{latchkey.url}/api/oauth/userinfo", headers=headers)


def refreshed(latchkey: Latchkey, app: App, token: TokenResponse, **fields: str) -> dict[str, Any]:
    form = {"grant_type": "refresh_token", "refresh_token": token.refresh_token, "client_id": app.client_id}
    form |= {"client_secret": app.client_secret or "", **fields}
    found: dict[str, Any] = httpx.post(f"{latchkey.url}/api/oauth/token", data=form).raise_for_status().json()
    return found


def request_of(latchkey: Latchkey, app: App, scope: str, **more: str) -> str:
    query = {
        "response_type": "code",
        "client_id": app.client_id,
        "redirect_uri": app.redirect_uri,
        "scope": scope,
        "state": "a-state",
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
        **more,
    }
    return f"{latchkey.url}/oauth/authorize?{httpx.QueryParams(query)}"


def exchanged(latchkey: Latchkey, app: App, code: str) -> dict[str, Any]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": app.redirect_uri}
    form |= {"code_verifier": VERIFIER, "client_id": app.client_id, "client_secret": app.client_secret or ""}
    found: dict[str, Any] = httpx.post(f"{latchkey.url}/api/oauth/token", data=form).raise_for_status().json()
    return found


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_an_id_token_comes_with_the_keys_to_check_it(latchkey: Latchkey, algorithm: str) -> None:
    app = latchkey.app(scopes="openid profile", id_token_alg=algorithm)
    ada = latchkey.person("Ada")
    token = latchkey.token(ada, app, nonce="n-1")
    assert token.id_token is not None
    claims = claims_of(latchkey, token.id_token, "JWT")
    facts = (claims["iss"], claims["aud"], claims["sub"], claims["nonce"], claims["name"], claims["acr"])
    assert facts == (latchkey.url, app.client_id, ada.sub, "n-1", "Ada", "1")
    assert abs(claims["auth_time"] - time.time()) < 60
    assert userinfo(latchkey, token.headers).json()["sub"] == ada.sub
    assert latchkey.token(ada, app, "profile").id_token is None


def test_tokens_of_one_person_are_of_one_session_until_it_ends(latchkey: Latchkey) -> None:
    app, ada = latchkey.app(scopes="openid"), latchkey.person()

    def session() -> str:
        return str(claims_of(latchkey, latchkey.token(ada, app).id_token or "", "JWT")["sid"])

    first = session()
    assert session() == first
    latchkey.travel(days=15)
    assert session() != first


def test_an_opaque_token_for_an_api_is_told_to_that_api_alone(latchkey: Latchkey, orders: Api) -> None:
    other = latchkey.api("https://bills.example.com", scopes="bills:read")
    app, ada = latchkey.app(scopes="openid orders:read orders:write"), latchkey.person()
    token = latchkey.token(ada, app)
    assert (token.scope, token.token_type, token.expires_in) == ("orders:read orders:write", "Bearer", 600)
    found = introspected(latchkey, orders, token)
    assert (found["active"], found["sub"], found["aud"], found["acr"]) == (True, ada.sub, ORDERS, "1")
    assert introspected(latchkey, other, token) == {"active": False}
    assert userinfo(latchkey, token.headers).status_code == 401
    assert claims_of(latchkey, token.id_token or "", "JWT")["aud"] == app.client_id
    own = refreshed(latchkey, app, token, resource=latchkey.url)
    assert own["scope"] == "openid"
    latchkey.travel(minutes=10)
    assert introspected(latchkey, orders, token) == {"active": False}


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_signed_token_for_an_api_is_checked_with_the_keys(latchkey: Latchkey, algorithm: str) -> None:
    latchkey.api(ORDERS, scopes=["orders:read"], token_format="jwt", signing_alg=algorithm, token_lifetime=120)
    app, ada = latchkey.app(scopes="orders:read"), latchkey.person()
    token = latchkey.token(ada, app)
    claims = claims_of(latchkey, token.access_token, "at+jwt")
    assert (claims["aud"], claims["sub"], claims["scope"]) == (ORDERS, ada.sub, "orders:read")
    assert (claims["client_id"], claims["exp"] - claims["iat"]) == (app.client_id, 120)


def test_scopes_narrow_the_consent_and_keep_what_others_gave(latchkey: Latchkey, orders: Api) -> None:
    app, ada = latchkey.app(scopes="profile data:read orders:read orders:write"), latchkey.person()
    assert latchkey.token(ada, app, "orders:read").scope == "orders:read"
    assert latchkey.token(ada, app, "orders:write", resource=orders).scope == "orders:write"
    assert latchkey.token(ada, app, resource=latchkey.url).scope == "profile data:read"
    assert latchkey.token(ada, app, "data:read orders:read", resource=ORDERS).scope == "orders:read"
    quiet = request_of(latchkey, app, "profile orders:read", resource=ORDERS, prompt="none")
    assert latchkey.consents(quiet, person=ada).error is None, "all of it was allowed before"
    with pytest.raises(LatchkeyError, match="400 invalid_target: Scopes of an API and of this server"):
        latchkey.token(ada, app)
    with pytest.raises(LatchkeyError, match="invalid_target"):
        latchkey.token(ada, app, resource="https://unknown.example.com")
    with pytest.raises(LatchkeyError, match="invalid_scope: There is no scope orders:reed"):
        latchkey.token(ada, app, "orders:reed")


@pytest.mark.parametrize("token_format", ["opaque", "jwt"])
def test_a_bound_token_names_its_key_and_needs_a_proof(latchkey: Latchkey, token_format: str) -> None:
    api = latchkey.api(ORDERS, scopes=["orders:read"], token_format=token_format)
    app, ada = latchkey.app(scopes="profile orders:read", dpop_required=True), latchkey.person()
    key, other = latchkey.key(), latchkey.key()
    token = latchkey.token(ada, app, resource=api, dpop=key)
    assert (token.token_type, token.headers) == ("DPoP", {"Authorization": f"DPoP {token.access_token}"})
    assert introspected(latchkey, api, token)["cnf"] == {"jkt": key.thumbprint}
    if token_format == "jwt":
        assert claims_of(latchkey, token.access_token, "at+jwt")["cnf"] == {"jkt": key.thumbprint}
    own = latchkey.token(ada, app, resource=latchkey.url, dpop=key.thumbprint)
    url = f"{latchkey.url}/api/oauth/userinfo"
    proof = latchkey.proof(key, "GET", url, own)
    assert userinfo(latchkey, {**own.headers, "DPoP": proof}).status_code == 200
    assert userinfo(latchkey, {**own.headers, "DPoP": proof}).status_code == 401, "each proof counts once"
    assert userinfo(latchkey, own.headers).status_code == 401
    assert userinfo(latchkey, {**own.headers, "DPoP": latchkey.proof(other, "GET", url, own)}).status_code == 401
    with pytest.raises(LatchkeyError, match="bound to a key"):
        latchkey.token(ada, app, resource=api)
    with pytest.raises(LatchkeyError, match="400 invalid_request: dpop_jkt"):
        latchkey.token(ada, app, resource=api, dpop="short")


def test_a_public_apps_bound_refresh_token_needs_its_key(latchkey: Latchkey) -> None:
    app, key = latchkey.app(public=True), latchkey.key("EdDSA")
    token = latchkey.token(None, app, dpop=key)
    form = {"grant_type": "refresh_token", "refresh_token": token.refresh_token, "client_id": app.client_id}
    url = f"{latchkey.url}/api/oauth/token"
    assert httpx.post(url, data=form).json()["error"] == "invalid_grant"
    again = httpx.post(url, data=form, headers={"DPoP": latchkey.proof(key, "POST", url)})
    assert (again.status_code, again.json()["token_type"]) == (200, "DPoP")
    nonce = again.headers["DPoP-Nonce"]
    form["refresh_token"] = again.json()["refresh_token"]
    with_nonce = httpx.post(url, data=form, headers={"DPoP": latchkey.proof(key, "POST", url, nonce=nonce)})
    assert with_nonce.status_code == 200


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "EdDSA"])
def test_an_app_proves_itself_by_a_key_that_the_service_made(latchkey: Latchkey, algorithm: str) -> None:
    key = latchkey.key(algorithm)
    app = latchkey.app(auth_method="private_key_jwt", jwks=[key])
    assert app.client_secret is None
    token = latchkey.token(None, app)
    form = {"grant_type": "refresh_token", "refresh_token": token.refresh_token, "client_id": app.client_id}
    form |= {"client_assertion_type": ASSERTION, "client_assertion": assertion(latchkey, app, key)}
    assert httpx.post(f"{latchkey.url}/api/oauth/token", data=form).status_code == 200
    wrong = assertion(latchkey, app, latchkey.key(algorithm))
    refused = httpx.post(f"{latchkey.url}/api/oauth/token", data={**form, "client_assertion": wrong})
    assert refused.json()["error"] == "invalid_client"


def assertion(latchkey: Latchkey, app: App, key: Key) -> str:
    """An assertion by another library."""
    now = int(time.time())
    claims = {"iss": app.client_id, "sub": app.client_id, "aud": latchkey.url, "iat": now, "exp": now + 60}
    header, claims["jti"] = {"alg": key.public["alg"], "kid": key.thumbprint}, secrets.token_hex(8)
    return jwt.encode(header, claims, import_key(key.private), algorithms=[key.public["alg"]])


def test_a_profile_brings_along_what_it_demands(latchkey: Latchkey, orders: Api) -> None:
    key = latchkey.key()
    app = latchkey.app(scopes="openid orders:read", profile="fapi2", jwks=[key])
    with pytest.raises(LatchkeyError, match="bound to a key"):
        latchkey.token(None, app)
    token = latchkey.token(None, app, dpop=key)
    assert token.token_type == "DPoP"
    assert introspected(latchkey, orders, token)["cnf"] == {"jkt": key.thumbprint}
    assert claims_of(latchkey, token.id_token or "", "JWT")["aud"] == app.client_id
    for wrong in ({}, {"jwks": [key], "auth_method": "client_secret"}, {"jwks": [key], "public": True}):
        with pytest.raises(LatchkeyError, match="the profile fapi2 demands"):
            latchkey.app(profile="fapi2", **wrong)
    latchkey.api("https://old.example.com", scopes="old:read", token_format="jwt", signing_alg="RS256")
    with pytest.raises(LatchkeyError, match=r"not those of https://old\.example\.com"):
        latchkey.app(scopes="openid old:read", profile="fapi2", jwks=[key])


async def add_second_step(latchkey: Latchkey, person: Person) -> None:
    """Sets up an authenticator app on the pages."""
    browser, path = Browser(latchkey.url), "/account/security/authenticator"
    await browser.sign_in(person.email, person.password)
    security = await browser.get("/account/security")
    await browser.submit(security, "/account/security/confirm", password=person.password)
    page = await browser.get(path)
    (shown,) = re.findall(rb'class="key">([A-Za-z2-7 ]+)<', page.body)
    secret = shown.replace(b" ", b"").upper()
    code = code_at(base64.b32decode(secret + b"=" * (-len(secret) % 8)), int(time.time() * 1000) // STEP)
    done = await browser.submit(page, path, code=code)
    assert b"recovery" in done.body.lower(), done.body


def test_a_person_with_an_authenticator_app_signs_in_with_it(latchkey: Latchkey, orders: Api) -> None:
    app, ada = latchkey.app(scopes="openid orders:read"), latchkey.person()

    def level(**more: str) -> str | None:
        """The level of a played sign-in, or the error."""
        back = latchkey.consents(request_of(latchkey, app, "openid", **more), person=ada)
        if back.error:
            return back.error
        return str(claims_of(latchkey, exchanged(latchkey, app, back.code)["id_token"], "JWT")["acr"])

    assert [level(), level(acr_values="2")] == ["1", "unmet_authentication_requirements"]
    asyncio.run(add_second_step(latchkey, ada))
    # The session from before goes on, as in a browser, until a request needs more.
    assert [level(), level(acr_values="2"), level()] == ["1", "2", "2"]
    # A code counts once, and the present one was used to set up the app: a test signs in as often as it likes.
    assert {level(prompt="login") for _ in range(4)} == {"2"}
    assert level(acr_values="phr", prompt="none") == "unmet_authentication_requirements"
    key = latchkey.key()
    token = latchkey.token(ada, app, dpop=key, nonce="n")
    claims = claims_of(latchkey, token.id_token or "", "JWT")
    assert (claims["acr"], claims["amr"], claims["nonce"]) == ("2", ["pwd", "otp", "mfa"], "n")
    found = introspected(latchkey, orders, token)
    assert (found["cnf"], found["acr"]) == ({"jkt": key.thumbprint}, "2")


def test_tokens_for_a_test_count_for_no_limit(latchkey: Latchkey) -> None:
    app, ada = latchkey.app(), latchkey.person()
    before = userinfo(latchkey, latchkey.token(ada, app).headers)
    for _ in range(3):
        token = latchkey.token(ada, app)
    left = [int(answer.headers["X-RateLimit-Remaining"]) for answer in (before, userinfo(latchkey, token.headers))]
    assert left == [99, 98]
    wait = latchkey.exhausts("oauth", ada)
    token = latchkey.token(ada, app)
    assert userinfo(latchkey, token.headers).status_code == 429
    latchkey.travel(seconds=wait)
    assert userinfo(latchkey, token.headers).status_code == 200


def test_an_apps_events_and_groups_and_api_ids_are_those_of_its_sector(latchkey: Latchkey) -> None:
    api = latchkey.api(ORDERS, scopes="orders:read")
    app = latchkey.app(scopes="openid orders:read", subject_type="pairwise")
    ada: Person = latchkey.person()
    token = latchkey.token(ada, app)
    named = claims_of(latchkey, token.id_token or "", "JWT")["sub"]
    at_api = introspected(latchkey, api, token)["sub"]
    assert len({ada.sub, named, at_api}) == 3


@pytest.mark.parametrize(
    ("call", "fields", "error"),
    [
        pytest.param("apis", {"identifier": "https://a.example"}, "are a list", id="an API without scopes"),
        pytest.param("apis", {"identifier": "orders", "scopes": ["a"]}, "looks like", id="a bad identifier"),
        pytest.param(
            "apis", {"identifier": ORDERS, "scopes": ["openid"]}, "belongs to Latchkey or OpenID", id="a reserved scope"
        ),
        pytest.param("apis", {"identifier": ORDERS, "scopes": [{"title": "T"}]}, "is a name", id="a nameless scope"),
        pytest.param(
            "apis", {"identifier": ORDERS, "scopes": [{"name": "a", "care": 1}]}, "true or false", id="a number to care"
        ),
        pytest.param("apis", {"identifier": ORDERS, "scopes": ["a"], "client_secret": "x"}, "32 to 256", id="secret"),
        pytest.param("apps", {"authMethod": "key"}, "authMethod is one of", id="a bad method"),
        pytest.param("apps", {"authMethod": "none", "public": False}, "contradict", id="a contradiction"),
        pytest.param("apps", {"authMethod": "private_key_jwt"}, "registers jwks", id="a key app without keys"),
        pytest.param("apps", {"jwks": "x"}, "isn't a valid JSON Web Key Set", id="keys that are no set"),
        pytest.param("apps", {"client_secret": "s" * 32, "public": True}, "by a secret", id="a public app's secret"),
        pytest.param("keys", {"algorithm": "none"}, "algorithm is one of", id="a bad algorithm"),
        pytest.param("proofs", {"thumbprint": "x", "method": "GET", "url": "u"}, "No key", id="an unknown key"),
    ],
)
def test_mistakes_are_named(latchkey: Latchkey, call: str, fields: dict[str, Any], error: str) -> None:
    given = {"redirect_uris": ["https://a.example/cb"], **fields} if call == "apps" else fields
    with pytest.raises(LatchkeyError, match=error) as told:
        latchkey._calls.post(call, given)
    assert told.value.status in (400, 404)


def test_an_api_is_never_at_the_services_own_address(latchkey: Latchkey) -> None:
    with pytest.raises(LatchkeyError, match="address of this server itself"):
        latchkey.api(f"{latchkey.url}/orders", scopes="orders:read")


@pytest.fixture
def published() -> Iterator[tuple[str, dict[str, Any]]]:
    """Where an app publishes its keys, and the set there."""
    keys: dict[str, Any] = {}

    class Published(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(keys).encode())

        def log_message(self, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Published) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/jwks.json", keys
        server.shutdown()


def test_published_keys_are_fetched_in_each_test_and_as_time_passes(
    latchkey: Latchkey, published: tuple[str, dict[str, Any]]
) -> None:
    uri, keys = published

    def status(key: Key) -> int:
        app = latchkey.app(client_id="app", auth_method="private_key_jwt", jwks_uri=uri) if fresh else known
        form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": app.client_id}
        form |= {"client_assertion_type": ASSERTION, "client_assertion": assertion(latchkey, app, key)}
        return httpx.post(f"{latchkey.url}/api/oauth/token", data=form).status_code

    known = App("app", None, "", (), (), False)
    first, second = latchkey.key(), latchkey.key()
    keys["keys"], fresh = [first.public], True
    assert status(first) == 400  # known, and the refresh token is not
    latchkey.reset()
    keys["keys"] = [second.public]
    assert status(second) == 400
    fresh = False
    keys["keys"] = [first.public]
    assert status(first) == 401, "a set is not fetched twice within ten seconds"
    latchkey.travel(seconds=10)
    assert status(first) == 400


def test_a_token_is_handed_on_by_its_app_and_by_the_api_that_it_is_for(latchkey: Latchkey, orders: Api) -> None:
    ada, app = latchkey.person("ada@example.com"), latchkey.app(scopes="orders:read orders:write")
    token = latchkey.token(ada, app)
    helper = latchkey.exchange(token, app, "orders:read", name="Helper", seconds=60)
    assert (helper.scope, helper.expires_in, helper.refresh_token) == ("orders:read", 60, "")
    form = {"token": helper.access_token, "client_id": orders.client_id, "client_secret": orders.client_secret}
    facts = httpx.post(f"{latchkey.url}/api/oauth/introspect", data=form).json()
    assert (facts["sub"], facts["act"]["client_id"]) == (ada.sub, app.client_id)
    assert latchkey.exchange(helper, orders).scope == "orders:read"
    with pytest.raises(LatchkeyError, match="invalid_scope"):
        latchkey.exchange(helper, app, ["orders:write"])
