"""Events for an app whose people allowed it scopes of APIs alone."""

from __future__ import annotations

import pytest

from tests.support.http.api_shop import ORDERS, Shop, at
from tests.support.http.driver import Service
from tests.support.store.world import VISITOR

HOOK = "https://shop.example/hook"


@pytest.mark.gen_test
@pytest.mark.parametrize("end", ["disconnected", "given back", "account deleted"])
async def test_an_app_that_only_calls_apis_hears_of_people_by_its_own_id(service: Service, end: str) -> None:
    shop = await Shop.open(service, scopes=(), api_scopes=at(ORDERS, "read"))
    store, client_id = service.store, shop.app.client_id
    await store.webhooks.set_url(client_id, HOOK)
    browser = await service.signed_in()
    tokens = await shop.tokens("read", browser, resource=ORDERS.identifier)
    assert (await shop.at(ORDERS, tokens["access_token"]))["sub"] == service.ada
    if end == "disconnected":
        session = store.sessions.open(browser.cookies["latchkey_session"])
        assert session is not None
        await store.grants.revoke(session, client_id, VISITOR)
    elif end == "given back":
        app = await store.apps.active(client_id)
        assert app is not None
        await store.tokens.revoke(app, tokens["refresh_token"])
    else:
        await store.people.delete(service.ada)
    await store.outbox.relay(store.webhooks.wants)
    rows = await store.deliveries.list(client_id)
    kinds = {"disconnected": ["grant.revoked"], "given back": [], "account deleted": ["user.deleted"]}
    assert [row.type for row in rows] == kinds[end]
    # Latchkey's own id of the person is the API's to know, and not the app's.
    assert all(row.sub.startswith("pw_") and service.ada not in str(row) for row in rows)
    assert not (await shop.at(ORDERS, tokens["access_token"]))["active"]
