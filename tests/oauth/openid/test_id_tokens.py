"""ID tokens, userinfo and discovery, clause by clause: what OpenID Connect Core and Discovery demand of a provider."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from store.results import Visitor
from tests.oauth.openid.test_sign_in import SCOPES, claims_in, openid_app, refusal
from tests.support.http.driver import CALLBACK, EMAIL, PASSWORD, Service, answer_of, fields_of, json_of, send

DISCOVERY = "/.well-known/openid-configuration"


def header_of(token: str) -> dict[str, Any]:
    """The header of a signed token, unverified."""
    head = token.partition(".")[0]
    parsed: dict[str, Any] = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    return parsed


@pytest.mark.gen_test
@pytest.mark.openid("core 2 nonce")
async def test_the_nonce_comes_back_as_it_was(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    for nonce in ('a"b\\c', "<>&'%2B+ /=", "é\u202e\U0001f511", "e\u0301", " \t\r\n", "\x01", "n" * 512):
        tokens = await service.tokens(app, browser, scope="openid", nonce=nonce)
        assert (await claims_in(service, tokens["id_token"]))["nonce"] == nonce
    # None is made up where none was sent.
    tokens = await service.tokens(app, browser, scope="openid")
    assert "nonce" not in await claims_in(service, tokens["id_token"])


@pytest.mark.fapi("5.4.2-2 jku")
@pytest.mark.gen_test
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.openid("core 2 header")
@pytest.mark.openid("core 3.1.3.6 at_hash")
@pytest.mark.openid("core 10.1 algorithm")
@pytest.mark.openid("core 10.1 key")
@pytest.mark.openid("core 10.1 kid")
@pytest.mark.openid("core 10.1 use")
async def test_header_and_hash_are_those_of_the_chosen_algorithm(service: Service) -> None:
    published = {key["kid"]: key for key in json_of(await send(f"{service.base_url}/.well-known/jwks.json"))["keys"]}
    for algorithm, digest in (("RS256", hashlib.sha256), ("ES256", hashlib.sha256), ("EdDSA", hashlib.sha512)):
        app = await service.add_app(f"app-{algorithm}", scopes=SCOPES, id_token_alg=algorithm)
        tokens = await service.tokens(app, scope="openid")
        header = header_of(tokens["id_token"])
        assert set(header) == {"typ", "alg", "kid"}
        key = published[header["kid"]]
        assert (header["alg"], key["alg"], key["use"]) == (algorithm, algorithm, "sig")
        half = digest(tokens["access_token"].encode()).digest()
        expected = base64.urlsafe_b64encode(half[: len(half) // 2]).rstrip(b"=").decode()
        assert (await claims_in(service, tokens["id_token"], algorithm))["at_hash"] == expected
        # A refresh has another access token, so another hash.
        again = json_of(await app.refresh(tokens["refresh_token"]))
        assert (await claims_in(service, again["id_token"], algorithm))["at_hash"] != expected


@pytest.mark.gen_test
@pytest.mark.openid("core 2 sub")
async def test_a_sub_is_short_and_never_given_to_somebody_else(service: Service) -> None:
    app = await openid_app(service)
    sub = (await claims_in(service, (await service.tokens(app, scope="openid"))["id_token"]))["sub"]
    assert sub.isascii()
    assert len(sub) <= 255
    # The same address, registered again by a new account, is another person.
    await service.store.operator.delete(EMAIL)
    await service.store.people.create(
        EMAIL, "Another Ada", PASSWORD, verified=True, event="created_by_operator", visitor=Visitor()
    )
    tokens = await service.tokens(app, scope="openid profile")
    claims = await claims_in(service, tokens["id_token"])
    assert (claims["email"], claims["name"]) == (EMAIL, "Another Ada")
    assert claims["sub"] != sub


@pytest.mark.gen_test
@pytest.mark.openid("core 5.1 picture")
@pytest.mark.openid("core 5.3 methods")
@pytest.mark.openid("core 5.3.2 json")
@pytest.mark.openid("core 5.3.2 sub")
@pytest.mark.openid("core 5.6 normal")
async def test_userinfo_is_json_and_says_the_same_as_the_id_token(service: Service) -> None:
    app = await openid_app(service)
    tokens = await service.tokens(app, scope="openid profile")
    claims = await claims_in(service, tokens["id_token"])
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    answers = [
        await send(f"{service.base_url}/api/oauth/userinfo", method, headers=headers) for method in ("GET", "POST")
    ]
    for answer in answers:
        assert answer.headers["Content-Type"] == "application/json"
        assert json_of(answer).items() <= claims.items()
        assert set(json_of(answer)) == {"sub", "name", "picture", "email", "email_verified"}
    picture = await send(claims["picture"], described=False)
    assert picture.code == 200
    assert picture.headers["Content-Type"].startswith("image/")


@pytest.mark.gen_test
@pytest.mark.openid("core 15.1 display")
@pytest.mark.openid("core 15.1 locales")
@pytest.mark.openid("core 15.1 auth_time")
@pytest.mark.openid("core 15.1 acr_values")
@pytest.mark.openid("core 5.5 ignored")
@pytest.mark.openid("core 5.5.1 ignored")
@pytest.mark.openid("core 5.5.1 missing")
async def test_what_is_not_understood_is_no_error(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    claims: dict[str, Any] = {
        "id_token": {
            "auth_time": {"essential": True},
            "acr": {"values": ["urn:example:gold"]},
            "birthdate": {"essential": True},
            "email": {"value": "somebody@example.com", "purpose": "sends mail"},
            "name#ja-Kana-JP": None,
        },
        "userinfo": {"phone_number": {"essential": True}, "https://example.info/groups": None},
        "later": {"essential": True},
    }
    odd = {
        "display": "hologram",
        "ui_locales": "tlh fr-CA xx",
        "claims_locales": "tlh",
        "acr_values": "urn:example:gold",
    }
    code = await service.code(app, browser, scope="openid", claims=json.dumps(claims), foo="bar", **odd)
    token = json_of(await app.exchange(code))["id_token"]
    found = await claims_in(service, token)
    assert (found["acr"], "birthdate" in found, "auth_time" in found) == ("1", False, True)


@pytest.mark.gen_test
@pytest.mark.openid("core 5.5.1.1 acr")
async def test_an_essential_level_is_met_or_the_sign_in_fails(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")

    def asking(**acr: Any) -> str:
        return app.authorize_url(scope="openid", claims=json.dumps({"id_token": {"acr": {"essential": True, **acr}}}))

    for met in ({"value": "1"}, {"values": ["urn:example:gold", "1"]}, {}):
        code = answer_of(await browser.get(asking(**met)))["code"]
        assert (await claims_in(service, json_of(await app.exchange(code))["id_token"]))["acr"] == "1"
    for unmet in ({"value": "2"}, {"values": ["phr", "2"]}):
        assert b"needs a stronger sign-in" in (await browser.get(asking(**unmet))).body
        quiet = await browser.get(asking(**unmet) + "&prompt=none")
        assert refusal(quiet) == "unmet_authentication_requirements"
    assert refusal(await browser.get(asking(value="urn:example:gold"))) == "unmet_authentication_requirements"


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 consent")
@pytest.mark.openid("core 3.1.2.4 consent")
@pytest.mark.openid("core 3.1.2.6 state")
async def test_an_app_learns_nothing_without_consent(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    # Remembered consent is not asked for again, unless the app wants that; then only it counts.
    url = app.authorize_url(scope="openid", prompt="consent", state="of this request")
    page = await browser.get(url)
    assert page.code == 200
    denied = answer_of(await browser.submit(page, "/api/oauth/authorize", decision="deny"))
    assert denied["error_description"] == "The person denied the request."
    assert (denied["error"], denied["state"], denied["iss"]) == ("access_denied", "of this request", service.base_url)
    wider = await browser.get(app.authorize_url(scope="openid profile"))
    assert "scope:profile" in fields_of(wider, "/api/oauth/authorize")


@pytest.mark.gen_test
@pytest.mark.openid("core 14 comparison")
@pytest.mark.openid("core 14 delimiter")
async def test_texts_are_compared_as_they_are(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    for wrong in ("OpenID", "openid\tprofile", "openid\u00a0profile", "\uff4fpenid"):
        assert refusal(await browser.get(app.authorize_url(scope=wrong))) == "invalid_scope"
    for wrong in ("None", "login\u00a0consent", "none\tlogin"):
        assert refusal(await browser.get(app.authorize_url(scope="openid", prompt=wrong))) == "invalid_request"
    # A level between other spaces is no level, and unknown levels are ignored.
    assert "code" in answer_of(await browser.get(app.authorize_url(scope="openid", acr_values="2\tphr")))
    sub = service.ada.upper()
    assert sub != service.ada
    claims = json.dumps({"id_token": {"sub": {"value": sub}}})
    assert (
        refusal(await browser.get(app.authorize_url(scope="openid", prompt="none", claims=claims))) == "login_required"
    )


@pytest.mark.fapi("5.3.2.1-1 metadata")
@pytest.mark.gen_test
@pytest.mark.openid("core 16.15 issuer")
@pytest.mark.openid("discovery 3 issuer")
@pytest.mark.openid("discovery 3 endpoints")
@pytest.mark.openid("discovery 3 openid")
@pytest.mark.openid("discovery 3 none")
@pytest.mark.openid("discovery 4 path")
@pytest.mark.openid("discovery 4.2 response")
@pytest.mark.openid("discovery 4.2 empty")
@pytest.mark.openid("discovery 4.3 issuer")
async def test_discovery_is_about_its_own_address(service: Service) -> None:
    answer = await send(service.base_url + DISCOVERY)
    assert (answer.code, answer.headers["Content-Type"]) == (200, "application/json")
    found = json_of(answer)
    assert isinstance(found, dict)
    assert found["issuer"] == service.base_url
    assert not {"?", "#"} & set(found["issuer"])
    token = (await service.tokens(await openid_app(service), scope="openid"))["id_token"]
    assert (await claims_in(service, token))["iss"] == found["issuer"]
    for name, value in found.items():
        assert value != [], name
        if name.endswith(("_endpoint", "_uri")):
            assert value.startswith(f"{service.base_url}/"), name
        if "alg" in name:
            assert "none" not in value, name
    assert "openid" in found["scopes_supported"]
    assert CALLBACK not in answer.body.decode()
