"""What an operator decides about an app of a metadata document outlasts the document, and the app's row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store.apps.client_ids import inner_id
from store.operators.app_acts import AppOrder
from tests.support.http.documented_app import URL, Publisher, plain_app
from tests.support.http.driver import Browser, Service

QUIET: dict[str, Any] = {"scope": None, "state": None}
IDLE = 91 * 86_400
OUTSIDE, DISABLED = "is only for members of certain groups", "has disabled this app"
pytestmark = pytest.mark.gen_test


async def arrival(service: Service, browser: Browser | None = None) -> str:
    """The page for a person who arrives with a request of the app."""
    browser = browser or await service.signed_in()
    return (await browser.get(plain_app(service.base_url).authorize_url(**QUIET))).body.decode()


async def order(service: Service, **fields: Any) -> None:
    """An operator's change of the app."""
    await service.store.app_acts.update(inner_id(URL), AppOrder(fields), "", unchecked)


async def unchecked(uri: str, redirect_uris: tuple[str, ...]) -> None:
    """Checks no sector."""


async def test_groups_and_a_lifetime_stay_when_the_document_is_read_again(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    await arrival(service)
    await order(service, allowed_groups=["staff"], refresh_lifetime_days=7)
    later(301)
    publisher.publishes(client_name="New notes")
    assert OUTSIDE in await arrival(service)
    found = await service.store.apps.find(URL)
    assert found is not None
    assert (found.name, found.allowed_groups, found.refresh_lifetime_days) == ("New notes", ("staff",), 7)
    assert publisher.fetched == 2


async def test_a_document_against_the_profile_is_refused(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    await arrival(service)
    found = await service.store.apps.find(URL)
    assert found is not None
    proven = {"public": False, "private_key_jwt": True, "jwks_uri": "https://notes.example/keys"}
    bound = {"id_token_alg": "ES256", "require_pushed": True, "dpop_required": True, "device_grant": False}
    await order(service, **proven, **bound, profile="fapi2", redirect_uris=[found.redirect_uris[0]])
    later(301)
    assert "the profile fapi2 demands" in await arrival(service)


async def test_a_disabled_app_that_nobody_allowed_stays_disabled(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    await arrival(service)
    await service.store.app_acts.set_status(inner_id(URL), "disabled")
    later(3600)
    assert DISABLED in await arrival(service)


@pytest.mark.parametrize("barred", [{"status": "disabled"}, {"allowed_groups": ["staff"]}], ids=str)
async def test_an_idle_app_comes_back_barred(
    later: Callable[[float], None], service: Service, publisher: Publisher, barred: dict[str, Any]
) -> None:
    await arrival(service)
    await order(service, **barred)
    for _ in range(2):
        later(IDLE)
        await service.store.self_registered.end_idle()
    assert (DISABLED if "status" in barred else OUTSIDE) in await arrival(service)
    await order(service, status="active", allowed_groups=[])
    later(IDLE)
    await service.store.self_registered.end_idle()
    assert await service.store.apps.find(URL) is None
