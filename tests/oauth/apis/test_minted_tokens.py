"""Tokens that the operator issues for APIs, and bound ones: the same as those of a consent and an exchange."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.registration import Registration
from store.crypto.jose.private import PrivateKey
from store.oauth.tokens import TokenResponse
from store.refused import Refused
from store.wiring import Store
from tests.support.http.api_shop import BILLS, ORDERS, Shop, at, called
from tests.support.http.dpop_app import BoundApp, Device, error_of
from tests.support.http.driver import Service, json_of

READ, WRITE = at(ORDERS, "read", "write")


async def registered(store: Store, client_id: str) -> Registration:
    app = await store.apps.find(client_id)
    assert app is not None
    return app


async def minted(shop: Shop, *scopes: str, jkt: str = "", api: str = ORDERS.client_id) -> TokenResponse:
    service = shop.service
    app = await registered(service.store, shop.app.client_id)
    return await service.store.tokens.mint(service.ada, app, scopes, api=api, jkt=jkt, issuer=service.base_url)


async def granted(shop: Shop) -> set[str]:
    """The scopes of the grant."""
    service = shop.service
    scope: Any = await service.store.client.hget(keys.grant(service.ada, shop.app.client_id), "scope")
    return set(scope.decode().split())


@pytest.mark.gen_test
async def test_a_minted_token_for_an_api_is_for_that_api_alone(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await minted(shop, "openid", READ, WRITE)
    assert (tokens.scope, tokens.expires_in) == ("read write", 300)
    found = await shop.at(ORDERS, tokens.access_token)
    assert (found["active"], found["sub"], found["aud"]) == (True, service.ada, ORDERS.identifier)
    assert 290 < found["exp"] - found["iat"] <= 300
    # Nobody signed in for it.
    assert {"acr", "auth_time"}.isdisjoint(found)
    assert await shop.at(BILLS, tokens.access_token) == {"active": False}
    assert (await called(service, tokens.access_token)).code == 401


@pytest.mark.gen_test
async def test_a_minted_family_is_for_its_api_and_for_latchkey(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await minted(shop, "profile", READ)
    next_one = await shop.refresh({"refresh_token": tokens.refresh_token})
    assert (next_one["scope"], next_one["expires_in"], "id_token" in next_one) == ("read", 300, False)
    own = await shop.refresh(next_one, resource=service.base_url)
    assert own["scope"] == "profile"
    assert (await called(service, own["access_token"])).code == 200


@pytest.mark.gen_test
async def test_minting_decides_what_it_names_and_keeps_the_rest(service: Service) -> None:
    shop = await Shop.open(service)
    await minted(shop, "profile", "data:read", api="")
    await minted(shop, READ)
    assert await granted(shop) == {"profile", "data:read", READ}
    (bills,) = at(BILLS, "read")
    await minted(shop, bills, api=BILLS.client_id)
    assert await granted(shop) == {"profile", "data:read", READ, bills}


@pytest.mark.gen_test
async def test_a_minted_jwt_names_its_issuer_and_its_key(service: Service) -> None:
    signs = ApiRegistration("https://signs.example", "Signs", (ApiScope("sign", "Sign"),), token_format="jwt")
    await service.store.apis.create(signs)
    shop = await Shop.open(service, "signer", api_scopes=at(signs, "sign"))
    key = PrivateKey.generate("ES256")
    tokens = await minted(shop, *at(signs, "sign"), api=signs.client_id, jkt=key.kid)
    claims = (await service.store.signing_keys.verify(tokens.access_token, types=("at+jwt",))).claims
    assert (claims["iss"], claims["aud"], claims["sub"]) == (service.base_url, signs.identifier, service.ada)
    assert (claims["scope"], claims["cnf"], "acr" in claims) == ("sign", {"jkt": key.kid}, False)
    assert claims["exp"] - claims["iat"] == tokens.expires_in == 600


@pytest.mark.gen_test
@pytest.mark.parametrize("public", [True, False])
async def test_minted_tokens_are_bound_like_exchanged_ones(service: Service, public: bool) -> None:
    app = await service.add_app("bound", public=public, dpop_required=True)
    holder, thief = BoundApp(app), Device()
    store = service.store
    with pytest.raises(Refused, match="invalid_dpop_proof"):
        await store.tokens.mint(service.ada, await registered(store, "bound"), ("profile",))
    tokens = await store.tokens.mint(service.ada, await registered(store, "bound"), ("profile",), jkt=holder.device.jkt)
    assert (await holder.call(tokens.access_token)).code == 200
    assert (await called(service, tokens.access_token)).code == 401
    stolen = BoundApp(app, thief)
    assert (await stolen.call(tokens.access_token)).code == 401
    assert error_of(await stolen.refresh(tokens.refresh_token))[0] == (400 if public else 200)
    if public:
        renewed = await holder.refresh(tokens.refresh_token)
        assert json_of(renewed)["token_type"] == "DPoP"


@pytest.mark.gen_test
async def test_nothing_is_minted_for_an_api_that_is_not_there(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, status="disabled")
    with pytest.raises(Refused) as refused:
        await minted(shop, READ)
    assert refused.value.code == "invalid_target"
    await service.store.apis.update(ORDERS.client_id, status="active")
    with pytest.raises(Refused) as refused:
        await minted(shop, READ, api="api_000000000000000")
    assert refused.value.code == "invalid_target"
