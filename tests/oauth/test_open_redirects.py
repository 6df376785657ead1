"""GET /oauth/authorize over HTTP: which errors redirect to an app, and which show a page. RFC 9700 4.11.2."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from handlers.core.site import Site
from store.apps.redirect_uris import InvalidRedirectURI, check_redirect_uri, is_own_origin
from store.apps.registration import Registration
from store.wiring import Store
from tests.support.http.driver import CALLBACK, App, Service, answer_of, json_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)

WRONG = [
    pytest.param({"scope": "everything"}, "invalid_scope", id="an unknown scope"),
    pytest.param({"response_type": "token"}, "unsupported_response_type", id="another response type"),
    pytest.param({"state": None}, "invalid_request", id="no state"),
    pytest.param({"prompt": "everything"}, "invalid_request", id="an unknown prompt"),
    pytest.param({"prompt": "login", "scope": "everything"}, "invalid_scope", id="a new sign-in is wanted as well"),
]


async def owned(service: Service, **fields: object) -> App:
    """An app of a person's."""
    owner = await service.add_person("mallory@example.com")
    return await service.add_app("anybodys", owner=owner, **fields)


@pytest.mark.fapi("5.3.2.1-7 open redirectors")
@pytest.mark.trap(42)
@pytest.mark.trap(13)
@pytest.mark.parametrize(("changes", "error"), WRONG)
async def test_errors_redirect_to_a_self_registered_app_only_after_sign_in(
    service: Service, changes: dict[str, str | None], error: str
) -> None:
    app = await owned(service)
    browser = service.browser()
    away = await browser.get(app.authorize_url(**changes))
    assert away.code == 303
    assert away.headers["Location"].startswith("/signin?next=")
    page = await browser.get(away.headers["Location"])
    back = await browser.submit(page, "/signin", email="ada@example.com", password="correct horse battery")
    response = await browser.get(back.headers["Location"])
    assert response.headers["Location"].startswith(CALLBACK + "?")
    assert answer_of(response)["error"] == error
    # A cookie whose session has ended counts for nothing.
    await service.store.operator.set_status("ada@example.com", "disabled")
    again = await browser.get(app.authorize_url(**changes))
    assert again.headers["Location"].startswith("/signin?next=")


@pytest.mark.trap(42)
@pytest.mark.parametrize("signed_in", [False, True], ids=["signed out", "signed in without a grant"])
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"prompt": "none"}, None, id="a request without fault"),
        pytest.param({"prompt": "none", "scope": "everything"}, "invalid_scope", id="an unknown scope"),
        pytest.param({"prompt": "none login"}, "invalid_request", id="none with another prompt"),
    ],
)
async def test_prompt_none_of_a_self_registered_app_shows_a_page_with_the_target(
    service: Service, changes: dict[str, str | None], error: str | None, signed_in: bool
) -> None:
    app = await owned(service, name='<b>"Bank"</b>')
    browser = await service.signed_in() if signed_in else service.browser()
    error = error or ("consent_required" if signed_in else "login_required")
    page = await browser.get(app.authorize_url(**changes))
    assert page.code == 200
    assert "Location" not in page.headers
    assert "Refresh" not in page.headers
    text = page.body.decode()
    assert "<strong>app.example</strong>" in text
    assert "<b>" not in text
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', text)]
    (target,) = (link for link in links if link.startswith(CALLBACK))
    assert f"error={error}&" in target
    assert "state=a-state" in target


async def test_a_covering_grant_gives_a_self_registered_app_a_code(service: Service) -> None:
    app = await owned(service)
    browser = await service.signed_in()
    await browser.consent(app.authorize_url())
    assert "code" in answer_of(await browser.get(app.authorize_url(prompt="none")))
    assert (await browser.get(app.authorize_url(prompt="none", scope="profile credits:read"))).code == 200


async def test_an_app_given_to_a_person_counts_as_self_registered(service: Service) -> None:
    app = await service.add_app("handed-over")
    url = app.authorize_url(scope="everything")
    assert answer_of(await service.browser().get(url))["error"] == "invalid_scope"
    await service.store.apps.update("handed-over", owner=service.ada)
    assert (await service.browser().get(url)).headers["Location"].startswith("/signin?")


@each(
    ("uri", "base", "own"),
    [
        pytest.param("https://id.example/account", "https://id.example", True, id="the origin"),
        pytest.param("https://id.example:443/cb", "https://id.example", True, id="its default port, written out"),
        pytest.param("https://id.example/cb", "https://id.example:443", True, id="the base URL's port, written out"),
        pytest.param("https://id.example:8443/cb", "https://id.example", False, id="another port"),
        pytest.param("https://app.id.example/cb", "https://id.example", False, id="below it"),
        pytest.param("http://localhost:8000/cb", "http://127.0.0.1:8000", True, id="another name of loopback"),
        pytest.param("http://[::1]:8000/cb", "http://localhost:8000", True, id="loopback in IPv6"),
        pytest.param("http://[::1]:8000/cb", "http://[::1]:8000", True, id="the same address in IPv6"),
        pytest.param("http://127.0.0.1:9000/cb", "http://localhost:8000", False, id="another program on loopback"),
        pytest.param("com.example.app:/cb", "https://id.example", False, id="a scheme of its own"),
    ],
)
def test_the_servers_origin_is_no_redirect_uri(uri: str, base: str, own: bool) -> None:
    assert is_own_origin(uri, base) == own
    if own:
        with pytest.raises(InvalidRedirectURI, match="this server itself"):
            check_redirect_uri(uri, True, base)


async def test_an_app_at_the_servers_origin_always_gets_a_page(service: Service) -> None:
    uris = (f"{service.base_url}/account", "http://127.0.0.1/cb")
    app = await service.add_app("inside", public=True, redirect_uris=uris)
    browser = await service.signed_in()
    own = f"http://127.0.0.1:{service.base_url.rpartition(':')[2]}/cb"
    for uri in (uris[0], own):
        page = await browser.get(app.authorize_url(redirect_uri=uri))
        assert (page.code, "Location" in page.headers) == (400, False)
        assert b"back to this server" in page.body
    assert (await browser.get(app.authorize_url(redirect_uri=uris[1]))).code == 200


async def test_the_portal_refuses_the_servers_origin(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/developer/register")
    uris = f"https://app.example/cb\n{service.base_url}/developer"
    refused = await browser.submit(page, "/developer/register", name="Inside", redirect_uris=uris)
    assert refused.code == 400
    assert b"Line 2: This is the address of this server itself" in refused.body


@pytest.fixture
def site(memory_store: Store, base_url: str, request: pytest.FixtureRequest) -> Site:
    return Site(memory_store, base_url, **getattr(request, "param", {}))


@pytest.mark.spec("5.2")
@pytest.mark.parametrize("site", [{"require_pkce": True}], indirect=True)
async def test_the_server_can_require_pkce_for_every_app(service: Service) -> None:
    browser = await service.signed_in()
    refused = answer_of(await browser.get(service.web.authorize_url(code_challenge=None)))
    assert refused["error"] == "invalid_request"
    assert "Every app of this server must use PKCE" in refused["error_description"]
    assert "code" in answer_of(await browser.consent(service.web.authorize_url()))
    metadata = await browser.get("/.well-known/oauth-authorization-server")
    assert json_of(metadata)["require_pkce"] is True
    form = await browser.get("/developer/register")
    assert b"This server requires PKCE of every app" in form.body


def test_an_app_with_an_owner_is_not_the_operators() -> None:
    facts: dict[str, Any] = {"name": "An App", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}
    assert Registration("an-app", **facts).from_operator
    assert not Registration("an-app", **facts, owner="0" * 32).from_operator
