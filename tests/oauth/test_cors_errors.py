"""Headers of answers and errors: CORS, security headers, challenges, no 304. SPEC 2.5, 7, 9."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from tests.support.http.driver import CALLBACK, EMAIL, FRESH, PASSWORD, Browser, Service, fields_of, json_of, send
from tests.support.lists.offenders import each

EVIL = "https://evil.test"
API = ("/api/oauth/token", "/api/oauth/userinfo", "/api/oauth/revoke", "/api/oauth/introspect")
METADATA = ("authorization-server", "protected-resource")
PAGES = (
    "/",
    "/signin",
    "/signup",
    "/account",
    "/account/apps",
    "/account/security",
    "/forgot",
    "/account/email",
    "/reset",
    "/nowhere",
)


def assert_cors(response: HTTPResponse) -> None:
    """Open to every origin without credentials, whatever was sent."""
    assert response.headers.get_list("Access-Control-Allow-Origin") == ["*"]
    assert "Access-Control-Allow-Credentials" not in response.headers
    exposed = {name.strip() for name in response.headers["Access-Control-Expose-Headers"].split(",")}
    assert exposed >= {
        "ETag",
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "Retry-After",
        "X-Request-Id",
    }


def assert_no_cors(response: HTTPResponse) -> None:
    """No header of CORS at all."""
    assert not [name for name, _ in response.headers.get_all() if name.startswith("Access-Control-")]


@pytest.mark.gen_test
@pytest.mark.trap(23)
@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost", "*", "https://app.example", ""])
async def test_origins_are_never_reflected_and_errors_have_cors_headers(service: Service, origin: str) -> None:
    access = (await service.tokens())["access_token"]
    sent = {"Origin": origin, "Cookie": "latchkey_session=x"}
    requests: list[tuple[str, str, dict[str, str], int]] = [
        ("GET", "/api/oauth/userinfo", {"Authorization": f"Bearer {access}"}, 200),
        ("GET", "/api/oauth/userinfo", {}, 401),
        ("DELETE", "/api/oauth/userinfo", {}, 405),
        ("POST", "/api/oauth/token", {}, 400),
        ("POST", "/api/oauth/token", {"Content-Type": "text/plain"}, 415),
        ("POST", "/api/oauth/revoke", {}, 400),
        ("GET", "/api/nowhere", {}, 404),
        ("OPTIONS", "/api/nowhere", {}, 404),
        # A client that knows only an address of this API tries the path of that address first (RFC 9728 3.1).
        ("GET", "/.well-known/oauth-protected-resource/api/v1/data", {}, 404),
        ("POST", "/api/oauth/introspect", {}, 400),
        *(("GET", f"/.well-known/oauth-{what}", {}, 200) for what in METADATA),
        ("GET", "/.well-known/jwks.json", {}, 200),
    ]
    for method, path, headers, status in requests:
        response = await send(service.base_url + path, method, headers={**sent, **headers})
        assert response.code == status, path
        assert_cors(response)
        assert EVIL not in str(list(response.headers.get_all()))
        assert "Set-Cookie" not in response.headers
    too_large = await send(f"{service.base_url}/api/oauth/token", "POST", form={"x": "y" * 70_000}, headers=sent)
    assert too_large.code == 413
    assert_cors(too_large)


@pytest.mark.gen_test
@pytest.mark.trap(23)
@pytest.mark.parametrize("path", [*API, "/.well-known/jwks.json", *(f"/.well-known/oauth-{what}" for what in METADATA)])
async def test_preflights_are_answered_with_lists(service: Service, path: str) -> None:
    headers = {
        "Origin": EVIL,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-evil",
    }
    response = await send(service.base_url + path, "OPTIONS", headers=headers)
    assert response.code == 204
    assert response.body == b""
    assert_cors(response)
    allowed = {name.strip() for name in response.headers["Access-Control-Allow-Headers"].split(",")}
    assert {"Authorization", "Content-Type", "If-Match", "If-None-Match"} <= allowed
    # Clients of the Model Context Protocol send it with every request, to the metadata too.
    assert "MCP-Protocol-Version" in allowed
    assert "*" not in allowed
    assert "x-evil" not in {name.lower() for name in allowed}
    assert {"GET", "POST"} <= {name.strip() for name in response.headers["Access-Control-Allow-Methods"].split(",")}


@pytest.mark.fapi("5.2.3-3 CORS")
@pytest.mark.gen_test
@pytest.mark.trap(23)
async def test_pages_and_the_decision_have_no_cors_headers(service: Service) -> None:
    browser = await service.signed_in()
    for path in (*PAGES, "/oauth/authorize", service.web.authorize_url(), "/api/oauth/authorize", "/healthz"):
        for method in ("GET", "OPTIONS", "POST"):
            response = await browser.send(path, method, headers={"Origin": EVIL})
            assert_no_cors(response)
            if method == "OPTIONS":
                assert response.code in (404, 405)
    page = await browser.get(service.web.authorize_url())
    assert_no_cors(await browser.submit(page, "/api/oauth/authorize", decision="deny"))


async def some_pages(service: Service, browser: Browser) -> list[HTTPResponse]:
    """Every kind of page: forms, errors, redirects."""
    consent = service.web.authorize_url(prompt="consent")
    found = [await browser.get(path) for path in (*PAGES, consent, "/oauth/authorize", "/signin?next=%ff")]
    found.append(await browser.send("/signin", "POST", form={"email": EMAIL}))
    page = await browser.get(f"/signin?next={FRESH}")
    found.append(await browser.submit(page, "/signin", email=EMAIL, password="wrong password"))
    found.append(await browser.submit(page, "/signin", email=EMAIL, password=PASSWORD))
    found.append(await browser.get("/account/apps/x/revoke"))
    return found


@pytest.mark.gen_test
@pytest.mark.trap(18)
async def test_every_page_forbids_framing_foreign_content_and_scripts(service: Service) -> None:
    pages = await some_pages(service, service.browser()) + await some_pages(service, await service.signed_in())
    assert {page.code for page in pages} >= {200, 303, 400, 403, 404, 405}
    for page in pages:
        headers = page.headers
        assert headers.get_list("X-Frame-Options") == ["DENY"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] in ("same-origin", "strict-origin")
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Request-Id"]
        policy = directives_of(page)
        assert policy["default-src"] == ["'none'"]
        assert policy["frame-ancestors"] == ["'none'"]
        assert policy["base-uri"] == ["'none'"]
        assert policy["style-src"] == ["'self'"]
        asks = b'action="/api/oauth/authorize"' in page.body  # for an app on the web, whose redirects nobody knows
        assert policy.get("form-action") == (None if asks else ["'self'"])
        # Only pages with passkeys, the page of apps and the one that asks for consent have a script, of this server.
        assert policy.get("script-src", ["'self'"]) == ["'self'"]
        assert policy.get("connect-src", ["'self'"]) == ["'self'"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        text = page.body.decode()
        assert not re.search(r'<script(?! src="/static/(passkeys|unhurried|zone|live)\.js)', text)
        assert "<style" not in text
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", text)
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//(?!app\.example)', text)


def directives_of(page: HTTPResponse) -> dict[str, list[str]]:
    """The directives of the only Content-Security-Policy."""
    (header,) = page.headers.get_list("Content-Security-Policy")
    return {words[0]: words[1:] for words in (part.split() for part in header.split(";"))}


@pytest.mark.gen_test
@pytest.mark.trap(18)
async def test_form_action_names_the_scheme_of_a_native_app_and_is_left_out_for_an_app_on_the_web(
    service: Service,
) -> None:
    uris = {
        CALLBACK: (service.web, None),
        "http://127.0.0.1:7777/cb": (service.native, None),
        "com.example.app:/cb": (service.native, ["'self'", "com.example.app:"]),
    }
    browser = await service.signed_in()
    for uri, (app, sources) in uris.items():
        url = app.authorize_url(redirect_uri=uri)
        consent = await browser.get(url)
        assert consent.code == 200
        assert directives_of(consent).get("form-action") == sources
        # The sign-in and sign-up pages on the way there, since remembered consent redirects from their form.
        away = (await service.browser().get(url)).headers["Location"]
        for path in (away, away.replace("/signin", "/signup")):
            page = await service.browser().get(path)
            assert directives_of(page).get("form-action") == sources


@pytest.mark.gen_test
@pytest.mark.trap(18)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"redirect_uri": EVIL + "/cb"}, id="an address that is not registered"),
        pytest.param({"redirect_uri": CALLBACK + "@evil.test"}, id="one that looks like it"),
        pytest.param({"redirect_uri": "https://evil.test;script-src 'unsafe-inline'"}, id="one that is a directive"),
        pytest.param({"redirect_uri": "*"}, id="a star"),
        pytest.param({"redirect_uri": None}, id="none"),
        pytest.param({"client_id": "nobody"}, id="an unknown app"),
        pytest.param({"client_id": None}, id="no app"),
    ],
)
async def test_form_action_of_an_unvalidated_redirect_is_this_origin_alone(
    service: Service, changes: dict[str, str | None]
) -> None:
    browser = service.browser()
    url = service.web.authorize_url(**changes)
    pages = [await browser.get(url)]
    for path in ("/signin", "/signup"):
        pages.append(await browser.get(f"{path}?next={quote(url, safe='')}"))
    pages.append(await browser.submit(pages[1], "/signin", email=EMAIL, password="wrong password"))
    assert [page.code for page in pages] == [400, 200, 200, 400]
    for page in pages:
        assert directives_of(page)["form-action"] == ["'self'"]
        assert "evil.test" not in page.headers["Content-Security-Policy"]
    # A failed sign-in to a good request lets the redirect through again.
    good = await browser.get(f"/signin?next={quote(service.web.authorize_url(), safe='')}")
    failed = await browser.submit(good, "/signin", email=EMAIL, password="wrong password")
    assert "form-action" not in directives_of(failed)


@pytest.mark.fapi("5.3.2.2-10 307")
@pytest.mark.fapi("5.3.2.2-11 303")
@pytest.mark.gen_test
@pytest.mark.trap(18)
async def test_every_redirect_is_303(service: Service) -> None:
    browser = service.browser()
    answers = [await browser.get("/account"), await browser.get(service.web.authorize_url()), await browser.sign_in()]
    page = await browser.get(service.web.authorize_url())
    answers.append(await browser.submit(page, "/api/oauth/authorize", decision="allow"))
    answers.append(await browser.get(service.web.authorize_url()))
    answers.append(await browser.get(service.web.authorize_url(scope="x")))
    answers.append(await browser.submit(await browser.get("/account/apps"), "/account/apps/web-app/revoke"))
    page = await browser.get("/account/security")
    answers.append(
        await browser.submit(page, "/account/security", current_password=PASSWORD, new_password="another horse battery")
    )
    page = await browser.get(f"/signup?next={FRESH}")
    form = {"email": "g@example.com", "name": "G", "password": PASSWORD}
    answers.append(await browser.submit(page, "/signup", **form))
    answers.append(await browser.submit(await browser.get("/account"), "/signout"))
    assert [answer.code for answer in answers] == [303] * len(answers)


GETS = (
    "/",
    "/signin",
    "/signup",
    "/account",
    "/account/apps",
    "/account/security",
    "/account/security",
    "/oauth/authorize",
    "/api/oauth/userinfo",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
    "/healthz",
    "/readyz",
    "/static/latchkey.css",
    "/static/favicon.svg",
)


@pytest.mark.gen_test
@pytest.mark.trap(25)
@pytest.mark.spec("9")
@each("path", GETS)
async def test_no_get_answers_304(service: Service, path: str) -> None:
    browser = await service.signed_in()
    access = (await service.tokens(browser=browser))["access_token"]
    if path == "/oauth/authorize":
        path = service.web.authorize_url(prompt="consent")
    if path in ("/signin", "/signup"):
        path += f"?next={FRESH}"
    authorization = {"Authorization": f"Bearer {access}"}
    first = await browser.send(path, headers=authorization)
    assert first.code == 200
    assert first.body
    if not path.startswith("/static/"):
        assert "Etag" not in first.headers
    etag = first.headers.get("Etag", '"x"')
    for condition in (
        {"If-None-Match": "*"},
        {"If-None-Match": etag},
        {"If-None-Match": f'W/"x", {etag}'},
        {"If-Modified-Since": "Fri, 31 Dec 2100 23:59:59 GMT"},
    ):
        for method in ("GET", "HEAD"):
            response = await browser.send(path, method, headers={**authorization, **condition})
            assert response.code == 200, (method, condition)
            assert bool(response.body) is (method == "GET")


@pytest.mark.gen_test
@pytest.mark.spec("2.5")
@pytest.mark.spec("7")
async def test_all_errors_have_one_form(service: Service) -> None:
    tokens = await service.tokens(scope="data:read")
    errors = {
        (400, "invalid_request"): await service.web.token(),
        (400, "invalid_grant"): await service.web.exchange("lk_ac_x"),
        (400, "invalid_scope"): await service.web.refresh(tokens["refresh_token"], scope="profile"),
        (400, "unsupported_grant_type"): await service.web.token(grant_type="x"),
        (401, "invalid_client"): await service.web.exchange("x", client_secret="x"),
        (401, "invalid_token"): await service.web.userinfo("x"),
        (403, "insufficient_scope"): await service.web.userinfo(tokens["access_token"]),
        (404, "not_found"): await send(service.base_url + "/api/x"),
        (405, "method_not_allowed"): await send(service.base_url + "/api/oauth/token"),
    }
    for (status, code), response in errors.items():
        assert response.code == status
        body: Any = json_of(response)
        assert set(body) == {"error", "error_description"}
        assert body["error"] == code
        assert isinstance(body["error_description"], str)
        assert body["error_description"]
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Request-Id"]
        assert ("WWW-Authenticate" in response.headers) == (code in ("invalid_token", "insufficient_scope"))


def test_every_error_code_has_a_status_and_a_text() -> None:
    for code, entry in CATALOGUE.items():
        assert re.fullmatch("[a-z_]+", code)
        assert 400 <= entry.status < 600
        assert entry.description.endswith(".")
    assert set(PUBLIC_NAME) < set(CATALOGUE)
    assert set(PUBLIC_NAME.values()) < set(CATALOGUE)


@pytest.mark.gen_test
async def test_an_xsrf_failure_is_a_page_or_json_as_requested(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.send("/signout", "POST", form={"x": "y"})
    assert page.code == 403
    assert b"Not allowed" in page.body
    as_json = await browser.send("/signout", "POST", form={"x": "y"}, headers={"Accept": "application/json"})
    assert as_json.code == 403
    assert json_of(as_json)["error"] == "access_denied"
    assert fields_of(await browser.get("/account"), "/signout")
