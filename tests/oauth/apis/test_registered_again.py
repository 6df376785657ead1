"""An API that is deleted and registered again with its identifier: tokens and consents of the earlier one are over."""

from __future__ import annotations

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.fsck.walk import Report
from store.refused import Refused
from tests.support.http.api_shop import BILLS, ORDERS, Shop, about, at, error_of
from tests.support.http.driver import Service, answer_of, json_of, text_of
from tests.support.store.checked_store import checked

pytestmark = pytest.mark.gen_test(timeout=60)


async def for_itself(shop: Shop) -> HTTPResponse:
    """The answer to the app's request for a token of its own."""
    return await shop.app.token(grant_type="client_credentials", resource=ORDERS.identifier)


async def test_tokens_and_consents_for_the_earlier_api_are_over(service: Service) -> None:
    shop, browser = await Shop.open(service), await service.signed_in()
    tokens = await shop.tokens("profile read write", browser, resource=ORDERS.identifier)
    own = json_of(await for_itself(shop))["access_token"]
    for token in (tokens["access_token"], own):
        assert (await shop.at(ORDERS, token))["active"] is True
    await service.store.apis.delete(ORDERS.client_id)
    made, secret = await service.store.apis.create(ORDERS)
    # The scopes of the earlier API are still in the registration, as an owner of an app may leave them.
    await service.store.apps.update("shop", api_scopes=(*at(ORDERS, "read", "write"), *at(made, "read", "write")))
    for token in (tokens["access_token"], own):
        assert await about(service, token, made.client_id, secret) == {"active": False}
        assert await shop.to_app(token) == {"active": False}
    for resource in (ORDERS.identifier, None):
        refused = await shop.app.refresh(tokens["refresh_token"], resource=resource)
        assert error_of(refused) == (400, "invalid_target")
    wanted = {"scope": "profile read", "resource": ORDERS.identifier}
    quiet = await browser.get(shop.app.authorize_url(**wanted, prompt="none"))
    assert answer_of(quiet)["error"] == "consent_required"
    again = await shop.tokens(browser=browser, **wanted)
    facts = await about(service, again["access_token"], made.client_id, secret)
    assert (facts["active"], facts["scope"], facts["aud"]) == (True, "read", ORDERS.identifier)
    facts = await about(service, json_of(await for_itself(shop))["access_token"], made.client_id, secret)
    assert (facts["active"], facts["scope"]) == (True, "read write")
    assert await about(service, tokens["access_token"], made.client_id, secret) == {"active": False}
    assert text_of(await browser.get("/account/apps")).count("See your orders") == 1


async def test_an_app_needs_the_scopes_of_the_later_api(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.delete(ORDERS.client_id)
    await service.store.apis.create(ORDERS)
    assert error_of(await for_itself(shop)) == (400, "invalid_target")
    browser = await service.signed_in()
    answer = answer_of(await browser.get(shop.app.authorize_url(scope="read", resource=ORDERS.identifier)))
    assert answer["error"] == "invalid_target"


async def test_the_credentials_of_the_earlier_api_are_nobody_s(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.delete(ORDERS.client_id)
    made, secret = await service.store.apis.create(ORDERS)
    for client_id, tried in ((ORDERS.client_id, secret), (made.client_id, shop.secrets[ORDERS.client_id])):
        with pytest.raises(AssertionError, match="invalid_client"):
            await about(service, "x", client_id, tried)


async def test_a_check_of_the_store_knows_what_a_deletion_leaves(service: Service) -> None:
    store = service.store
    await store.key_state.check(store.keys.ring)
    store.fsck.settle = 0
    shop = await Shop.open(service)
    await store.apis.delete(BILLS.client_id)
    await store.apis.delete(ORDERS.client_id)
    made, _ = await store.apis.create(ORDERS)
    await store.apps.update("shop", api_scopes=at(made, "read", "write"))
    await shop.tokens("read write", resource=ORDERS.identifier)
    report: Report = await checked(store)
    assert {name: tally.found for name, tally in report.tallies.items() if tally.found} == {}
    await store.client.zadd(keys.APIS, {BILLS.client_id: 1, ORDERS.client_id: 1})
    report = await checked(store)
    assert {name: tally.found for name, tally in report.tallies.items() if tally.found} == {"registration-left": 2}
    with pytest.raises(Refused, match="not_found"):
        await store.apis.delete(BILLS.client_id)
