"""Remembered consent is valid for its redirect URI, with the scopes granted there."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.lifetimes import AUTHORIZE
from store.oauth.authorizations import Pending, Remembered
from store.wiring import Store
from tests.support.http.driver import CALLBACK, Service, answer_of
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

BANK, ELSEWHERE = "https://www.paypal.com/back", "https://evil.test/cb"


async def asks(world: World, uri: str, *scopes: str, page: bool = False) -> Pending | Remembered:
    """The outcome of a request for a redirect URI of the app; `page`: as with prompt=consent."""
    app = await world.store.apps.update(world.app.client_id)
    begun = world.request(scopes, app)._replace(redirect_uri=uri, place=app.place(uri))
    return await world.store.authorizations.begin(world.session, begun, always_ask=page)


async def consents(world: World, uri: str, *scopes: str, ticked: tuple[str, ...] | None = None) -> None:
    """The person is asked for these scopes at a redirect URI and allows all of them, or those `ticked`."""
    begun = await asks(world, uri, *scopes, page=True)
    assert isinstance(begun, Pending)
    app = await world.store.apps.find(world.app.client_id)
    assert app is not None
    decide = world.store.authorizations.decide
    await decide(world.session, app, begun.request_id, allow=True, scopes=ticked, visitor=VISITOR)


async def is_remembered(world: World, uri: str, *scopes: str) -> bool:
    return isinstance(await asks(world, uri, *scopes), Remembered)


@pytest.mark.trap(41)
async def test_consent_for_one_redirect_uri_does_not_cover_another(service: Service) -> None:
    app = await service.add_app("two-faced", redirect_uris=(BANK, ELSEWHERE))
    browser = await service.signed_in()
    assert "code" in answer_of(await browser.consent(app.authorize_url(redirect_uri=BANK)))
    assert "code" in answer_of(await browser.get(app.authorize_url(redirect_uri=BANK)))
    page = await browser.get(app.authorize_url(redirect_uri=ELSEWHERE))
    assert page.code == 200
    assert b"evil.test" in page.body
    assert b"www.paypal.com" not in page.body


@pytest.mark.trap(41)
async def test_each_redirect_uri_has_its_own_scopes_within_the_grant(store: Store) -> None:
    world = await World.make(store, redirect_uris=(BANK, ELSEWHERE))
    await consents(world, ELSEWHERE, "profile")
    await consents(world, BANK, "profile", "data:read")
    assert await is_remembered(world, BANK, "profile", "data:read")
    assert await is_remembered(world, ELSEWHERE, "profile")
    assert not await is_remembered(world, ELSEWHERE, "profile", "data:read")
    await consents(world, ELSEWHERE, "profile")
    assert await is_remembered(world, BANK, "profile", "data:read"), "the last decision was about something else"
    await consents(world, ELSEWHERE, "profile", "data:read", ticked=("profile",))
    assert not await is_remembered(world, BANK, "data:read"), "the last decision took it from the grant"
    assert await is_remembered(world, BANK, "profile")


async def test_remembered_scopes_that_are_not_requested_stay(store: Store) -> None:
    world = await World.make(store, redirect_uris=(BANK,))
    await consents(world, BANK, "profile")
    await consents(world, BANK, "data:read")
    assert await is_remembered(world, BANK, "profile")
    assert await is_remembered(world, BANK, "profile", "data:read")
    await consents(world, BANK, "profile", "data:write", ticked=("data:write",))
    assert not await is_remembered(world, BANK, "profile")
    assert await is_remembered(world, BANK, "data:read", "data:write")


@pytest.mark.parametrize(
    ("change", "remembered"),
    [
        pytest.param({"name": "Another Name"}, False, id="the name is on the page"),
        pytest.param({"redirect_uris": (BANK, ELSEWHERE)}, False, id="so is where the person may be sent"),
        pytest.param({"homepage": "https://app.example/about"}, True, id="a home page proves nothing"),
        pytest.param({"logo": "l" * 22}, True, id="nor does a logo"),
        pytest.param({"scopes": ("profile", "data:read")}, True, id="more registered scopes are asked for again"),
        pytest.param({"refresh_retry_seconds": 9}, True, id="what nobody sees changes nothing"),
    ],
)
async def test_a_changed_registration_ends_remembered_consent(
    memory_store: Store, change: dict[str, Any], remembered: bool
) -> None:
    world = await World.make(memory_store, redirect_uris=(BANK,), scopes=("profile",))
    await consents(world, BANK, "profile")
    await memory_store.apps.update(world.app.client_id, **change)
    assert await is_remembered(world, BANK, "profile") == remembered


async def test_registrations_cannot_collide_in_remembered_consent(memory_store: Store) -> None:
    app = (await World.make(memory_store, redirect_uris=(BANK, ELSEWHERE))).app
    others = [
        *(replace(app, client_id="another"), replace(app, name="Another"), replace(app, verified=True)),
        *(replace(app, redirect_uris=(BANK,)), replace(app, domain="app.example")),
    ]
    places = {one.place(BANK) for one in (app, *others)} | {app.place(ELSEWHERE)}
    assert len(places) == 7
    # Half of the bits is what a search for two of one digest takes: 96.
    assert all(len(base64.urlsafe_b64decode(place.removeprefix("to:"))) * 8 >= 192 for place in places)
    assert max(map(len, places)) <= 64, "Redis keeps the row in one piece"


async def test_the_oldest_remembered_redirect_uri_makes_way(store: Store) -> None:
    uris = [f"https://app.example/{number}" for number in range(10)]
    world = await World.make(store, redirect_uris=tuple(uris))
    for uri in (*uris[:8], uris[0], *uris[8:]):
        await consents(world, uri, "profile", "data:read", "data:write")
    await world.store.client.delete(keys.limit(world.user, AUTHORIZE.name))
    forgotten = [uri for uri in uris if not await is_remembered(world, uri, "profile")]
    assert forgotten == uris[1:3]
    row = await store.client.hgetall(keys.grant(world.user, world.app.client_id))
    assert max(len(text) for field in row.items() for text in field) <= 64


async def by_consent_elsewhere(world: World) -> None:
    await consents(world, BANK, "profile")


async def by_mint(world: World) -> None:
    await world.store.tokens.mint(world.user, world.app, ("profile",))


@pytest.mark.parametrize("reconnect", [by_consent_elsewhere, by_mint])
async def test_consent_of_a_disconnected_app_does_not_come_back(
    store: Store, reconnect: Callable[[World], Awaitable[None]]
) -> None:
    world = await World.make(store, redirect_uris=(BANK, ELSEWHERE))
    await consents(world, ELSEWHERE, "profile")
    await world.revoke_app()
    await reconnect(world)
    assert not await is_remembered(world, ELSEWHERE, "profile")


async def test_grants_and_requests_of_the_previous_release_show_the_page_again(store: Store) -> None:
    world = await World.make(store)
    await consents(world, CALLBACK, "profile")
    place = world.app.place(CALLBACK)
    await store.client.hdel(keys.grant(world.user, world.app.client_id), place)
    begun = await asks(world, CALLBACK, "profile")
    assert isinstance(begun, Pending)
    assert begun.granted == {"profile"}
    requests = [key async for key in store.client.scan_iter(match="*:request:*")]
    for key in requests:
        await store.client.hdel(key, "place")
    decided = await store.authorizations.decide(
        world.session, world.app, begun.request_id, allow=True, scopes=None, visitor=VISITOR
    )
    assert decided.code is not None
    assert not await is_remembered(world, CALLBACK, "profile")


async def test_loopback_consent_is_remembered_for_any_port(service: Service) -> None:
    app = await service.add_app("local", redirect_uris=("http://127.0.0.1/cb", "http://127.0.0.1/other"))
    browser = await service.signed_in()
    await browser.consent(app.authorize_url(redirect_uri="http://127.0.0.1:4000/cb"))
    assert (await browser.get(app.authorize_url(redirect_uri="http://127.0.0.1:5000/cb"))).code == 303
    assert (await browser.get(app.authorize_url(redirect_uri="http://127.0.0.1:4000/other"))).code == 200
