"""Teams after an account was stolen, and when an app changes hands."""

from __future__ import annotations

import pytest

from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.api_scopes import ApiScopeName
from store.apps.registration import Registration
from store.oauth.resources import held_for_itself
from store.wiring import Store
from tests.accounts.test_undo_address import THIEF, undo_of
from tests.accounts.test_undo_apps import take_back
from tests.apps.team.test_teams import invited, owner_with, team
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import reauth
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_taking_an_account_back_removes_whom_the_thief_invited(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    world, client, (friend,) = await owner_with(store, "viewer")
    before = await World.make(store)
    await store.teams.accept(before.session, await invited(world, client, before.email), VISITOR)
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await reauth(world)
    clock.advance(60)
    accomplice, later = await World.make(store), await World.make(store)
    await store.teams.accept(accomplice.session, await invited(world, client, accomplice.email, "owner"), VISITOR)
    await store.teams.set_role(world.session, client, friend.user, "owner", VISITOR)
    waiting = await invited(world, client, later.email, "owner")
    done = await take_back(world, undo)
    assert await team(store, client) == {world.user: "owner", before.user: "developer"}
    assert str(done.own[client]) == "newer team members removed"
    assert await refusal_of(store.teams.accept(later.session, waiting, VISITOR)) == "invalid_request"
    assert await refusal_of(store.owned.find(accomplice.session, client)) == "not_found"


async def test_a_developer_s_account_taken_back_switches_the_app_off_if_it_was_changed(
    clock: FakeClock, memory_store: Store
) -> None:
    store = memory_store
    _, client, (developer,) = await owner_with(store, "developer")
    clock.advance(60)
    undo = await undo_of(developer, THIEF)
    await reauth(developer)
    clock.advance(60)
    evil = {"redirect_uris": ("https://evil.example/cb",)}
    await store.owned.update(developer.session, client, "app_changed", VISITOR, **evil)
    await take_back(developer, undo)
    app, _ = await store.apps.fresh(client)
    assert app is not None
    assert app.status == "off"


async def fresh(store: Store, client: str) -> Registration:
    app, _ = await store.apps.fresh(client)
    assert app is not None
    return app


async def test_scopes_that_others_chose_give_no_token_for_itself(memory_store: Store) -> None:
    """An app may use its owner's API without any person, but only as the owner chose."""
    store = memory_store
    world, client, (developer, heir) = await owner_with(store, "developer", "owner")
    scopes = (ApiScope("read", "Read"), ApiScope("write", "Write"))
    mine, _ = await store.apis.create(ApiRegistration("https://mine.example", "Mine", scopes, owner=world.user))
    theirs, _ = await store.apis.create(ApiRegistration("https://theirs.example", "Theirs", scopes, owner=heir.user))
    read, write = (ApiScopeName(mine.client_id, name).qualified for name in ("read", "write"))
    foreign = ApiScopeName(theirs.client_id, "read").qualified

    async def choose(who: World, *chosen: str) -> None:
        await store.owned.update(who.session, client, "app_changed", VISITOR, api_scopes=chosen)

    await choose(world, read)
    await choose(developer, read, write)
    assert held_for_itself(await fresh(store, client), mine) == ("read",)
    await choose(world, read)
    await choose(world, read, write, foreign)
    assert held_for_itself(await fresh(store, client), mine) == ("read", "write")
    await store.teams.leave(world.session, client, VISITOR)
    app = await fresh(store, client)
    assert app.owner == heir.user
    assert held_for_itself(app, theirs) == ()
    assert held_for_itself(app, mine) == ()
