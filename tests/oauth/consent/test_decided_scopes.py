"""A decision covers only what was requested: the grant and earlier tokens keep their other scopes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from store import keys, names
from store.engine.script_source import load_scripts
from store.oauth.authorizations import Pending
from store.oauth.tokens import TokenResponse
from store.wiring import Store
from tests.support.http.decision import DECIDE
from tests.support.http.driver import Service, answer_of, json_of
from tests.support.store.world import CALLBACK, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

ALL = names.SCOPES
SECOND = "https://app.example/second"


async def a_world(store: Store) -> World:
    return await World.make(store, scopes=ALL, redirect_uris=(CALLBACK, SECOND))


async def granted(world: World) -> tuple[str, ...]:
    (grant,) = (await world.store.grants.list(world.session)).grants
    return grant.scopes


async def may(world: World, tokens: TokenResponse) -> tuple[str, ...]:
    """The current scopes of an access token."""
    caller = world.caller(tokens.access_token)
    return tuple([scope for scope in ALL if await refusal_of(world.store.identity.read(caller, scope)) is None])


async def by_consent(world: World, *scopes: str) -> None:
    await world.code(scopes)


async def by_mint(world: World, *scopes: str) -> None:
    await world.store.tokens.mint(world.user, world.app, scopes)


either_way = pytest.mark.parametrize("gives", [by_consent, by_mint])


@pytest.mark.trap(43)
@pytest.mark.spec("4.2")
@either_way
async def test_requesting_one_more_scope_removes_none(store: Store, gives: Callable[..., Awaitable[None]]) -> None:
    world = await a_world(store)
    tokens = await world.tokens(("profile", "data:read"))
    await gives(world, "credits:read")
    assert await may(world, tokens) == ("profile", "data:read")
    assert (await world.refresh(tokens.refresh_token)).scope == "profile data:read"
    assert await granted(world) == ("profile", "credits:read", "data:read"), "in the order of the documentation"


async def test_a_narrower_request_at_another_redirect_uri_keeps_the_firsts_scopes(service: Service) -> None:
    app = await service.add_app("two-places", redirect_uris=(CALLBACK, SECOND))
    browser = await service.signed_in()
    first = await service.tokens(app, browser, scope="profile data:read")
    back = await browser.consent(app.authorize_url(redirect_uri=SECOND, scope="profile"))
    second = json_of(await replace(app, redirect_uri=SECOND).exchange(answer_of(back)["code"]))
    assert second["scope"] == "profile", "a token carries at most what was ticked for it"
    refreshed = json_of(await app.refresh(first["refresh_token"]))
    assert refreshed["scope"] == "profile data:read"
    for token in (first["access_token"], refreshed["access_token"]):
        assert (await app.userinfo(token)).code == 200
    silent = await browser.get(app.authorize_url(scope="profile data:read"))
    assert silent.code == 303, "the first one's consent is remembered too"


async def test_the_page_lists_scopes_that_stay_granted(service: Service) -> None:
    browser = await service.signed_in()
    first = await browser.get(service.web.authorize_url(scope="data:read credits:read"))
    assert b"keeps what you allowed before" not in first.body
    await browser.submit(first, DECIDE, decision="allow")
    page = (await browser.get(service.web.authorize_url(scope="profile data:read"))).body.decode()
    assert "keeps what you allowed before:</p>" in page
    assert 'aria-labelledby="kept"><li>See your credit balance</li></ul>' in page


async def test_only_requested_and_unticked_scopes_are_withdrawn(store: Store) -> None:
    world = await a_world(store)
    tokens = await world.tokens(("profile", "data:read", "data:write"))
    narrow = await world.exchange(await world.code(("data:read", "data:write", "apps:read"), ticked=("data:read",)))
    assert await may(world, tokens) == ("profile", "data:read")
    assert (await world.refresh(tokens.refresh_token)).scope == "profile data:read"
    assert (narrow.scope, await may(world, narrow)) == ("data:read", ("data:read",))
    assert await granted(world) == ("profile", "data:read")


@pytest.mark.trap(43)
@either_way
async def test_scopes_of_a_revoked_grant_do_not_come_back(store: Store, gives: Callable[..., Awaitable[None]]) -> None:
    world = await a_world(store)
    await world.code(("profile", "data:read"))
    await world.revoke_app()
    await gives(world, "credits:read")
    assert await granted(world) == ("credits:read",)


async def test_a_grant_of_the_previous_release_keeps_all_six_scopes(store: Store) -> None:
    """It remembers no redirect URI, so its app's next request always shows the page."""
    world = await a_world(store)
    tokens = await world.tokens(ALL)
    row = keys.grant(world.user, world.app.client_id)
    await store.client.hdel(row, world.app.place(CALLBACK))
    begun = await store.authorizations.begin(world.session, world.request(("profile",)), always_ask=False)
    assert isinstance(begun, Pending)
    await store.authorizations.decide(
        world.session, world.app, begun.request_id, allow=True, scopes=None, visitor=VISITOR
    )
    assert await granted(world) == await may(world, tokens) == ALL
    assert (await world.refresh(tokens.refresh_token)).scope == " ".join(ALL)
    assert not await store.client.hexists(row, "grown_at"), "nothing grew"


def test_scripts_know_the_scopes_in_their_order() -> None:
    assert f"local ALL_SCOPES = '{' '.join(ALL)}'\n" in load_scripts()["decide_authorization"].source
