"""Assertions of an identity provider: what an app gets for one, and for which it gets nothing. RFC 7523, ID-JAG."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dev.fuzz.jwts import wrong_jwts
from handlers.core.site import Site
from store.oauth.assertions.issuers import TrustedIssuers
from store.results import Visitor
from tests.oauth.assertions.identity_provider import Enterprise, granted, present, refused
from tests.support.http.api_shop import about, called
from tests.support.http.driver import EMAIL, NAME, App, Service, json_of, send
from tests.support.http.key_app import key_app, key_for
from tests.support.store.checked_store import checked, findings

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.mark.rfc("7523 2.1 grant")
async def test_an_app_gets_a_token_without_a_page(enterprise: Enterprise, service: Service) -> None:
    answer = await granted(service.web, enterprise.assertion(scope="data:read profile unheard-of"))
    assert answer.keys() == {"access_token", "token_type", "expires_in", "scope"}, "no refresh token"
    assert (answer["token_type"], answer["expires_in"], answer["scope"]) == ("Bearer", 3600, "profile data:read")
    assert (await called(service, answer["access_token"])).code == 200
    facts = await about(service, answer["access_token"], "web-app", service.web.secret)
    assert (facts["sub"], facts["client_id"], facts["scope"]) == (service.ada, "web-app", "profile data:read")
    assert "acr" not in facts, "the sign-in was elsewhere"
    # A later one adds to what the app has.
    again = await granted(service.web, enterprise.assertion(), scope="data:write openid offline_access")
    assert again["scope"] == "data:write"
    assert (await called(service, answer["access_token"])).code == 200
    assert enterprise.provider.asked == ["/.well-known/openid-configuration", "/keys"]
    assert findings(await checked(service.store, deep=True)) == []


async def test_an_app_proves_itself_by_its_key_too(enterprise: Enterprise, service: Service) -> None:
    app = await key_app(service, "keyed", scopes=("profile",))
    enterprise.trusts("keyed")
    assert (await granted(app, enterprise.assertion(client_id="keyed")))["scope"] == "profile email"


# Whole numbers are seconds from now.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no issuer": ({"iss": None}, "malformed"),
    "another issuer": ({"iss": "https://idp.example"}, "no such issuer"),
    "the issuer with a slash": ({"iss": "SLASH"}, "no such issuer"),
    "no subject": ({"sub": None}, "malformed"),
    "no audience": ({"aud": None}, "aud is"),
    "another audience": ({"aud": "https://other.example"}, "aud is"),
    "two audiences": ({"aud": ["OURS", "https://other.example"]}, "aud is"),
    "the token endpoint as audience": ({"aud": "OURS/api/oauth/token"}, "aud is"),
    "the audience with a slash": ({"aud": "OURS/"}, "aud is"),
    "no client": ({"client_id": None}, "client_id is"),
    "another client": ({"client_id": "native-app"}, "client_id is"),
    "no end": ({"exp": None}, "exp is"),
    "an end far away": ({"exp": 4000}, "exp is"),
    "an end in the past": ({"exp": -60}, "expired"),
    "an infinite end": ({"exp": float("inf")}, "malformed"),
    "no birth": ({"iat": None}, "iat is"),
    "a birth long ago": ({"iat": -4000}, "iat is"),
    "a birth in the future": ({"iat": 300}, "future"),
    "a beginning in the future": ({"nbf": 300}, "future"),
    "no id": ({"jti": None}, "jti is"),
    "a long id": ({"jti": "j" * 257}, "jti is"),
    "no address": ({"email": None}, "email is"),
    "a long address": ({"email": "a" * 300 + "@example.com"}, "email is"),
    "two addresses": ({"email": ["ada@example.com"]}, "email is"),
    "an address that is not verified": ({"email_verified": False}, "has not verified"),
    "an address of a foreign domain": ({"email": "ada@other.example"}, "does not speak for"),
    "an address of a domain within the domain": ({"email": "ada@sub.example.com"}, "does not speak for"),
    "a tenant": ({"tenant": "t1"}, "tenant"),
    "a tenant of ours": ({"aud_tenant": "t1"}, "no tenants"),
    "a budget": ({"authorization_details": [{"type": "credits", "limit": 1}]}, "authorization_details"),
    "another person's id": ({"aud_sub": "0" * 32}, "names nobody"),
    "a proof of another kind": ({"cnf": {"x5t#S256": "x"}}, "cnf has"),
    "no list of resources": ({"resource": {"a": 1}}, "malformed"),
    "many resources": ({"resource": ["https://a.example"] * 11}, "malformed"),
    "a foreign resource": ({"resource": "https://other.example"}, "may not give access"),
    "foreign scopes": ({"scope": "credits:spend groups"}, "no scope"),
    "no text of scopes": ({"scope": ["profile"]}, "malformed"),
    "an empty scope": ({"scope": ""}, "malformed"),
}


@pytest.mark.rfc("7523 3.1 invalid_grant")
@pytest.mark.parametrize(("claims", "why"), [pytest.param(*case, id=what) for what, case in WRONG.items()])
async def test_a_wrong_claim_gives_nothing(
    enterprise: Enterprise, service: Service, claims: dict[str, Any], why: str
) -> None:
    ours, theirs = service.base_url, f"{enterprise.provider.url}/"
    now = int(time.time())
    meant: dict[str, Any] = {
        name: now + value
        if isinstance(value, int)
        else [one.replace("OURS", ours) for one in value]
        if name == "aud" and isinstance(value, list)
        else value.replace("OURS", ours).replace("SLASH", theirs)
        if isinstance(value, str)
        else value
        for name, value in claims.items()
    }
    status, code, said = await refused(service.web, enterprise.assertion(**meant))
    assert (status, code) == (400, "invalid_grant")
    assert why in said
    assert EMAIL not in said
    browser = await service.signed_in()
    assert b"Web App" not in (await browser.get("/account/apps")).body


@pytest.mark.trap(44)
async def test_no_token_of_a_wrong_kind_counts(enterprise: Enterprise, service: Service) -> None:
    key = enterprise.provider.keys[0]
    header = {"typ": "oauth-id-jag+jwt", "alg": key.algorithm, "kid": key.kid}
    wrong = wrong_jwts(key, header, enterprise.provider.claims("web-app"))
    for typ in ("JWT", "at+jwt", "logout+jwt", None):
        wrong[f"typ {typ}"] = enterprise.assertion({"typ": typ})
    for what, text in wrong.items():
        if not text:
            continue
        status, code, said = await refused(service.web, text)
        whole = len(text) < 65_000
        assert (status, code) == ((400, "invalid_grant") if whole else (413, "invalid_request")), (what, said)
    assert (await granted(service.web, enterprise.assertion()))["scope"]


async def test_only_algorithms_of_the_issuer_count(enterprise: Enterprise, service: Service) -> None:
    enterprise.trusts(algorithms=("RS256",))
    assert (await refused(service.web, enterprise.assertion()))[:2] == (400, "invalid_grant")
    enterprise.provider.keys = [key_for("RS256")]
    enterprise.site.issuer_keys.forget()
    assert (await granted(service.web, enterprise.assertion()))["scope"]


async def test_an_assertion_counts_once(enterprise: Enterprise, service: Service) -> None:
    text = enterprise.assertion(scope="profile")
    answers = await asyncio.gather(*(present(service.web, text) for _ in range(20)))
    assert sorted(answer.code for answer in answers) == [200] + [400] * 19
    assert {json_of(answer)["error"] for answer in answers if answer.code == 400} == {"invalid_grant"}
    assert "used before" in (await refused(service.web, text))[2]
    # What was refused was not used up.
    wanted = enterprise.assertion(scope="profile")
    assert await refused(service.web, wanted, scope="data:read") == (
        *(400, "invalid_scope", "The assertion gives this app none of these scopes."),
    )
    assert (await granted(service.web, wanted))["scope"] == "profile"


async def test_an_app_needs_proof_of_itself_and_the_operators_word(enterprise: Enterprise, service: Service) -> None:
    text = enterprise.assertion()
    wrong = App(service.base_url, "web-app", "wrong")
    assert (await refused(wrong, text))[:2] == (401, "invalid_client")
    assert (await refused(App(service.base_url, "web-app", None), text))[:2] == (401, "invalid_client")
    other = await service.add_app("other-app")
    assert (await refused(other, text))[:2] == (400, "unauthorized_client")
    enterprise.trusts("web-app", "native-app", "other-app")
    assert (await refused(other, text))[:2] == (400, "invalid_grant")
    public = enterprise.assertion(client_id="native-app")
    assert (await refused(service.native, public))[:2] == (400, "unauthorized_client")
    assert (await granted(service.web, text))["scope"]


async def test_an_issuer_connects_only_its_own_apps(enterprise: Enterprise, service: Service, site: Site) -> None:
    other = await service.add_app("other-app")
    second = replace(enterprise.provider.trusted("other-app"), issuer="https://idp.example")
    object.__setattr__(site, "issuers", TrustedIssuers((*site.issuers, second)))
    assert "may not connect" in (await refused(other, enterprise.assertion(client_id="other-app")))[2]


async def test_without_issuers_there_is_no_such_grant(service: Service) -> None:
    assert (await refused(service.web, "a.b.c"))[:2] == (400, "unsupported_grant_type")
    metadata = json_of(await send(f"{service.base_url}/.well-known/oauth-authorization-server"))
    assert "authorization_grant_profiles_supported" not in metadata
    assert not any("jwt-bearer" in one for one in metadata["grant_types_supported"])


async def test_the_metadata_says_so_and_names_no_issuer(enterprise: Enterprise, service: Service) -> None:
    response = await send(f"{service.base_url}/.well-known/oauth-authorization-server")
    metadata = json_of(response)
    assert metadata["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    assert "urn:ietf:params:oauth:grant-type:jwt-bearer" in metadata["grant_types_supported"]
    assert enterprise.provider.url.encode() not in response.body


async def test_nobody_but_an_active_person_with_that_address_counts(enterprise: Enterprise, service: Service) -> None:
    store, nobody = service.store, "The assertion names nobody who may use this app here."
    await store.people.create(
        "bea@example.com",
        "Bea",
        "a long enough password",
        verified=False,
        event="created_by_operator",
        visitor=Visitor(),
    )
    carl = await service.add_person("carl@example.com", "Carl")
    await store.operator.set_status("carl@example.com", "disabled")
    for email in ("nobody@example.com", "bea@example.com", "carl@example.com"):
        assert await refused(service.web, enterprise.assertion(email=email)) == (400, "invalid_grant", nobody)
    await store.operator.set_status("carl@example.com", "active")
    assert (await granted(service.web, enterprise.assertion(email="Carl@EXAMPLE.com", aud_sub=carl)))["scope"]


async def test_keys_are_rotated_and_an_outage_is_no_refusal(enterprise: Enterprise, service: Service) -> None:
    provider, keys = enterprise.provider, enterprise.site.issuer_keys
    assert (await granted(service.web, enterprise.assertion()))["scope"]
    provider.keys = [key_for("ES256", 1), *provider.keys]
    keys.age(11)
    assert (await granted(service.web, enterprise.assertion()))["scope"]
    old = provider.keys.pop()
    keys.age(301)
    assert (await granted(service.web, enterprise.assertion()))["scope"]
    provider.keys.insert(0, old)
    text = enterprise.assertion()
    del provider.keys[0]
    assert "no such key" in (await refused(service.web, text))[2]
    provider.away = True
    keys.age(3599)
    assert (await granted(service.web, enterprise.assertion()))["scope"], "keys are known for an hour"
    keys.age(3601)
    response = await present(service.web, enterprise.assertion())
    assert (response.code, json_of(response)["error"]) == (503, "temporarily_unavailable")
    assert response.headers["Retry-After"] == "10"
    provider.away = False
    keys.age(11)
    assert (await granted(service.web, enterprise.assertion()))["scope"]


async def test_metadata_of_another_issuer_gives_no_keys(enterprise: Enterprise, service: Service) -> None:
    right = enterprise.provider.metadata()
    for wrong in ({"issuer": "https://other.example"}, {"jwks_uri": None}, {"jwks_uri": "file:///etc/passwd"}):
        told = {**right, **wrong}
        enterprise.provider.metadata = partial(dict, told)  # type: ignore[method-assign]  # a provider that errs
        enterprise.site.issuer_keys.forget()
        assert (await refused(service.web, enterprise.assertion()))[:2] == (503, "temporarily_unavailable")
    enterprise.trusts(jwks_uri=f"{enterprise.provider.url}/keys")
    assert (await granted(service.web, enterprise.assertion()))["scope"], "the operator names the keys"


async def test_a_multi_tenant_issuer_speaks_for_one_tenant(enterprise: Enterprise, service: Service) -> None:
    enterprise.trusts(tenant="t1")
    assert "tenant" in (await refused(service.web, enterprise.assertion()))[2]
    assert "tenant" in (await refused(service.web, enterprise.assertion(tenant="t2")))[2]
    assert (await granted(service.web, enterprise.assertion(tenant="t1")))["scope"]


async def test_malformed_requests_are_refused_first(enterprise: Enterprise, service: Service) -> None:
    assert (await refused(service.web, ""))[:2] == (400, "invalid_request")
    assert "too long" in (await refused(service.web, "a" * 9000))[2]
    details = '[{"type":"credits","limit":1}]'
    found = await refused(service.web, enterprise.assertion(), authorization_details=details)
    assert found[:2] == (400, "invalid_authorization_details")
    assert enterprise.provider.asked == []
    assert NAME not in str(found)
