"""GET /oauth/authorize over HTTP: the app's answer, who is asked, and when. SPEC 2.4, 4.1, 5.2, 5.3."""

from __future__ import annotations

import re

import pytest

from tests.support.http.driver import ALL_SCOPES, CALLBACK, Service, answer_of, challenge, json_of, query_of, send


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.5 query")
@pytest.mark.openid("core 16.4 disclosure")
@pytest.mark.spec("4.1")
async def test_the_redirect_has_only_code_state_and_issuer(service: Service) -> None:
    redirect = await (await service.signed_in()).consent(service.web.authorize_url(state="s /?&=%é"))
    assert redirect.code == 303
    location = redirect.headers["Location"]
    assert location.startswith(CALLBACK + "?")
    answer = query_of(location)
    assert set(answer) == {"code", "state", "iss"}
    assert answer["state"] == ["s /?&=%é"]
    assert answer["iss"] == [service.base_url]
    assert answer["code"][0].startswith("lk_ac_")


@pytest.mark.gen_test
async def test_the_issuer_is_left_out_if_the_registration_says_so(service: Service) -> None:
    app = await service.add_app("no-iss", iss_in_response=False)
    redirect = await (await service.signed_in()).consent(app.authorize_url())
    assert set(answer_of(redirect)) == {"code", "state"}
    denied = await (await service.signed_in()).consent(app.authorize_url(prompt="consent"), "deny")
    assert set(answer_of(denied)) == {"error", "error_description", "state"}


GOOD = challenge()


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.2 oauth")
@pytest.mark.openid("core 3.1.2.2 required")
@pytest.mark.spec("4.1")
@pytest.mark.spec("5.2")
@pytest.mark.spec("5.3")
@pytest.mark.spec("7")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"response_type": None}, "invalid_request", id="no response_type"),
        pytest.param({"response_type": "token"}, "unsupported_response_type", id="another response_type"),
        pytest.param({"response_type": "code token"}, "unsupported_response_type", id="a hybrid response_type"),
        pytest.param({"response_type": "Code"}, "unsupported_response_type", id="response_type in another case"),
        pytest.param({"state": None}, "invalid_request", id="no state"),
        pytest.param({"state": ""}, "invalid_request", id="an empty state"),
        pytest.param({"state": "s" * 2001}, "invalid_request", id="an endless state"),
        pytest.param({"scope": None}, "invalid_request", id="no scope"),
        pytest.param({"scope": ""}, "invalid_request", id="an empty scope"),
        pytest.param({"scope": "profile everything"}, "invalid_scope", id="a scope that does not exist"),
        pytest.param({"scope": "profile  data:read"}, "invalid_scope", id="two spaces"),
        pytest.param({"scope": "profile,data:read"}, "invalid_scope", id="commas"),
        pytest.param({"scope": "PROFILE"}, "invalid_scope", id="another case"),
        pytest.param({"code_challenge": GOOD, "code_challenge_method": "plain"}, "invalid_request", id="plain"),
        pytest.param({"code_challenge": GOOD, "code_challenge_method": None}, "invalid_request", id="no method"),
        pytest.param({"code_challenge": GOOD, "code_challenge_method": "s256"}, "invalid_request", id="s256"),
        pytest.param({"code_challenge": None, "code_challenge_method": "S256"}, "invalid_request", id="method alone"),
        pytest.param({"code_challenge": "short"}, "invalid_request", id="a short challenge"),
        pytest.param({"code_challenge": GOOD + "="}, "invalid_request", id="a padded challenge"),
        pytest.param({"code_challenge": "+" * 43}, "invalid_request", id="a challenge in another alphabet"),
        pytest.param({"prompt": "everything"}, "invalid_request", id="an unknown prompt"),
        pytest.param({"prompt": "none login"}, "invalid_request", id="none beside another prompt"),
    ],
)
async def test_other_errors_redirect_to_the_app(service: Service, changes: dict[str, str | None], error: str) -> None:
    for browser in (await service.signed_in(), service.browser()):
        response = await browser.get(service.web.authorize_url(**changes))
        assert response.code == 303
        assert response.headers["Location"].startswith(CALLBACK + "?")
        answer = answer_of(response)
        assert answer["error"] == error
        assert answer["error_description"]
        assert answer["iss"] == service.base_url
        assert re.fullmatch(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+", answer["error_description"])  # RFC 6749 4.1.2.1
        assert answer.get("state") == ("a-state" if "state" not in changes else None)
        assert "code" not in answer


@pytest.mark.gen_test
@pytest.mark.spec("2.4")
@pytest.mark.spec("7")
async def test_only_registered_scopes_can_be_requested(service: Service) -> None:
    app = await service.add_app("few", scopes=("profile", "data:read"))
    browser = await service.signed_in()
    refused = await browser.get(app.authorize_url(scope="profile data:write"))
    assert answer_of(refused)["error"] == "invalid_scope"
    for scope in ALL_SCOPES:
        tokens = await service.tokens(service.web, browser, scope=scope)
        assert tokens["scope"] == scope


@pytest.mark.gen_test
@pytest.mark.spec("2.4")
@pytest.mark.parametrize(
    ("scope", "error"),
    [
        pytest.param("profile", "invalid_scope", id="no data scope"),
        pytest.param("profile data:read", None, id="to read"),
        pytest.param("data:write", None, id="to write"),
    ],
)
async def test_an_app_with_hosted_storage_must_request_a_data_scope(
    service: Service, scope: str, error: str | None
) -> None:
    app = await service.add_app("storing", hosted_storage=True)
    redirect = await (await service.signed_in()).consent(app.authorize_url(scope=scope))
    assert answer_of(redirect).get("error") == error


@pytest.mark.gen_test
@pytest.mark.spec("5.2")
@pytest.mark.spec("2.1")
@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        pytest.param({}, None, id="a confidential app may leave PKCE out"),
        pytest.param({"pkce_required": True}, "invalid_request", id="not where pkceRequired is true"),
        pytest.param({"public": True}, "invalid_request", id="not where there is no secret"),
    ],
)
async def test_pkce_is_mandatory_if_the_registration_says_so(
    service: Service, facts: dict[str, bool], wanted: str | None
) -> None:
    app = await service.add_app("maybe-pkce", **facts)
    browser = await service.signed_in()
    redirect = await browser.consent(app.authorize_url(code_challenge=None))
    assert answer_of(redirect).get("error") == wanted
    with_pkce = await browser.consent(app.authorize_url())
    assert "code" in answer_of(with_pkce)


@pytest.mark.gen_test
@pytest.mark.trap(20)
@pytest.mark.parametrize("name", ["state", "scope", "response_type", "code_challenge", "prompt", "unknown"])
async def test_a_repeated_parameter_redirects_with_invalid_request(service: Service, name: str) -> None:
    response = await (await service.signed_in()).get(service.web.authorize_url() + f"&{name}=a&{name}=b")
    answer = answer_of(response)
    assert answer["error"] == "invalid_request"
    assert answer.get("state") == (None if name == "state" else "a-state")


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.3 signed out")
async def test_a_signed_out_person_signs_in_and_returns_to_the_request(service: Service) -> None:
    browser = service.browser()
    url = service.web.authorize_url(state="päss & more")
    away = await browser.get(url)
    assert away.code == 303
    assert away.headers["Location"].startswith("/signin?next=")
    page = await browser.get(away.headers["Location"])
    back = await browser.submit(page, "/signin", email="ada@example.com", password="correct horse battery")
    assert back.code == 303
    assert query_of(back.headers["Location"]) == query_of(url)
    redirect = await browser.consent(back.headers["Location"])
    assert answer_of(redirect)["state"] == "päss & more"


@pytest.mark.gen_test
async def test_consent_is_remembered_only_for_granted_scopes(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url(scope="profile data:read"))
    for scope in ("profile data:read", "profile", "data:read"):
        again = await browser.get(service.web.authorize_url(scope=scope))
        assert again.code == 303
        response = await service.web.exchange(answer_of(again)["code"])
        assert json_of(response)["scope"] == scope
    assert (await browser.get(service.web.authorize_url(scope="profile data:write"))).code == 200
    # Another person, and another app, are asked.
    await service.add_person("bob@example.com")
    assert (await (await service.signed_in("bob@example.com")).get(service.web.authorize_url())).code == 200
    other = await service.add_app("other")
    assert (await browser.get(other.authorize_url(scope="profile"))).code == 200


@pytest.mark.gen_test
async def test_remembered_consent_ends_with_the_grant(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    page = await browser.get("/account/apps")
    await browser.submit(page, "/account/apps/web-app/revoke")
    assert (await browser.get(service.web.authorize_url())).code == 200


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("uri", "public", "asks"),
    [
        pytest.param("http://127.0.0.1:5000/cb", True, True, id="a public app on loopback"),
        pytest.param("com.example.app:/cb", True, True, id="a public app on a scheme of its own"),
        pytest.param("https://spa.example/cb", True, False, id="a public app on https"),
        pytest.param(CALLBACK, False, False, id="a confidential app"),
        pytest.param("http://localhost:3000/cb", False, False, id="a confidential app under development"),
    ],
)
async def test_apps_that_can_be_impersonated_always_need_consent(
    service: Service, uri: str, public: bool, asks: bool
) -> None:
    app = await service.add_app("asks", public=public, redirect_uris=(uri,))
    browser = await service.signed_in()
    await browser.consent(app.authorize_url())
    again = await browser.get(app.authorize_url())
    assert again.code == (200 if asks else 303)
    silent = await browser.get(app.authorize_url(prompt="none"))
    assert answer_of(silent).get("error") == ("consent_required" if asks else None)


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 none")
@pytest.mark.openid("core 3.1.2.3 none")
async def test_prompt_none_never_shows_a_page(service: Service) -> None:
    url = service.web.authorize_url(prompt="none")
    assert answer_of(await service.browser().get(url)) == {
        "error": "login_required",
        "error_description": "The person has to sign in.",
        "state": "a-state",
        "iss": service.base_url,
    }
    browser = await service.signed_in()
    assert answer_of(await browser.get(url))["error"] == "consent_required"
    await browser.consent(service.web.authorize_url())
    assert "code" in answer_of(await browser.get(url))
    await service.store.operator.set_status("ada@example.com", "disabled")
    assert answer_of(await browser.get(url))["error"] == "login_required"


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("prompt", "signs_in", "asks"),
    [
        pytest.param("login", True, False, id="login"),
        pytest.param("consent", False, True, id="consent"),
        pytest.param("login consent", True, True, id="both"),
        pytest.param("", False, False, id="empty"),
    ],
)
async def test_prompt_forces_the_named_step(service: Service, prompt: str, signs_in: bool, asks: bool) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    response = await browser.get(service.web.authorize_url(prompt=prompt))
    if signs_in:
        assert response.headers["Location"].startswith("/signin?next=")
        page = await browser.get(response.headers["Location"])
        back = await browser.submit(page, "/signin", email="ada@example.com", password="correct horse battery")
        response = await browser.get(back.headers["Location"])
    assert response.code == (200 if asks else 303)
    if not asks:
        assert "code" in answer_of(response)


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "path",
    [
        "/oauth/authorize/",
        "/oauth/Authorize",
        "/v1/oauth/authorize",
        "/oauth/v1/authorize",
        "/api/v1/oauth/token",
        "/api/oauth/v1/token",
    ],
)
@pytest.mark.spec("9")
async def test_oauth_paths_have_no_version_and_one_spelling(service: Service, path: str) -> None:
    assert (await send(service.base_url + path)).code == 404
