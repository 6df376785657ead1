"""Teams after an account was stolen, and when an app changes hands."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.api_scopes import ApiScopeName
from store.apps.owners.roles import Role
from store.apps.registration import Registration
from store.oauth.resources import held_for_itself
from store.refused import Refused
from store.wiring import Store
from tests.accounts.test_undo_address import THIEF, undo_of
from tests.accounts.test_undo_apps import take_back
from tests.apps.team.test_teams import DAY, invited, owner_with, team
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import reauth
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_taking_an_account_back_removes_whom_the_thief_invited(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    world, client, (friend,) = await owner_with(store, "viewer")
    before = await World.make(store)
    await store.teams.accept(before.session, await invited(world, client, before.email), VISITOR)
    clock.advance(7 * DAY + 1)
    for person in (world, friend):
        person.session = await person.sign_in()
        await reauth(person)
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


async def brought(world: World, client: str, role: Role = "owner") -> World:
    """Somebody whom this person invites, after a new re-authentication of both."""
    friend = await World.make(world.store)
    await world.store.teams.accept(friend.session, await invited(world, client, friend.email, role), VISITOR)
    await reauth(friend)
    return friend


async def test_whom_a_thief_invited_before_the_address_changed_is_out(clock: FakeClock, memory_store: Store) -> None:
    """A thief may wait with the change of address, which starts the link."""
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    accomplice = await brought(world, client)
    honest = await brought(second, client, "developer")
    clock.advance(6 * DAY)
    world.session = await world.sign_in()
    undo = await undo_of(world, THIEF)
    assert accomplice.user in await team(store, client)
    await take_back(world, undo)
    assert await team(store, client) == {world.user: "owner", second.user: "owner", honest.user: "developer"}


@pytest.mark.parametrize("trick", ["chain", "circle", "gap"])
async def test_those_whom_an_accomplice_brought_are_out_too(clock: FakeClock, memory_store: Store, trick: str) -> None:
    """An accomplice invites another, who gives the accomplice a new role, or stays when the accomplice leaves."""
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await reauth(world)
    clock.advance(60)
    first = await brought(world, client)
    other = await brought(first, client)
    honest = await brought(second, client, "developer")
    if trick == "circle":
        roles: tuple[Role, ...] = ("viewer", "owner")
        for role in roles:
            await store.teams.set_role(other.session, client, first.user, role, VISITOR)
    elif trick == "gap":
        await store.teams.remove(other.session, client, first.user, VISITOR)
    await take_back(world, undo)
    assert await team(store, client) == {world.user: "owner", second.user: "owner", honest.user: "developer"}


async def test_an_owner_who_just_brought_somebody_does_not_leave(clock: FakeClock, memory_store: Store) -> None:
    """Taking the account back reaches only the teams that the person is in."""
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    friend = await brought(world, client)
    down = store.teams.set_role(world.session, client, world.user, "viewer", VISITOR)
    for call in (store.teams.leave(world.session, client, VISITOR), down):
        assert await refusal_of(call) == "access_denied"
    await store.teams.remove(second.session, client, world.user, VISITOR)
    assert await team(store, client) == {second.user: "owner", friend.user: "owner"}
    clock.advance(7 * DAY + 1)
    friend.session = await friend.sign_in()
    await reauth(friend)
    await store.teams.leave(friend.session, client, VISITOR)
    assert await team(store, client) == {second.user: "owner"}


async def test_an_owner_whom_the_thief_made_a_viewer_stays_and_newer_secrets_end(
    clock: FakeClock, memory_store: Store
) -> None:
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await reauth(world)
    clock.advance(60)
    _, secret = await store.owned.rotate(world.session, client, VISITOR)
    await store.teams.set_role(world.session, client, world.user, "viewer", VISITOR)
    await take_back(world, undo)
    assert await team(store, client) == {world.user: "viewer", second.user: "owner"}
    assert not (await fresh(store, client)).secret_matches(secret)


async def test_nobody_joins_by_the_thief_s_invitation_while_the_account_is_taken_back(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memory_store
    world, client, _ = await owner_with(store)
    clock.advance(60)
    since = await store.apps.now()
    accomplice = await World.make(store)
    waiting = [await invited(world, client, accomplice.email)]
    read = store.apps.fresh

    async def read_then_join(client_id: str) -> object:
        found = await read(client_id)
        while waiting:
            with suppress(Refused):
                await store.teams.accept(accomplice.session, waiting.pop(), VISITOR)
        return found

    monkeypatch.setattr(store.apps, "fresh", read_then_join)
    await store.owned.take_back(world.user, since)
    assert waiting == []
    assert await team(store, client) == {world.user: "owner"}


async def test_nobody_is_in_a_team_whose_account_is_deleted_while_they_join(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memory_store
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    link = await invited(world, client, friend.email, "owner")
    change = store.apps.change

    async def delete_first(*args: Any, **kwargs: Any) -> Registration:
        await store.people.delete(friend.user)
        return await change(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(store.apps, "change", delete_first)
        await store.teams.accept(friend.session, link, VISITOR)
    assert await team(store, client) == {world.user: "owner"}


async def test_a_new_viewer_s_link_changes_nothing_in_the_app(clock: FakeClock, memory_store: Store) -> None:
    """A viewer could change nothing, and nor can the viewer's link."""
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    viewer = await World.make(store)
    undo = await undo_of(viewer, THIEF)
    clock.advance(60)
    await store.teams.accept(viewer.session, await invited(world, client, THIEF, "viewer"), VISITOR)
    friend = await brought(second, client, "developer")
    await store.teams.remove(world.session, client, second.user, VISITOR)
    await store.owned.update(world.session, client, "app_changed", VISITOR, name="New")
    await take_back(viewer, undo)
    assert (await fresh(store, client)).status == "active"
    assert friend.user in await team(store, client)


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
