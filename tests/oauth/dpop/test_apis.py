"""Tokens for APIs that are bound to a key: in their rows, at introspection and in JWTs. RFC 9449 6."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http.api_shop import BILLS, ORDERS, Shop
from tests.support.http.dpop_app import BoundApp, Device, error_of
from tests.support.http.driver import Service, json_of
from tests.support.store.checked_store import checked, findings

SCOPE = "openid profile data:read read"


async def bound(service: Service, **fields: Any) -> tuple[Shop, BoundApp, dict[str, Any]]:
    """A shop with a key, and its tokens for orders."""
    shop = await Shop.open(service, **fields)
    app = BoundApp(shop.app)
    response = await app.exchange(await service.code(shop.app, scope=SCOPE, resource=ORDERS.identifier))
    assert response.code == 200, response.body
    return shop, app, json_of(response)


@pytest.mark.gen_test
@pytest.mark.trap(51)
async def test_an_api_learns_the_key_of_a_person_s_token(service: Service) -> None:
    shop, app, tokens = await bound(service)
    assert tokens["token_type"] == "DPoP"
    for facts in (await shop.at(ORDERS, tokens["access_token"]), await shop.to_app(tokens["access_token"])):
        assert (facts["scope"], facts["token_type"], facts["cnf"]) == ("read", "DPoP", {"jkt": app.device.jkt})
    assert await shop.at(BILLS, tokens["access_token"]) == {"active": False}
    refused = await app.call(tokens["access_token"])
    assert error_of(refused) == (401, "invalid_token"), "it is for the API"
    assert [key async for key in service.store.client.scan_iter("*:dpop:*")] == []
    assert findings(await checked(service.store, deep=True)) == []


@pytest.mark.rfc("9449 6 identify")
@pytest.mark.rfc("9449 6.1 jkt")
@pytest.mark.gen_test
async def test_a_jwt_has_the_key(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt")
    app = BoundApp(shop.app)
    code = await service.code(shop.app, scope=SCOPE, resource=ORDERS.identifier)
    token = json_of(await app.exchange(code))["access_token"]
    claims = (await service.store.signing_keys.verify(token, types=("at+jwt",))).claims
    assert claims["cnf"] == {"jkt": app.device.jkt}
    assert (await shop.at(ORDERS, token))["cnf"] == {"jkt": app.device.jkt}
    plain = (await shop.tokens(SCOPE, resource=ORDERS.identifier))["access_token"]
    assert "cnf" not in (await service.store.signing_keys.verify(plain, types=("at+jwt",))).claims


@pytest.mark.gen_test
async def test_a_refresh_may_be_for_another_resource_with_the_same_key(service: Service) -> None:
    shop, app, tokens = await bound(service, client_id="spa-shop", public=True)
    own = json_of(
        await app.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], resource=app.url(""))
    )
    assert (await app.call(own["access_token"])).code == 200
    thief = BoundApp(app.app, Device())
    assert error_of(await thief.refresh(own["refresh_token"])) == (400, "invalid_grant")
    back = json_of(await app.refresh(own["refresh_token"]))
    assert (await shop.at(ORDERS, back["access_token"]))["cnf"] == {"jkt": app.device.jkt}


@pytest.mark.gen_test
async def test_a_repeated_refresh_finds_the_bound_token_for_an_api(service: Service) -> None:
    shop, app, tokens = await bound(service, client_id="patient-shop", refresh_retry_seconds=30)
    first = json_of(await app.refresh(tokens["refresh_token"]))
    again = json_of(await app.refresh(tokens["refresh_token"]))
    assert (
        (again["access_token"], again["scope"])
        == (first["access_token"], first["scope"])
        == (again["access_token"], "read")
    )
    assert (await shop.at(ORDERS, again["access_token"]))["active"] is True
    assert error_of(await BoundApp(app.app).refresh(tokens["refresh_token"])) == (400, "invalid_grant")
