"""Limits of apps that register themselves, and how they end. Trap 60."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from store import keys
from store.apps.registration import Registration
from store.apps.self_registered.kept import SelfRegistered
from store.lifetimes import UNUSED_APP
from store.refused import Refused
from store.wiring import Store
from tests.support.http.driver import Service, answer_of, json_of
from tests.support.http.self_registered import NATIVE, post_registration, register
from tests.support.processes.engines import FakeClock

DAY = 86_400


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server that registers every app."""
    return Site(memory_store, base_url, dynamic_registration="open")


@pytest.mark.gen_test
@pytest.mark.rfc("7591 3.1 open")
@pytest.mark.trap(60)
async def test_an_address_registers_twenty_apps_an_hour(clock: FakeClock, service: Service) -> None:
    answers = [await post_registration(service.base_url, NATIVE) for _ in range(21)]
    assert [answer.code for answer in answers] == [*[201] * 20, 429]
    assert json_of(answers[-1])["error"] == "rate_limited"
    assert answers[0].headers["X-RateLimit-Limit"] == "20"
    clock.advance(3600)
    assert (await post_registration(service.base_url, NATIVE)).code == 201


@pytest.mark.gen_test
@pytest.mark.trap(60)
async def test_all_addresses_together_have_a_limit_too(service: Service) -> None:
    limits = service.store.limits
    limits.registrations = replace(limits.registrations, limit=1)
    for place in range(50):
        await limits.register_client(f"10.0.{place}.1")
    with pytest.raises(Refused, match="rate_limited"):
        await limits.register_client("10.1.0.1")


@pytest.mark.gen_test
@pytest.mark.trap(60)
async def test_one_that_nobody_allowed_makes_room_and_one_in_use_does_not(service: Service) -> None:
    service.store.self_registered.most = 2
    used = await register(service.base_url)
    await (await service.signed_in()).consent(used.authorize_url(scope=None))
    first = await register(service.base_url)
    second = await register(service.base_url)
    found = [await service.store.apps.find(one.client_id) is not None for one in (used, first, second)]
    assert found == [True, False, True]
    await (await service.signed_in()).consent(second.authorize_url(scope=None))
    full = await post_registration(service.base_url, NATIVE)
    assert (full.code, json_of(full)["error"]) == (503, "temporarily_unavailable")


@pytest.mark.gen_test
@pytest.mark.trap(60)
async def test_one_that_nobody_allows_ends_by_itself(clock: FakeClock, service: Service) -> None:
    app = await register(service.base_url)
    client = service.store.client
    assert 0 < await client.pttl(keys.app(app.client_id)) <= UNUSED_APP
    clock.advance(89 * DAY)
    service.store.apps.forget()
    assert await service.store.apps.find(app.client_id) is not None
    clock.advance(DAY + 1)
    service.store.apps.forget()
    assert await service.store.apps.find(app.client_id) is None
    await register(service.base_url)
    assert await client.zscore(keys.UNUSED_APPS, app.client_id) is None


@pytest.mark.gen_test
async def test_an_app_in_use_lasts_until_nobody_has_used_it_for_ninety_days(
    clock: FakeClock, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await register(service.base_url)
    code = answer_of(await (await service.signed_in()).consent(app.authorize_url(scope=None)))["code"]
    tokens = json_of(await app.exchange(code))
    assert await service.store.client.pttl(keys.app(app.client_id)) == -1
    for _ in range(4):  # 100 days
        clock.advance(25 * DAY)
        service.store.self_registered._noted.clear()  # as another day of this process
        tokens = json_of(await app.refresh(tokens["refresh_token"]))
        await service.store.self_registered.end_idle()
    clock.advance(91 * DAY)
    await service.store.self_registered.end_idle()
    assert await service.store.apps.find(app.client_id) is None
    page = (await (await service.signed_in()).get("/account/security/activity")).body.decode()
    assert "App unused for 90\u00a0days" in page
    assert await service.store.client.zscore(keys.USED_APPS, app.client_id) is None


@pytest.mark.gen_test
async def test_a_disabled_app_without_a_document_ends_too(clock: FakeClock, service: Service) -> None:
    """Nothing brings it back, and it would take a place for ever."""
    app, store = await register(service.base_url), service.store
    await store.app_acts.set_status(app.client_id, "disabled")
    assert await store.client.pttl(keys.app(app.client_id)) == -1
    clock.advance(91 * DAY)
    await store.self_registered.end_idle()
    assert await store.apps.find(app.client_id) is None


@pytest.mark.gen_test
async def test_an_app_that_ended_during_the_decision_connects_nobody(service: Service) -> None:
    app, browser = await register(service.base_url), await service.signed_in()
    page = await browser.get(app.authorize_url(scope=None))
    await service.store.client.delete(keys.app(app.client_id))
    decided = await browser.submit(page, "/api/oauth/authorize", decision="allow")
    assert decided.code == 400
    assert "no longer registered" in decided.body.decode()
    assert await service.store.client.exists(keys.grant(service.ada, app.client_id)) == 0


async def claimed(kept: SelfRegistered, client_id: str, **changes: Any) -> None:
    """A place, and a registration in it."""
    facts = {"name": "A", "redirect_uris": ("http://127.0.0.1/",), "scopes": (), "pkce_required": True}
    app = Registration(client_id, origin="dynamic", public=True, **{**facts, **changes})
    await kept.claim(client_id, UNUSED_APP)
    assert await kept.save(app, b"", UNUSED_APP)


@pytest.mark.gen_test
async def test_places_and_rows_agree_on_every_store(store: Store) -> None:
    kept = store.self_registered
    kept.most = 2
    for client_id in ("one", "two", "three"):
        await claimed(kept, client_id)
    assert len(await store.apps.list()) == 2
    found = (await store.apps.list())[0]
    await kept.keep(found)
    await claimed(kept, "four")
    assert [app.client_id for app in await store.apps.list()] == [found.client_id, "four"]
    assert await store.client.pttl(keys.app(found.client_id)) == -1
    # A kept app is dropped by no other's registration, and a change of it gives it no end.
    packed, row = await store.apps.row(found.client_id)
    assert row is not None
    assert await kept.save(replace(row, name="B"), packed, UNUSED_APP)
    assert await store.client.pttl(keys.app(found.client_id)) == -1
    assert not await kept.save(replace(row, name="C"), packed, UNUSED_APP)
    assert not await kept.drop(found)


@pytest.mark.gen_test
@pytest.mark.trap(60)
async def test_a_change_keeps_no_app_without_a_place(clock: FakeClock, service: Service) -> None:
    """Otherwise changes would keep any number of apps that the bound of all does not count."""
    app = await register(service.base_url)
    clock.advance(80 * DAY)
    assert (await app.manage("PUT", {**NATIVE, "client_id": app.client_id})).code == 200
    clock.advance(20 * DAY)
    await register(service.base_url)
    client = service.store.client
    has_row = await client.exists(keys.app(app.client_id)) == 1
    has_place = await client.zscore(keys.UNUSED_APPS, app.client_id) is not None
    assert (has_row, has_place) == (True, True)
