"""The person's decision about an API: its scopes on the page one by one, and what a decision changes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from store.apps.api_record import ApiScope
from store.crypto.seal import new_id
from tests.support.http.api_shop import ADMIN, BILLS, ORDERS, READ, WRITE, Shop, at, called, error_of
from tests.support.http.decision import decide_as_json
from tests.support.http.driver import Browser, Service, answer_of, fields_of, json_of, query_of, text_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)
DECIDE = "/api/oauth/authorize"


async def page_for(shop: Shop, browser: Browser, **changes: str | None) -> Any:
    """The consent page."""
    page = await browser.get(shop.app.authorize_url(**changes))
    assert page.code == 200, page.body
    return page


async def granted(service: Service, client_id: str = "shop") -> set[str]:
    """The stored scopes of the grant."""
    keys = [key async for key in service.store.client.scan_iter(f"*:grant:{client_id}")]
    scope: Any = await service.store.client.hget(keys[0], "scope")
    return set(scope.decode().split())


async def test_the_page_shows_scopes_under_the_name_of_their_api(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    page = await page_for(shop, browser, scope="openid data:read write read", resource=ORDERS.identifier)
    words = text_of(page)
    here, there = words.index("It will be able to:"), words.index("At Orders (orders.example) it will be able to:")
    assert here < words.index("Read what it has stored for you") < there < words.index(READ.title)
    assert words.index(READ.title) < words.index(READ.detail) < words.index(WRITE.title) < words.index("Take care")
    assert words.count("Take care") == 1
    form = fields_of(page, DECIDE)
    assert {name for name in form if name.startswith("scope:")} == {"scope:data:read", "scope:read", "scope:write"}


async def test_a_name_of_an_api_is_text_on_the_page(service: Service) -> None:
    shop = await Shop.open(service)
    evil = ApiScope("<b>x</b>", "<i>A title</i>", "<u>A detail</u>")
    await service.store.apis.update(ORDERS.client_id, name="<b>Orders</b>", scopes=(evil,))
    await service.store.apps.update("shop", api_scopes=at(ORDERS, evil.name))
    browser = await service.signed_in()
    page = await page_for(shop, browser, scope=evil.name)
    assert not re.search(rb"<(b|i|u)>", page.body)
    assert f"scope:{evil.name}" in fields_of(page, DECIDE)
    code = answer_of(await browser.submit(page, DECIDE, decision="allow"))["code"]
    assert json_of(await shop.app.exchange(code))["scope"] == evil.name


async def test_each_scope_is_ticked_by_itself(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    url = shop.app.authorize_url(scope="profile data:read read write", resource=ORDERS.identifier)
    back = await browser.consent(url, untick=("write", "data:read"))
    tokens = json_of(await shop.app.exchange(answer_of(back)["code"]))
    assert tokens["scope"] == "read"
    assert (await shop.refresh(tokens, resource=service.base_url))["scope"] == "profile"
    assert await granted(service) == {"profile", *at(ORDERS, "read")}


@pytest.mark.trap(43)
async def test_a_decision_about_one_api_leaves_all_other_scopes(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    bills = await shop.tokens("read admin", browser, resource=BILLS.identifier)
    orders = await shop.tokens("data:read read write", browser, resource=ORDERS.identifier)
    both = {"data:read", *at(ORDERS, "read", "write"), *at(BILLS, "read", "admin")}
    assert await granted(service) == both
    await browser.consent(
        shop.app.authorize_url(scope="read write", resource=ORDERS.identifier, prompt="consent"), untick=("read",)
    )
    assert await granted(service) == both - {*at(ORDERS, "read")}, "not the scope of the same name at another API"
    assert (await shop.at(ORDERS, orders["access_token"]))["scope"] == "write"
    assert (await shop.at(BILLS, bills["access_token"]))["scope"] == "read admin"
    await browser.consent(shop.app.authorize_url(scope="profile", prompt="consent"))
    assert await granted(service) == {"profile", *both} - {*at(ORDERS, "read")}
    app = await service.store.apps.find("shop")
    assert app is not None
    await service.store.tokens.mint(service.ada, app, ("credits:read",))
    assert await granted(service) == {"profile", "credits:read", *both} - {*at(ORDERS, "read")}


@pytest.mark.trap(43)
async def test_scopes_of_a_revoked_grant_do_not_come_back(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    tokens = await shop.tokens("read write", browser, resource=ORDERS.identifier)
    await browser.submit(await browser.get("/account/apps"), "/account/apps/shop/revoke")
    await browser.consent(shop.app.authorize_url(scope="profile"))
    assert await granted(service) == {"profile"}
    assert error_of(await shop.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await browser.get(shop.app.authorize_url(scope="read", resource=ORDERS.identifier))).code == 200


async def test_nothing_ticked_is_refused_and_changes_nothing(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    page = await page_for(shop, browser, scope="read write", resource=ORDERS.identifier)
    refused = await browser.submit(page, DECIDE, decision="allow", **{"scope:read": None, "scope:write": None})
    assert refused.code == 400
    assert not [key async for key in service.store.client.scan_iter("*:grant:shop")]
    back = await browser.submit(page, DECIDE, decision="allow")
    assert "code" in answer_of(back), "the page stays"


async def test_a_sign_in_without_any_scope_of_the_api_is_for_ours(service: Service) -> None:
    shop = await Shop.open(service)
    url = shop.app.authorize_url(scope="openid read write", resource=ORDERS.identifier)
    back = await (await service.signed_in()).consent(url, untick=("read", "write"))
    tokens = json_of(await shop.app.exchange(answer_of(back)["code"]))
    assert tokens["scope"] == "openid"
    assert tokens["id_token"]
    assert (await called(service, tokens["access_token"])).code == 200
    assert error_of(await shop.app.refresh(tokens["refresh_token"], resource=ORDERS.identifier)) == (
        400,
        "invalid_target",
    )


async def test_a_consent_is_remembered_with_its_api(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await browser.consent(shop.app.authorize_url(scope="read", resource=ORDERS.identifier))
    silent = await browser.get(shop.app.authorize_url(scope="read", resource=ORDERS.identifier, prompt="none"))
    tokens = json_of(await shop.app.exchange(answer_of(silent)["code"]))
    assert (await shop.at(ORDERS, tokens["access_token"]))["auth_time"]
    for changes in ({"resource": BILLS.identifier}, {"scope": "write", "resource": ORDERS.identifier}):
        asked = await browser.get(shop.app.authorize_url(**{"scope": "read", "prompt": "none", **changes}))
        assert answer_of(asked)["error"] == "consent_required", changes


async def test_what_stays_granted_names_the_api(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await browser.consent(shop.app.authorize_url(scope="read", resource=BILLS.identifier))
    await browser.consent(shop.app.authorize_url(scope="write", resource=ORDERS.identifier))
    words = text_of(await page_for(shop, browser, scope="read write", resource=ORDERS.identifier))
    assert "keeps what you allowed before: See your bills (Bills)" in words
    assert words.count("Already allowed") == 1
    await service.store.apis.update(BILLS.client_id, status="disabled")
    page = await page_for(shop, browser, scope="read write", resource=ORDERS.identifier)
    assert "keeps what you allowed before" not in text_of(page), "what nobody can use is not named"


@each(
    ("scopes", "code"),
    [
        (["read"], None),
        (["write", "write"], None),
        (["admin"], "invalid_scope"),
        (["profile"], "invalid_scope"),
        ([at(ORDERS, "read")[0]], "invalid_scope"),
        (["read write"], "invalid_scope"),
        ([], "invalid_scope"),
        (["é"], "invalid_scope"),
        (["x" * 65], "invalid_scope"),
    ],
    ids=str,
)
async def test_a_decision_as_json_takes_plain_names(service: Service, scopes: list[str], code: str | None) -> None:
    shop = await Shop.open(service, f"json-{new_id()[:9]}")
    browser = await service.signed_in()
    page = await page_for(shop, browser, scope="read write", resource=ORDERS.identifier)
    response = await decide_as_json(browser, page, scopes=scopes)
    if code:
        assert error_of(response) == (400, code)
        return
    found = query_of(json_of(response)["redirect_to"])["code"][0]
    assert json_of(await shop.app.exchange(found))["scope"] == scopes[0]


async def test_the_page_of_connected_apps_names_the_api(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await shop.tokens("profile read write", browser, resource=ORDERS.identifier)
    words = text_of(await browser.get("/account/apps"))
    assert "See who you are See your orders (Orders) Place orders (Orders) Connected" in words
    await service.store.apis.update(ORDERS.client_id, scopes=(READ,))
    assert "Place orders" not in text_of(await browser.get("/account/apps")), "it is no scope any more"
    await service.store.apis.delete(ORDERS.client_id)
    assert "See who you are Connected" in text_of(await browser.get("/account/apps"))


async def test_other_apps_see_plain_names(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await shop.tokens("profile read", browser, resource=ORDERS.identifier)
    await shop.tokens("read admin", browser, resource=BILLS.identifier)
    tokens = await service.tokens(browser=browser, scope="apps:read")
    (row,) = json_of(await called(service, tokens["access_token"], "/api/v1/apps"))["apps"]
    assert row["scopes"] == ["profile", "read", "admin"]


async def test_an_api_that_goes_while_the_page_is_open_gets_nothing(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    page = await page_for(shop, browser, scope="profile read", resource=ORDERS.identifier)
    await service.store.apis.update(ORDERS.client_id, scopes=(WRITE, ADMIN))
    code = answer_of(await browser.submit(page, DECIDE, decision="allow"))["code"]
    assert error_of(await shop.app.exchange(code)) == (400, "invalid_grant")
    await service.store.apis.delete(ORDERS.client_id)
    assert error_of(await shop.app.exchange(code)) == (400, "invalid_target")
    tokens = json_of(await shop.app.exchange(code, resource=service.base_url))
    assert tokens["scope"] == "profile", "a refused exchange used nothing up"
