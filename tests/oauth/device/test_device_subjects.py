"""Devices have no redirect URI, so they are no way to the pairwise ids of another's site."""

from __future__ import annotations

import json

import pytest

from handlers.core.site import Site
from store.names import DEVICE_GRANT
from store.wiring import Store
from tests.oauth.device.devices import Device, ask, let_in
from tests.support.http.driver import App, Service, json_of, send

pytestmark = pytest.mark.gen_test
THEIRS = "https://victim.example/cb"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return Site(memory_store, base_url, dynamic_registration="open")


async def test_an_app_that_registers_itself_gets_no_ids_of_anothers_site_by_a_device(service: Service) -> None:
    asked = {
        "redirect_uris": [THEIRS],
        "grant_types": ["authorization_code", DEVICE_GRANT],
        "token_endpoint_auth_method": "none",
        "subject_type": "pairwise",
    }
    kind, body = {"Content-Type": "application/json"}, json.dumps(asked).encode()
    registered = json_of(await send(f"{service.base_url}/api/oauth/register", "POST", body=body, headers=kind))
    assert DEVICE_GRANT not in registered["grant_types"]
    app = App(service.base_url, registered["client_id"], None, THEIRS)
    refused = await ask(app, scope="profile")
    assert (refused.code, json_of(refused)["error"]) == (400, "unauthorized_client")


async def test_an_owners_app_neither_until_the_operator_vouches_for_it(service: Service) -> None:
    facts = {"public": True, "redirect_uris": (THEIRS,), "subject_type": "pairwise", "device_grant": True}
    app = await service.add_app("theirs", **facts, owner=service.ada)
    assert json_of(await ask(app))["error"] == "unauthorized_client"
    await service.store.apps.update("theirs", verified=True)
    device, browser = await Device.begun(app, scope="profile"), await service.signed_in()
    await service.store.apps.update("theirs", verified=False)
    assert await device.hears() == "unauthorized_client"
    await service.store.apps.update("theirs", verified=True)
    await let_in(browser, device)
    assert (await device.poll()).code == 200
