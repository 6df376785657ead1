"""What apps that registered themselves may ask for, leave out, and look like. RFC 9700 2.1, 4.11.2."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers.core.site import Site
from store.apps.registration import InvalidRegistration
from store.wiring import Store
from tests.support.http.api_shop import BILLS, ORDERS, Shop, about
from tests.support.http.driver import Service, answer_of, json_of
from tests.support.http.self_registered import register

WEB = "https://notes.example/cb"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server that registers every app."""
    return Site(memory_store, base_url, dynamic_registration="open")


@pytest.mark.gen_test
async def test_they_may_ask_for_scopes_of_every_api_without_a_care_flag(service: Service) -> None:
    shop, app = await Shop.open(service), await register(service.base_url)
    browser = await service.signed_in()
    # Without a scope: what the resource's metadata name, as far as the app may have it.
    for resource, scope, given in (
        (ORDERS.identifier, None, "read"),
        (ORDERS.identifier, "read", "read"),
        (BILLS.identifier, None, "read admin"),
        (service.base_url, None, "openid profile email"),
        (None, "openid email", "openid email"),
    ):
        answer = answer_of(await browser.consent(app.authorize_url(scope=scope, resource=resource, state=None)))
        tokens = json_of(await app.exchange(answer["code"]))
        assert tokens["scope"] == given, (resource, scope)
    refused = {"credits:spend": None, "data:read": None, "groups": None, "read write": ORDERS.identifier}
    for scope, resource in refused.items():
        answer = answer_of(await browser.get(app.authorize_url(scope=scope, resource=resource)))
        assert answer["error"] == "invalid_scope", scope
    # An API sees the app at introspection like every other.
    code = answer_of(await browser.consent(app.authorize_url(scope=None, resource=ORDERS.identifier)))["code"]
    access = json_of(await app.exchange(code))["access_token"]
    seen = await about(service, access, ORDERS.client_id, shop.secrets[ORDERS.client_id])
    assert (seen["active"], seen["client_id"], seen["scope"]) == (True, app.client_id, "read")


@pytest.mark.gen_test
async def test_a_care_flag_given_later_ends_what_they_have(service: Service) -> None:
    shop, app = await Shop.open(service), await register(service.base_url)
    browser = await service.signed_in()
    code = answer_of(await browser.consent(app.authorize_url(scope="read", resource=ORDERS.identifier)))["code"]
    tokens = json_of(await app.exchange(code))
    careful = tuple(type(one)(one.name, one.title, one.detail, care=True) for one in ORDERS.scopes)
    await service.store.apis.update(ORDERS.client_id, scopes=careful)
    service.store.apps.forget()
    asked = ORDERS.client_id, shop.secrets[ORDERS.client_id]
    assert await about(service, tokens["access_token"], *asked) == {"active": False}
    assert (await app.refresh(tokens["refresh_token"])).code == 400


@pytest.mark.gen_test
async def test_no_person_means_no_token(service: Service) -> None:
    await Shop.open(service)
    app = await register(service.base_url, token_endpoint_auth_method=None)
    refused = await app.token(grant_type="client_credentials", resource=ORDERS.identifier)
    assert (refused.code, json_of(refused)["error"]) == (400, "unauthorized_client")


@pytest.mark.gen_test
@pytest.mark.trap(15)
@pytest.mark.parametrize(
    ("sent", "fits"),
    [
        ("http://localhost:1/callback", True),
        ("http://localhost/callback", True),
        ("http://localhost:65535/callback", True),
        ("http://127.0.0.1:1/callback", False),
        ("http://localhost:0/callback", False),
        ("http://localhost:1/callback/", False),
        ("http://localhost:1/Callback", False),
        ("http://LOCALHOST:1/callback", False),
        ("http://localhost.evil.example/callback", False),
        ("http://localhost@evil.example/callback", False),
        ("https://localhost/callback", False),
    ],
)
async def test_only_the_port_of_a_loopback_host_may_differ(service: Service, sent: str, fits: bool) -> None:
    app = await register(service.base_url)
    page = await (await service.signed_in()).get(app.authorize_url(redirect_uri=sent, scope=None))
    assert (page.code, b'value="allow"' in page.body) == (200 if fits else 400, fits)
    assert "Location" not in page.headers


@pytest.mark.gen_test
async def test_pkce_is_required_of_a_confidential_one_too(service: Service) -> None:
    app = await register(service.base_url, token_endpoint_auth_method=None)
    answer = answer_of(await (await service.signed_in()).get(app.authorize_url(scope=None, code_challenge=None)))
    assert answer["error"] == "invalid_request"
    assert "PKCE" in answer["error_description"]


@pytest.mark.gen_test
@pytest.mark.trap(42)
async def test_before_a_sign_in_their_errors_are_pages(service: Service) -> None:
    app, stranger = await register(service.base_url, redirect_uris=[WEB]), service.browser()
    quiet = await stranger.get(app.authorize_url(prompt="none", scope="credits:spend"))
    assert quiet.code == 200
    assert "notes.example" in quiet.body.decode()
    wrong = await stranger.get(app.authorize_url(scope="credits:spend"))
    assert wrong.headers["Location"].startswith("/signin?")
    after = await (await service.signed_in()).get(app.authorize_url(scope="credits:spend"))
    assert answer_of(after)["error"] == "invalid_scope"


@pytest.mark.gen_test
@pytest.mark.rfc("7591 5 impersonation")
@pytest.mark.trap(60)
async def test_the_consent_page_says_that_nobody_vouches_for_them(service: Service) -> None:
    browser = await service.signed_in()
    for name, warned in (("Notes", False), ("Microsoft Outlook", True)):
        app = await register(service.base_url, client_name=name, redirect_uris=[WEB], logo_uri=f"{WEB}/logo.png")
        text = words_of(await page_of(browser, app))
        first = "This" if warned else "this"
        assert f"Not verified {first} app registered itself, and nobody has checked it" in text
        assert ("Its name looks like Microsoft" in text) is warned
        assert "logo.png" not in text
        kept = await service.store.apps.find(app.client_id)
        assert kept is not None
        for vouched in ({"verified": True}, {"domain": "notes.example"}, {"owner": service.ada}):
            with pytest.raises(InvalidRegistration, match="nobody owns or vouches"):
                await service.store.apps.update(app.client_id, **vouched)


@pytest.mark.gen_test
async def test_an_app_list_and_an_export_know_them(service: Service) -> None:
    app, browser = await register(service.base_url), await service.signed_in()
    await browser.consent(app.authorize_url(scope=None))
    other = await service.tokens(scope="apps:read profile")
    listed = json_of(await browser.send("/api/v1/apps", headers={"Authorization": f"Bearer {other['access_token']}"}))
    assert [one["client_id"] for one in listed["apps"]] == [app.client_id]
    page = words_of((await browser.get("/account/apps")).body.decode())
    assert "asks you to sign in again after 365 days" in page
    assert "It registered itself" in page


async def page_of(browser: Any, app: Any) -> str:
    """The consent page."""
    text: str = (await browser.get(app.authorize_url(scope=None))).body.decode()
    return text


def words_of(page: str) -> str:
    """The text of a page, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.mark.gen_test
async def test_a_pushed_request_may_leave_the_same_out(service: Service) -> None:
    app = await register(service.base_url)
    url = app.authorize_url(scope=None, state=None).partition("?")[2]
    pushed = await service.browser().send("/api/oauth/par", "POST", body=url, headers=FORM)
    assert pushed.code == 201
    request_uri = json_of(pushed)["request_uri"]
    query = urlencode({"client_id": app.client_id, "request_uri": request_uri})
    answer = answer_of(await (await service.signed_in()).consent(f"/oauth/authorize?{query}"))
    assert json_of(await app.exchange(answer["code"]))["scope"] == "profile"


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
