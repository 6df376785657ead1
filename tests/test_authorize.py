"""GET /oauth/authorize over HTTP: who may be redirected where, and with what. SPEC 4.1, 5.2, 5.3."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

import pytest

from store.redirect_uris import InvalidRedirectURI
from tests.driver import ALL_SCOPES, CALLBACK, App, Service, answer_of, challenge, json_of, query_of, send

LOOPBACK = "http://127.0.0.1:8400/native"
EVIL = "https://evil.test/steal"


@pytest.mark.gen_test
@pytest.mark.spec("4.1")
async def test_browser_comes_back_with_code_and_state_and_nothing_else_but_the_issuer(service: Service) -> None:
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
async def test_issuer_is_left_out_where_the_registration_says_so(service: Service) -> None:
    app = await service.add_app("no-iss", iss_in_response=False)
    redirect = await (await service.signed_in()).consent(app.authorize_url())
    assert set(answer_of(redirect)) == {"code", "state"}
    denied = await (await service.signed_in()).consent(app.authorize_url(prompt="consent"), "deny")
    assert set(answer_of(denied)) == {"error", "state"}


# Each is a change of a good request whose redirect_uri is the evil one: whatever else is wrong, nobody is sent there.
@pytest.mark.gen_test
@pytest.mark.trap(13)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="the address alone is wrong"),
        pytest.param({"client_id": "nobody"}, id="unknown app"),
        pytest.param({"client_id": None}, id="no app"),
        pytest.param({"client_id": "../../etc"}, id="an app id of another form"),
        pytest.param({"response_type": "token"}, id="wrong response_type"),
        pytest.param({"response_type": None}, id="no response_type"),
        pytest.param({"scope": "everything"}, id="unknown scope"),
        pytest.param({"scope": "openid profile"}, id="unregistered scope"),
        pytest.param({"state": None}, id="no state"),
        pytest.param({"code_challenge_method": "plain"}, id="plain PKCE"),
        pytest.param({"prompt": "none"}, id="no page wanted"),
        pytest.param({"client_id": "disabled-app"}, id="disabled app"),
    ],
)
async def test_an_evil_redirect_uri_gets_a_page_whatever_else_is_wrong(
    service: Service, changes: dict[str, str | None]
) -> None:
    await service.add_app("disabled-app", redirect_uris=(EVIL,), status="disabled")
    browser = await service.signed_in()
    for visitor in (browser, service.browser()):
        response = await visitor.get(service.web.authorize_url(redirect_uri=EVIL, **changes))
        assert response.code == 400
        assert "Location" not in response.headers
        assert response.headers["Content-Type"].startswith("text/html")
        assert b"evil.test" not in response.body
        assert "evil.test" not in response.headers["Content-Security-Policy"]
        as_json = await visitor.get(service.web.authorize_url(redirect_uri=EVIL, **changes), Accept="application/json")
        assert as_json.code == 400
        assert "Location" not in as_json.headers
        assert json_of(as_json)["error"] == "invalid_request"


REGISTERED = "https://app.example/callback"
VARIANTS = {
    "extra query": REGISTERED + "?x=1",
    "empty query": REGISTERED + "?",
    "path parameters": REGISTERED + ";params",
    "path parameters inside": "https://app.example/;x/callback",
    "userinfo": "https://user@app.example/callback",
    "userinfo that is the app's host": "https://app.example@evil.test/callback",
    "several @": "https://app.example@app.example@evil.test/callback",
    "userinfo with password": "https://app.example:443@evil.test/callback",
    "empty fragment": REGISTERED + "#",
    "fragment": REGISTERED + "#x",
    "host ended by a fragment": "https://evil.test#@app.example/callback",
    "..;/": "https://app.example/x/..;/callback",
    "dot segments": "https://app.example/x/../callback",
    "escaped dot segments": "https://app.example/%2e%2e/callback",
    "escaped dot segments after the path": REGISTERED + "/%2e%2e/%2e%2e/evil",
    "an escaped letter": "https://app.example/%63allback",
    "another host under the app's name": "https://app.example.evil.test/callback",
    "another host that ends like it": "https://evilapp.example/callback",
    "a subdomain": "https://www.app.example/callback",
    "host in another case": "https://APP.example/callback",
    "scheme in another case": "HTTPS://app.example/callback",
    "path in another case": "https://app.example/Callback",
    "trailing slash": REGISTERED + "/",
    "trailing dot of the path": REGISTERED + ".",
    "trailing dot of the host": "https://app.example./callback",
    "a dot that stands for another character": "https://appxexample/callback",
    "default port": "https://app.example:443/callback",
    "another port": "https://app.example:8443/callback",
    "http": "http://app.example/callback",
    "no scheme": "//app.example/callback",
    "path alone": "/callback",
    "backslash": "https://app.example\\callback",
    "backslash before @": "https://evil.test\\@app.example/callback",
    "double slash": "https://app.example//callback",
    "leading space": " " + REGISTERED,
    "trailing space": REGISTERED + " ",
    "trailing newline": REGISTERED + "\n",
    "newline and a header": REGISTERED + "\r\nSet-Cookie: a=b",
    "tab inside": "https://app.exa\tmple/callback",
    "full-width letters": "https://\uff41pp.example/callback",
    "ideographic full stop": "https://app\u3002example/callback",
    "prefix only": "https://app.example/",
    "longer path": REGISTERED + "/more",
    "javascript": "JavaScript:alert(1)//app.example/callback",
    "data": "data:text/html,https://app.example/callback",
    "the registered one twice": REGISTERED + " " + REGISTERED,
    "a comma between two": REGISTERED + "," + EVIL,
    "very long": REGISTERED + "?" + "a" * 5000,
}


@pytest.mark.gen_test
@pytest.mark.trap(14)
@pytest.mark.spec("4.1")
@pytest.mark.spec("2.1")
async def test_no_variant_of_the_registered_redirect_uri_is_taken_for_it(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())  # consent is remembered: a match would redirect at once
    assert (await browser.get(service.web.authorize_url())).code == 303
    for name, uri in VARIANTS.items():
        response = await browser.get(service.web.authorize_url(redirect_uri=uri))
        assert response.code == 400, name
        assert "Location" not in response.headers, name
        assert "Refresh" not in response.headers, name
        assert b"evil.test" not in response.body, name
        assert b"http-equiv" not in response.body, name


@pytest.mark.gen_test
@pytest.mark.trap(14)
@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([("redirect_uri", CALLBACK), ("redirect_uri", EVIL)], id="the good one first"),
        pytest.param([("redirect_uri", EVIL), ("redirect_uri", CALLBACK)], id="the evil one first"),
        pytest.param([("redirect_uri", CALLBACK), ("redirect_uri", CALLBACK)], id="the good one twice"),
        pytest.param([("redirect_uri", CALLBACK), ("client_id", "native-app")], id="two apps"),
        pytest.param([], id="none at all, though one only is registered"),
        pytest.param([("redirect_uri", "")], id="an empty one"),
    ],
)
async def test_which_address_is_meant_must_be_said_once(service: Service, pairs: list[tuple[str, str]]) -> None:
    base = service.web.authorize_url(redirect_uri=None)
    response = await (await service.signed_in()).get(f"{base}&{urlencode(pairs)}")
    assert response.code == 400
    assert "Location" not in response.headers


@pytest.mark.gen_test
@pytest.mark.trap(15)
@pytest.mark.parametrize(
    ("presented", "fits"),
    [
        pytest.param("http://127.0.0.1/cb", True, id="as registered"),
        pytest.param("http://127.0.0.1:49152/cb", True, id="another port"),
        pytest.param("http://[::1]:1/cb", True, id="another port, IPv6"),
        pytest.param("http://127.0.0.1:8400/native?a=b", True, id="registered with a port, presented with another"),
        pytest.param("http://127.0.0.1:49152/CB", False, id="another case of the path"),
        pytest.param("http://127.0.0.1:49152/cb/", False, id="another path"),
        pytest.param("http://127.0.0.1:49152/cb?x=1", False, id="another query"),
        pytest.param("HTTP://127.0.0.1:49152/cb", False, id="another case of the scheme"),
        pytest.param("https://127.0.0.1:49152/cb", False, id="another scheme"),
        pytest.param("http://localhost:49152/cb", False, id="a name for the address"),
        pytest.param("http://127.0.0.2:49152/cb", False, id="another loopback address"),
        pytest.param("http://127.1:49152/cb", False, id="another way to write the address"),
        pytest.param("http://[0:0:0:0:0:0:0:1]:1/cb", False, id="another way to write the IPv6 address"),
        pytest.param("http://127.0.0.1:49152@evil.test/cb", False, id="the port is a password"),
        pytest.param("http://127.0.0.1:x@evil.test/cb", False, id="userinfo"),
        pytest.param("http://127.0.0.1:0/cb", False, id="port 0"),
        pytest.param("http://127.0.0.1:65536/cb", False, id="no port at all"),
        pytest.param("http://127.0.0.1:/cb", False, id="an empty port"),
        pytest.param("http://127.0.0.1.evil.test:80/cb", False, id="another host"),
        pytest.param("http://localhost.evil.test/cb", False, id="localhost.evil.test"),
        pytest.param("http://localhost:9/l", False, id="a registered localhost with another port"),
        pytest.param("http://localhost/l", True, id="a registered localhost"),
    ],
)
async def test_loopback_matches_any_port_and_nothing_else(service: Service, presented: str, fits: bool) -> None:
    uris = ("http://127.0.0.1/cb", "http://[::1]/cb", "http://127.0.0.1:1234/native?a=b", "http://localhost/l")
    app = await service.add_app("loop", public=True, redirect_uris=uris)
    browser = await service.signed_in()
    page = await browser.get(app.authorize_url(redirect_uri=presented))
    assert page.code == (200 if fits else 400)
    if fits:
        redirect = await browser.submit(page, "/api/oauth/authorize", decision="allow")
        assert redirect.headers["Location"].startswith(presented + ("&" if "?" in presented else "?") + "code=")
        # SPEC 4.3: the exchange wants the one of the request, port included.
        response = await app.exchange(answer_of(redirect)["code"], redirect_uri=presented)
        assert response.code == 200


@pytest.mark.gen_test
@pytest.mark.trap(16)
@pytest.mark.parametrize(
    "uri",
    [
        "JavaScript:alert(1)",
        "javascript:alert(1)//app.example/cb",
        "java\tscript:alert(1)",
        "data:text/html,x",
        "DATA:text/html;base64,eA==",
        "vbscript:msgbox(1)",
        "file:///etc/passwd",
        "blob:https://app.example/x",
        "https://app.example/\x00cb",
        "https://app.example/cb\r\nX: y",
        "https://app.example/\x7f",
        "https://app.example/%0d%0aX",
        "\x01https://app.example/cb",
        " https://app.example/cb",
    ],
)
async def test_schemes_that_run_and_control_characters_never_register_and_never_match(
    service: Service, uri: str
) -> None:
    for public in (False, True):
        with pytest.raises(InvalidRedirectURI):
            await service.add_app(f"evil-{public}", public=public, redirect_uris=(uri,))
        assert await service.store.apps.find(f"evil-{public}") is None
    for app in (service.web, service.native):
        response = await (await service.signed_in()).get(app.authorize_url(redirect_uri=uri))
        assert response.code == 400
        assert "Location" not in response.headers


GOOD = challenge()


@pytest.mark.gen_test
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
async def test_what_else_is_wrong_goes_back_to_the_app(
    service: Service, changes: dict[str, str | None], error: str
) -> None:
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
async def test_scope_the_app_did_not_register_is_refused_and_each_registered_one_can_be_had(service: Service) -> None:
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
async def test_app_with_hosted_storage_must_ask_for_a_data_scope(
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
async def test_pkce_is_mandatory_where_the_registration_says_so(
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
async def test_repeated_parameter_goes_back_to_the_app_as_invalid_request(service: Service, name: str) -> None:
    response = await (await service.signed_in()).get(service.web.authorize_url() + f"&{name}=a&{name}=b")
    answer = answer_of(response)
    assert answer["error"] == "invalid_request"
    assert answer.get("state") == (None if name == "state" else "a-state")


@pytest.mark.gen_test
async def test_registered_query_stays_and_the_answer_is_added(service: Service) -> None:
    app = await service.add_app("query", redirect_uris=(CALLBACK + "?tenant=7&x=%20",))
    redirect = await (await service.signed_in()).consent(app.authorize_url())
    assert redirect.headers["Location"].startswith(CALLBACK + "?tenant=7&x=%20&code=lk_ac_")


@pytest.mark.gen_test
async def test_not_signed_in_goes_to_sign_in_and_back_with_the_same_request(service: Service) -> None:
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
async def test_consent_is_remembered_for_at_most_the_scopes_that_were_granted(service: Service) -> None:
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
async def test_who_can_be_impersonated_is_asked_about_every_time(
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
        pytest.param("select_account", False, False, id="select_account is not acted on"),
        pytest.param("", False, False, id="empty"),
    ],
)
async def test_prompt_forces_what_it_names(service: Service, prompt: str, signs_in: bool, asks: bool) -> None:
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
async def test_the_paths_of_oauth_carry_no_version_and_have_one_spelling(service: Service, path: str) -> None:
    assert (await send(service.base_url + path)).code == 404


@pytest.mark.gen_test(timeout=20)
async def test_an_app_that_was_disabled_or_deleted_gets_a_page(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    await service.store.apps.update("web-app", status="disabled")
    assert (await browser.get(service.web.authorize_url())).code == 400
    await service.store.apps.update("web-app", status="active")
    assert (await browser.get(service.web.authorize_url())).code == 303
    await service.store.apps.delete("web-app")
    response = await browser.get(service.web.authorize_url())
    assert response.code == 400
    assert "Location" not in response.headers


@pytest.mark.gen_test
async def test_parameters_in_a_post_count_for_nothing(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    response = await browser.submit(page, "/api/oauth/authorize", redirect_uri=EVIL, client_id="other", decision="deny")
    assert response.headers["Location"].startswith(CALLBACK + "?")
    wrong: App = service.web
    assert (await browser.get(f"/oauth/authorize?client_id={quote(wrong.client_id)}")).code == 400
