"""Sign-in with OpenID Connect: ID tokens, discovery, userinfo by scope. Every token is read by another library."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from tornado.httpclient import HTTPResponse

from store.clock import wall
from tests.support.http.driver import EMAIL, NAME, App, Service, answer_of, fields_of, json_of, send
from tests.support.lists.offenders import each

SCOPES = ("openid", "profile", "data:read")


async def openid_app(service: Service, **fields: Any) -> App:
    """An app that signs people in."""
    return await service.add_app("openid-app", **{"scopes": SCOPES, **fields})


async def claims_in(service: Service, id_token: str, algorithm: str = "RS256") -> dict[str, Any]:
    """The claims of an ID token, verified with what discovery names."""
    configuration = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    keys = KeySet.import_key_set(json_of(await send(configuration["jwks_uri"])))
    token = jwt.decode(id_token, keys, algorithms=[algorithm])
    assert token.header["typ"] == "JWT"
    assert token.header["alg"] == algorithm
    return dict(token.claims)


@pytest.mark.gen_test
@pytest.mark.openid("core 2 iss")
@pytest.mark.openid("core 2 aud")
@pytest.mark.openid("core 2 times")
@pytest.mark.openid("core 2 auth_time")
@pytest.mark.openid("core 3.1.3.3 id_token")
async def test_the_id_token_says_who_signed_in_when_and_how(service: Service) -> None:
    app, began = await openid_app(service), int(time.time())
    tokens = await service.tokens(app, scope="openid profile", nonce="n-0S6")
    claims = await claims_in(service, tokens["id_token"])
    userinfo = json_of(await app.userinfo(tokens["access_token"]))
    assert claims.pop("picture") == userinfo["picture"]
    assert began - 1 <= claims.pop("auth_time") <= claims["iat"] <= time.time()
    assert len(claims.pop("sid")) == 22
    assert len(claims.pop("at_hash")) == 22
    assert claims.pop("exp") - claims.pop("iat") == 3600
    assert claims == {
        "iss": service.base_url,
        "sub": userinfo["sub"],
        "aud": "openid-app",
        "azp": "openid-app",
        "nonce": "n-0S6",
        "acr": "1",
        "amr": ["pwd"],
        "email": EMAIL,
        "email_verified": True,
        "name": NAME,
    }


@pytest.mark.gen_test
@pytest.mark.openid("core 2 signed")
@pytest.mark.openid("core 15.1 RS256")
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@each("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_an_app_chooses_how_its_id_tokens_are_signed(service: Service, algorithm: str) -> None:
    app = await service.add_app(f"app-{algorithm}", scopes=SCOPES, id_token_alg=algorithm)
    tokens = await service.tokens(app, scope="openid")
    assert (await claims_in(service, tokens["id_token"], algorithm))["sub"] == service.ada


@pytest.mark.gen_test
@pytest.mark.openid("core 12.2 same")
@pytest.mark.openid("core 12.2 auth_time")
@pytest.mark.openid("core 12.2 nonce")
@pytest.mark.openid("core 12.2 iat")
async def test_a_refreshed_id_token_keeps_the_sign_in_and_has_no_nonce(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await openid_app(service)
    first = await service.tokens(app, scope="openid profile", nonce="once")
    before = await claims_in(service, first["id_token"])
    monkeypatch.setattr(wall, "ahead", 100.0)
    again = json_of(await app.refresh(first["refresh_token"]))
    after = await claims_in(service, again["id_token"])
    assert after["exp"] - 3600 == after["iat"] >= before["iat"] + 100
    same = ("iss", "sub", "aud", "auth_time", "sid", "acr", "amr", "azp")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert "nonce" not in after
    assert "id_token" not in json_of(await app.refresh(again["refresh_token"], scope="profile"))


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.2 openid")
async def test_an_app_that_never_heard_of_openid_gets_no_id_token(service: Service) -> None:
    app = await openid_app(service)
    assert "id_token" not in await service.tokens(app, scope="profile data:read", nonce="ignored")
    assert "id_token" not in await service.tokens()


@pytest.mark.gen_test
async def test_userinfo_gives_what_the_scopes_of_the_token_give(service: Service) -> None:
    app = await service.add_app("mail-app", scopes=("openid", "profile"))
    given = {}
    for scope in ("openid", "openid email", "openid profile", "profile"):
        tokens = await service.tokens(app, scope=scope, prompt="consent")
        assert tokens["scope"] == scope
        given[scope] = set(json_of(await app.userinfo(tokens["access_token"])))
    assert given == {
        "openid": {"sub"},
        "openid email": {"sub", "email", "email_verified"},
        "openid profile": {"sub", "email", "email_verified", "name", "picture"},
        "profile": {"sub", "email", "email_verified", "name", "picture"},
    }


@pytest.mark.gen_test
async def test_userinfo_gives_nothing_that_the_app_no_longer_registers(service: Service) -> None:
    app = await service.add_app("mail-app", scopes=("openid", "profile"))
    token = (await service.tokens(app, scope="openid profile email"))["access_token"]
    await service.store.apps.update("mail-app", scopes=("openid", "email"))
    assert set(json_of(await app.userinfo(token))) == {"sub", "email", "email_verified"}
    await service.store.apps.update("mail-app", scopes=("openid",))
    assert set(json_of(await app.userinfo(token))) == {"sub"}


@pytest.mark.gen_test
@pytest.mark.openid("core 11 ignored")
async def test_email_and_offline_access_are_ignored_where_an_app_cannot_have_them(service: Service) -> None:
    app = await service.add_app("shy-app", scopes=("openid",))
    tokens = await service.tokens(app, scope="openid email offline_access")
    assert tokens["scope"] == "openid"
    assert (await app.refresh(tokens["refresh_token"], scope="openid email offline_access")).code == 200
    plain = await service.add_app("plain-app", scopes=("data:read",))
    refused = await (await service.signed_in()).get(plain.authorize_url(scope="data:read email"))
    assert answer_of(refused)["error"] == "invalid_scope"


@pytest.mark.gen_test
async def test_a_requested_claim_asks_for_the_scope_that_gives_it(service: Service) -> None:
    app = await service.add_app("claims-app", scopes=("openid", "profile"))
    tokens = await service.tokens(
        app, scope="openid", claims='{"id_token":{"email":{"essential":true},"zoneinfo":null}}'
    )
    assert tokens["scope"] == "openid email"
    assert (await claims_in(service, tokens["id_token"]))["email"] == EMAIL


@pytest.mark.gen_test
async def test_unticking_everything_leaves_the_sign_in_alone(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    url = app.authorize_url(scope="openid profile")
    page = await browser.get(url)
    assert b"It signs you in" in page.body
    assert "scope:openid" not in fields_of(page, "/api/oauth/authorize")
    redirect = await browser.consent(url, untick=("profile",))
    tokens = json_of(await app.exchange(answer_of(redirect)["code"]))
    assert tokens["scope"] == "openid"
    claims = await claims_in(service, tokens["id_token"])
    assert "name" not in claims
    assert "email" not in claims


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.5 query")
async def test_a_form_post_brings_the_code_without_an_address(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    page = await browser.consent(app.authorize_url(scope="openid", response_mode="form_post"))
    assert page.code == 200
    fields = fields_of(page, app.redirect_uri)
    assert fields["state"] == "a-state"
    assert (await app.exchange(fields["code"])).code == 200
    # Remembered consent answers in the same way, and so does a refusal.
    remembered = await browser.get(app.authorize_url(scope="openid", response_mode="form_post"))
    assert "code" in fields_of(remembered, app.redirect_uri)
    refused = await browser.get(app.authorize_url(scope="data:write", response_mode="form_post"))
    assert fields_of(refused, app.redirect_uri)["error"] == "invalid_scope"


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 methods")
async def test_a_posted_request_goes_on_as_a_get(service: Service) -> None:
    app = await openid_app(service)
    form = dict(
        pair.split("=", 1) for pair in ("client_id=openid-app", "response_type=code", "scope=openid", "state=s")
    )
    form |= {"redirect_uri": app.redirect_uri, "code_challenge": "x" * 43, "code_challenge_method": "S256"}
    answer = await send(f"{service.base_url}/oauth/authorize", "POST", form=form, described=False)
    assert answer.code == 303
    assert answer.headers["Location"].startswith("/oauth/authorize?client_id=openid-app&")
    browser = await service.signed_in()
    assert b"It signs you in" in (await browser.get(answer.headers["Location"])).body
    # A JSON object says the same.
    headers = {"Content-Type": "application/json"}
    typed = await send(
        f"{service.base_url}/oauth/authorize", "POST", body=json.dumps(form), headers=headers, described=False
    )
    assert typed.headers["Location"] == answer.headers["Location"]
    long = await send(
        f"{service.base_url}/oauth/authorize", "POST", form={**form, "state": "s" * 15_000}, described=False
    )
    assert long.code == 400
    for kind, body, status in (
        ("text/plain", "client_id=openid-app", 415),
        ("application/json", '["client_id"]', 400),
        ("application/json", '{"client_id": 7}', 400),
        ("application/x-www-form-urlencoded", "client_id=%ff", 400),
    ):
        headers = {"Content-Type": kind, "Accept": "text/html"}
        refused = await send(f"{service.base_url}/oauth/authorize", "POST", body=body, headers=headers, described=False)
        assert refused.code == status, body


def refusal(response: HTTPResponse) -> str:
    """The error in a redirect back to the app."""
    return answer_of(response)["error"]


@pytest.mark.rfc("9101 7 request_uri_not_supported")
@pytest.mark.rfc("9101 10.4.1 fetch")
@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 none alone")
@pytest.mark.openid("core 3.1.2.2 error")
@pytest.mark.openid("core 6.1 request")
@each(
    ("changes", "error"),
    [
        pytest.param({"max_age": "-1"}, "invalid_request", id="a negative age"),
        pytest.param({"nonce": "n" * 513}, "invalid_request", id="an endless nonce"),
        pytest.param({"claims": "[]"}, "invalid_request", id="claims that are no object"),
        pytest.param({"claims": '{"id_token":{"a":1,"a":2}}'}, "invalid_request", id="a claim twice"),
        pytest.param({"claims": '{"id_token":' * 400}, "invalid_request", id="claims without an end"),
        pytest.param({"request": "x.y.z"}, "request_not_supported", id="a request object"),
        pytest.param({"request_uri": "https://app.example/r"}, "request_uri_not_supported", id="by reference"),
        pytest.param({"registration": "{}"}, "registration_not_supported", id="a registration"),
        pytest.param({"prompt": "none create"}, "invalid_request", id="none and more"),
        pytest.param(
            {"claims": '{"id_token":{"acr":{"essential":true,"values":["9"]}}}'},
            "unmet_authentication_requirements",
            id="a level unknown here",
        ),
        pytest.param({"id_token_hint": "x.y.z"}, "invalid_request", id="a hint that is no token"),
        pytest.param({"prompt": "login\tconsent"}, "invalid_request", id="words with a tab between"),
        pytest.param(
            {"claims": '{"id_token":{"sub":{"values":"ada"}}}'}, "invalid_request", id="a sub that is no list"
        ),
    ],
)
async def test_wrong_parameters_of_a_sign_in_go_back_to_the_app(
    service: Service, changes: dict[str, str], error: str
) -> None:
    if await service.store.apps.find("openid-app") is None:
        await openid_app(service)
    app = App(service.base_url, "openid-app", None)
    browser = await service.signed_in()
    assert refusal(await browser.get(app.authorize_url(scope="openid", **changes))) == error


@pytest.mark.gen_test
async def test_the_error_of_a_wrong_prompt_names_every_right_one(service: Service) -> None:
    app = await openid_app(service)
    browser = await service.signed_in()
    answer = answer_of(await browser.get(app.authorize_url(scope="openid", prompt="signup")))
    named = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))["prompt_values_supported"]
    assert all(name in answer["error_description"] for name in named)


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.6 response_mode")
async def test_an_unknown_response_mode_gets_a_page(service: Service) -> None:
    """Core 3.1.2.6: without knowing the mode nobody can answer the app."""
    app = await openid_app(service)
    for browser in (service.browser(), await service.signed_in()):
        for mode in ("fragment", "query ", "form_post.jwt", "q" * 3000):
            page = await browser.get(app.authorize_url(scope="openid", response_mode=mode))
            assert page.code == 400
            assert "Location" not in page.headers
