"""Access tokens of people for APIs: for one resource each, with what the person granted there. RFC 8707, RFC 7662."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from store import keys
from store.crypto.seal import TokenKind
from store.fsck.walk import Report
from tests.oauth.pushed.test_pushed import address
from tests.support.http.api_shop import BILLS, ORDERS, OWN, READ, Shop, about, at, called, error_of
from tests.support.http.driver import Service, json_of, send
from tests.support.lists.offenders import each
from tests.support.store.checked_store import checked

pytestmark = pytest.mark.gen_test(timeout=60)


def row_of(shop: Shop, token: str) -> str:
    """The key of an access token's row."""
    opened = shop.service.store.tokens.open_access(token)
    assert opened is not None
    return keys.token(opened.user, opened.client, opened.id, opened.generation)["access"]


@pytest.mark.rfc("7662 2.2 registered")
@pytest.mark.rfc("7662 4 resource")
@pytest.mark.rfc("8707 2 audience")
@pytest.mark.trap(51)
async def test_a_token_for_an_api_is_live_there_alone(service: Service) -> None:
    shop = await Shop.open(service)
    now = (await service.store.client.time())[0]
    tokens = await shop.tokens("read write", resource=ORDERS.identifier)
    assert (tokens["scope"], tokens["expires_in"], tokens["token_type"]) == ("read write", 300, "Bearer")
    facts = await shop.at(ORDERS, tokens["access_token"])
    assert abs(facts["iat"] - now) <= 2
    assert abs(facts["auth_time"] - now) <= 2
    assert facts == {
        "active": True,
        "client_id": "shop",
        "sub": service.ada,
        "scope": "read write",
        "iss": service.base_url,
        "aud": ORDERS.identifier,
        "exp": facts["iat"] + 300,
        "iat": facts["iat"],
        "token_type": "Bearer",
        "acr": "1",
        "auth_time": facts["auth_time"],
    }
    assert await shop.at(BILLS, tokens["access_token"]) == {"active": False}
    assert await shop.at(ORDERS, tokens["refresh_token"]) == {"active": False}, "no API sees a refresh token"
    ours = await shop.to_app(tokens["access_token"])
    assert ours == {**facts, "sub": ours["sub"]}, "the app may ask, too"
    assert ours["sub"].startswith("pw_"), "and it was never granted the person's id"
    stranger = await Shop.open(service, "stranger")
    assert await stranger.to_app(tokens["access_token"]) == {"active": False}


@pytest.mark.rfc("9728 7.4 audience")
@pytest.mark.trap(51)
async def test_here_it_is_no_token(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens(" ".join((*OWN, "write")), resource=ORDERS.identifier)
    assert tokens["scope"] == "write"
    other = await shop.refresh(tokens, resource=service.base_url)
    for path in ("oauth/userinfo", "v1/data/notes/n1", "v1/data/notes", "v1/credits/balance", "v1/apps"):
        response = await called(service, tokens["access_token"], f"/api/{path}")
        assert error_of(response) == (401, "invalid_token"), "although the person granted the scope"
        assert (await called(service, other["access_token"], f"/api/{path}")).code in (200, 404), path


@pytest.mark.rfc("8707 2.2 grants")
@pytest.mark.rfc("8707 2.2 granted")
@pytest.mark.rfc("8707 2.2 downscope")
@pytest.mark.rfc("8707 2.2 scope")
async def test_a_refresh_may_name_the_other_resource(service: Service) -> None:
    shop = await Shop.open(service)
    first = await shop.tokens("profile data:read write", resource=ORDERS.identifier)
    assert first["scope"] == "write"
    ours = await shop.refresh(first, resource=service.base_url + "/")
    assert (ours["scope"], ours["expires_in"]) == ("profile data:read", 3600)
    assert json_of(await called(service, ours["access_token"]))["sub"] == service.ada
    assert await shop.at(ORDERS, ours["access_token"]) == {"active": False}
    assert (await shop.to_app(ours["access_token"]))["aud"] == service.base_url
    assert (await shop.at(ORDERS, first["access_token"]))["active"] is True, "the earlier one lives on"
    back = await shop.refresh(ours)
    assert (back["scope"], back["expires_in"]) == ("write", 300), "without a name: the one of the authorization"
    named = await shop.refresh(back, resource=ORDERS.identifier + "/")
    assert (await shop.at(ORDERS, named["access_token"]))["aud"] == ORDERS.identifier
    refused = await shop.app.refresh(named["refresh_token"], resource=BILLS.identifier)
    assert error_of(refused) == (400, "invalid_target"), "the person did not consent to it"
    assert (await shop.refresh(named))["scope"] == "write", "a refused refresh uses nothing up"


@pytest.mark.rfc("8707 2.1 grant")
@pytest.mark.rfc("8707 2.2 grants")
@pytest.mark.rfc("8707 2.2 refresh token")
async def test_an_exchange_may_name_ours_and_the_family_keeps_both(service: Service) -> None:
    shop = await Shop.open(service)
    code = await service.code(shop.app, scope="profile write", resource=ORDERS.identifier)
    for wrong in (BILLS.identifier, "https://nobody.example", "x"):
        assert error_of(await shop.app.exchange(code, resource=wrong)) == (400, "invalid_target"), wrong
    tokens = json_of(await shop.app.exchange(code, resource=service.base_url))
    assert (tokens["scope"], tokens["expires_in"]) == ("profile", 3600)
    assert (await called(service, tokens["access_token"])).code == 200
    assert (await shop.refresh(tokens))["scope"] == "write"


async def test_an_authorization_for_an_api_alone_gives_no_token_for_ours(service: Service) -> None:
    shop = await Shop.open(service)
    code = await service.code(shop.app, scope="write")
    assert error_of(await shop.app.exchange(code, resource=service.base_url)) == (400, "invalid_target")
    tokens = json_of(await shop.app.exchange(code))
    refused = await shop.app.refresh(tokens["refresh_token"], resource=service.base_url)
    assert error_of(refused) == (400, "invalid_target")
    assert (await shop.refresh(tokens))["scope"] == "write"


@pytest.mark.rfc("8707 2.2 granted")
async def test_an_authorization_for_ours_gives_no_token_for_an_api(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await shop.tokens("write", browser)
    for resource in ({}, {"resource": service.base_url}):
        tokens = await shop.tokens("profile", browser, **resource)
        refused = await shop.app.refresh(tokens["refresh_token"], resource=ORDERS.identifier)
        assert error_of(refused) == (400, "invalid_target"), "although the grant has a scope there"
        assert (await shop.refresh(tokens, resource=service.base_url))["scope"] == "profile"


@pytest.mark.rfc("8707 2.1 default")
async def test_without_a_resource_the_scopes_tell_the_api(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("profile write")
    assert tokens["scope"] == "write"
    assert (await shop.at(ORDERS, tokens["access_token"]))["active"] is True


@pytest.mark.rfc("9068 3 ambiguous")
async def test_only_one_resource_a_token_request(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("profile write", resource=ORDERS.identifier)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens["refresh_token"],
        "client_id": "shop",
        "client_secret": shop.app.secret,
    }
    two = [service.base_url, ORDERS.identifier]
    url = f"{service.base_url}/api/oauth/token"
    assert error_of(await send(url, "POST", body=urlencode({**form, "resource": two}, doseq=True))) == (
        400,
        "invalid_target",
    )
    headers = {"Content-Type": "application/json"}
    for value, code in ((two, "invalid_target"), (7, "invalid_request"), ([None, 7], "invalid_request")):
        response = await send(url, "POST", body=json.dumps({**form, "resource": value}), headers=headers)
        assert error_of(response) == (400, code), value
    good = await send(url, "POST", body=json.dumps({**form, "resource": two[:1]}), headers=headers)
    assert json_of(good)["scope"] == "profile"
    empty = await send(url, "POST", body=urlencode({"grant_type": "client_credentials", "resource": two}, doseq=True))
    assert error_of(empty) == (400, "invalid_target")


async def test_a_refresh_narrows_by_plain_names(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("openid profile read write", resource=ORDERS.identifier)
    narrow = await shop.refresh(tokens, scope="write")
    assert narrow["scope"] == "write"
    assert "id_token" not in narrow
    whole = await shop.refresh(narrow, scope="write openid profile read offline_access")
    assert whole["scope"] == "read write", "in the order of the API"
    assert whole["id_token"]
    ours = await shop.refresh(whole, scope="profile write", resource=service.base_url)
    assert ours["scope"] == "profile"
    for scope in ("admin", "profile", "data:read write", at(ORDERS, "write")[0], "nothing"):
        refused = await shop.app.refresh(ours["refresh_token"], scope=scope)
        assert error_of(refused) == (400, "invalid_scope"), scope
    assert (await shop.refresh(ours))["scope"] == "read write"


async def test_the_id_token_comes_with_a_token_for_an_api(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("openid profile write")
    claims = (await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))).claims
    assert (claims["sub"], claims["aud"], claims["name"]) == (service.ada, "shop", "Ada Lovelace")
    assert (await shop.refresh(tokens))["id_token"]
    facts = await shop.at(ORDERS, tokens["access_token"])
    assert (facts["acr"], facts["auth_time"]) == (claims["acr"], claims["auth_time"])


async def test_without_openid_the_session_gets_no_public_id(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    (session,) = [key async for key in service.store.client.scan_iter("*:session:*")]
    for scope, there in (("write", False), ("openid write", True)):
        await shop.tokens(scope, browser)
        row = await service.store.client.hgetall(session)
        assert (b"sid" in row, b"rp:shop" in row) == (there, there), scope


@pytest.mark.rfc("7662 5 privacy")
async def test_two_apps_name_a_person_alike_at_an_api(service: Service) -> None:
    one, two = await Shop.open(service), await Shop.open(service, "second")
    two.secrets = one.secrets = (await Shop.open(service, "third")).secrets
    browser = await service.signed_in()
    subs = [
        (await shop.at(ORDERS, (await shop.tokens("write", browser))["access_token"]))["sub"] for shop in (one, two)
    ]
    assert subs == [service.ada] * 2
    pairwise = await Shop.open(service, "pairwise", subject_type="pairwise")
    token = (await pairwise.tokens("write", browser))["access_token"]
    at_api = (await pairwise.at(ORDERS, token))["sub"]
    assert at_api.startswith("pw_")
    assert at_api != (await pairwise.to_app(token))["sub"]


ENDS = (
    *("expired", "revoked", "refresh token revoked", "app disconnected", "scope unticked", "person disabled"),
    *("app disabled", "app's scope gone", "API's scope gone", "API disabled and enabled", "API deleted", "replayed"),
)


@each("end", ENDS)
async def test_a_token_ends(service: Service, end: str) -> None:
    shop = await Shop.open(service, f"shop-{ENDS.index(end)}")
    store, client = service.store, shop.app.client_id
    browser = await service.signed_in()
    tokens = await shop.tokens("write", browser)
    token = tokens["access_token"]
    assert (await shop.at(ORDERS, token))["active"] is True
    if end == "expired":
        assert 299_000 < await store.client.pttl(row_of(shop, token)) <= 300_000
        await store.client.delete(row_of(shop, token))
    elif end == "revoked":
        assert (await shop.app.revoke(token)).code == 200
        assert (await shop.refresh(tokens))["scope"] == "write", "the family lives on"
    elif end == "refresh token revoked":
        assert (await shop.app.revoke(tokens["refresh_token"])).code == 200
    elif end == "app disconnected":
        page = await browser.get("/account/apps")
        await browser.submit(page, f"/account/apps/{client}/revoke")
    elif end == "scope unticked":
        await browser.consent(
            shop.app.authorize_url(scope="profile read write", resource=ORDERS.identifier), untick=("write",)
        )
    elif end == "person disabled":
        await store.operator.set_status(service.ada, "disabled")
    elif end == "app disabled":
        await store.apps.update(client, status="disabled")
    elif end == "app's scope gone":
        await store.apps.update(client, api_scopes=at(ORDERS, "read"))
    elif end == "API's scope gone":
        await store.apis.update(ORDERS.client_id, scopes=(READ,))
    elif end == "API disabled and enabled":
        await store.apis.update(ORDERS.client_id, status="disabled")
        assert await shop.to_app(token) == {"active": False}
        refused = await shop.app.refresh(tokens["refresh_token"])
        assert error_of(refused) == (400, "invalid_target"), "the app keeps its refresh token"
        await store.apis.update(ORDERS.client_id, status="active")
        assert (await shop.at(ORDERS, token))["active"] is True
        assert (await shop.refresh(tokens))["scope"] == "write"
        return
    elif end == "API deleted":
        await store.apis.delete(ORDERS.client_id)
        assert await shop.to_app(token) == {"active": False}
        again, secret = await store.apis.create(ORDERS)
        assert await about(service, token, again.client_id, secret) == {"active": False}
        assert await shop.to_app(token) == {"active": False}
        await store.apis.delete(again.client_id)
        await store.client.delete(keys.api(ORDERS.client_id))  # as if it had never been there, for the other cases
        return
    else:
        await shop.refresh(tokens)
        assert error_of(await shop.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert await shop.at(ORDERS, token) == {"active": False}
    await store.apis.update(ORDERS.client_id, scopes=ORDERS.scopes)
    await store.operator.set_status(service.ada, "active")


async def test_it_has_what_person_app_and_api_still_allow(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    tokens = await shop.tokens("read write", browser, resource=ORDERS.identifier)
    token = tokens["access_token"]
    await browser.consent(shop.app.authorize_url(scope="profile write", resource=ORDERS.identifier), untick=("write",))
    assert (await shop.at(ORDERS, token))["scope"] == "read"
    refreshed = await shop.refresh(tokens)
    assert refreshed["scope"] == "read"
    await service.store.apps.update("shop", api_scopes=at(ORDERS, "write"))
    assert await shop.at(ORDERS, token) == {"active": False}
    refused = await shop.app.refresh(refreshed["refresh_token"])
    assert error_of(refused) == (400, "invalid_grant")


async def test_a_refresh_token_is_told_with_plain_names(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("openid profile write", resource=ORDERS.identifier)
    facts = await shop.to_app(tokens["refresh_token"])
    assert facts["scope"] == "openid profile write"
    assert facts["aud"] == service.base_url, "only this server takes it"


async def test_rows_of_apis_are_ones_that_a_check_of_the_store_knows(service: Service) -> None:
    await service.store.key_state.check(service.store.keys.ring)
    service.store.fsck.settle = 0
    shop = await Shop.open(service)
    browser = await service.signed_in()
    await browser.get(shop.app.authorize_url(scope="read", resource=BILLS.identifier))
    await browser.get(await address(shop.app, scope="read", resource=BILLS.identifier))
    tokens = await shop.tokens("profile write", browser, resource=ORDERS.identifier)
    await shop.refresh(tokens, resource=service.base_url)
    await browser.consent(shop.app.authorize_url(scope="write"))
    report: Report = await checked(service.store)
    assert {name: tally.found for name, tally in report.tallies.items() if tally.found} == {}


async def test_a_row_of_an_api_s_token_is_no_code_or_refresh_token(service: Service) -> None:
    shop = await Shop.open(service)
    access = (await shop.tokens("write"))["access_token"]
    assert service.store.sealer.open(TokenKind.REFRESH, access) is None
    assert error_of(await shop.app.refresh(access)) == (400, "invalid_grant")


@each(("retry", "answer"), [("same", 200), ("other", 400)])
async def test_a_repeated_refresh_gives_the_same_token_for_the_same_resource(
    service: Service, retry: str, answer: int
) -> None:
    shop = await Shop.open(service, f"retry-{retry}", refresh_retry_seconds=30)
    first = await shop.tokens("openid profile write", resource=ORDERS.identifier)
    second = await shop.refresh(first)
    # The operator changes the lifetime meanwhile: the age of a token comes from its row.
    await service.store.apis.update(ORDERS.client_id, token_lifetime=3600)
    again = await shop.app.refresh(first["refresh_token"], resource=None if retry == "same" else service.base_url)
    assert again.code == answer, again.body
    await service.store.apis.update(ORDERS.client_id, token_lifetime=300)
    if answer == 200:
        repeated = json_of(again)
        for name in ("access_token", "refresh_token", "scope"):
            assert repeated[name] == second[name]
        assert 298 <= repeated["expires_in"] <= 300
        assert repeated["id_token"]
    else:
        assert error_of(again) == (400, "invalid_target"), "there is no second token"
    assert (await shop.at(ORDERS, second["access_token"]))["active"] is True
    assert (await shop.refresh(second))["scope"] == "write", "nothing was taken for a replay"


@pytest.mark.trap(39)
async def test_endless_scopes_and_resources_are_refused_before_they_are_read(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("profile write", resource=ORDERS.identifier)
    for form in ({"grant_type": "client_credentials"}, {"grant_type": "refresh_token", **tokens}):
        body = {name: form[name] for name in ("grant_type", "refresh_token") if name in form}
        for more in ({"scope": "write " + " " * 8192}, {"resource": [ORDERS.identifier] * 201}):
            sent = {**body, **more, "client_id": "shop", "client_secret": shop.app.secret}
            headers = {"Content-Type": "application/json"}
            refused = await send(f"{service.base_url}/api/oauth/token", "POST", body=json.dumps(sent), headers=headers)
            assert error_of(refused) == (400, "invalid_request"), more
    assert (await shop.refresh(tokens))["scope"] == "write"
