"""The team of an app in the store: who may do what, who may go, and lists that stay in step."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack
import pytest

from store import keys
from store.apps.owners.members import role_of, without
from store.apps.owners.roles import ACTS, MOST_MEMBERS, ROLES, Act, Member, Role, may
from store.apps.registration import InvalidRegistration, Registration
from store.lifetimes import APP_BEGUN, TEAM_INVITATION
from store.refused import Unproved
from store.wiring import Store
from tests.apps.test_owned import register
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import broken, checked
from tests.support.store.second_factors import reauth
from tests.support.store.world import CALLBACK, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

DAY = 86_400


async def owner_with(store: Store, *roles: Role) -> tuple[World, str, list[World]]:
    """A person who has just re-authenticated, an app of theirs, and its other members, whom the operator added."""
    world = await World.make(store)
    client = (await register(world)).registration.client_id
    others = [await World.make(store) for _ in roles]
    for other, role in zip(others, roles, strict=True):
        await store.teams.put(client, other.user, role)
        await reauth(other)
    await reauth(world)
    return world, client, others


async def invited(world: World, client: str, email: str, role: Role = "developer") -> str:
    return await world.store.teams.invite(world.session, client, email, role, VISITOR)


async def team(store: Store, client: str) -> dict[str, str]:
    """The roles of everybody in the team, by user id."""
    app, _ = await store.apps.fresh(client)
    assert app is not None
    return {one.user: one.role for one in [Member(app.owner, "owner"), *app.members]}


async def joined(world: World) -> list[tuple[str, str]]:
    """The apps of others in a person's list, with the person's role."""
    return [(one.app.client_id, one.role) for one in (await world.store.owned.list(world.session)).joined]


async def owned(world: World) -> list[str]:
    return [app.client_id for app in (await world.store.owned.list(world.session)).apps]


def test_each_role_may_do_what_the_roles_after_it_may() -> None:
    assert {act: [role for role in ROLES if may(role, act)] for act in ACTS} == {
        "see": ["owner", "developer", "viewer"],
        "leave": ["owner", "developer", "viewer"],
        "change": ["owner", "developer"],
        "team": ["owner"],
        "delete": ["owner"],
    }
    assert not any(may(None, act) for act in ACTS)


async def test_an_invitation_is_accepted_once_and_gives_its_role(store: Store) -> None:
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    text = await invited(world, client, friend.email)
    change = await store.teams.accept(friend.session, text, VISITOR)
    assert role_of(change.after, friend.user) == "developer"
    assert role_of(change.before, friend.user) is None
    assert await joined(friend) == [(client, "developer")]
    assert await owned(friend) == [], "the app counts for its first owner alone"
    assert await refusal_of(store.teams.accept(friend.session, text, VISITOR)) == "invalid_request"
    assert (await store.teams.read(world.session, client)).invitations == ()
    assert (await world.events())[-1] == "app_member_invited"
    assert (await friend.events())[-1] == "app_joined"
    assert broken(await checked(store)) == set()


async def test_an_invitation_accepted_twice_at_once_counts_once(store: Store) -> None:
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    text = await invited(world, client, friend.email)
    done = await asyncio.gather(*(refusal_of(store.teams.accept(friend.session, text, VISITOR)) for _ in range(5)))
    assert done.count(None) == 1
    assert await team(store, client) == {world.user: "owner", friend.user: "developer"}
    assert await joined(friend) == [(client, "developer")]


async def test_an_invitation_is_for_the_confirmed_address_alone(store: Store) -> None:
    world, client, _ = await owner_with(store)
    friend, other = await World.make(store), await World.make(store)
    text = await invited(world, client, friend.email)
    assert await refusal_of(store.teams.accept(other.session, text, VISITOR)) == "access_denied"
    await store.client.hdel(keys.person(friend.user)["user"], "verified")
    assert await refusal_of(store.teams.accept(friend.session, text, VISITOR)) == "access_denied"
    assert await store.client.exists(keys.person(friend.user)["teams"], keys.person(other.user)["teams"]) == 0
    await store.client.hset(keys.person(friend.user)["user"], "verified", "1")
    await store.teams.accept(friend.session, text, VISITOR)


async def test_an_invitation_by_a_suspended_owner_works_only_after_they_are_let_in_again(store: Store) -> None:
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    text = await invited(world, client, friend.email)
    await store.operator.set_status(world.email, "disabled")
    assert await refusal_of(store.teams.look(text)) == "invalid_request"
    assert await refusal_of(store.teams.accept(friend.session, text, VISITOR)) == "invalid_request"
    assert await team(store, client) == {world.user: "owner"}
    assert await store.client.exists(keys.person(friend.user)["teams"]) == 0
    await store.operator.set_status(world.email, "active")
    await store.teams.accept(friend.session, text, VISITOR)


async def test_an_invitation_ends_after_a_week_or_when_withdrawn_or_replaced(
    clock: FakeClock, memory_store: Store
) -> None:
    store = memory_store
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    first = await invited(world, client, friend.email)
    second = await invited(world, client, friend.email, "viewer")
    assert await refusal_of(store.teams.look(first)) == "invalid_request", "the newest one counts"
    (one,) = (await store.teams.read(world.session, client)).invitations
    assert await store.teams.withdraw(world.session, client, one.id, VISITOR) == friend.email
    assert await refusal_of(store.teams.accept(friend.session, second, VISITOR)) == "invalid_request"
    third = await invited(world, client, friend.email)
    clock.advance(TEAM_INVITATION // 1000 + 1)
    assert await refusal_of(store.teams.look(third)) == "invalid_request"
    assert await store.client.exists(keys.app_stats(client)["invitations"]) == 0


async def test_an_app_has_ten_open_invitations(store: Store) -> None:
    world, client, _ = await owner_with(store)
    for number in range(10):
        await invited(world, client, f"friend{number}@invited.example")
    assert await refusal_of(invited(world, client, "more@invited.example")) == "invalid_request"
    await invited(world, client, "friend3@invited.example")  # in the place of the earlier one
    assert len((await store.teams.read(world.session, client)).invitations) == 10


async def test_an_owner_who_is_removed_leaves_no_way_back(store: Store) -> None:
    world, client, (other,) = await owner_with(store, "owner")
    accomplice = await World.make(store)
    text = await invited(other, client, accomplice.email, "owner")
    own = await invited(world, client, "old@example.org")
    await store.teams.remove(world.session, client, other.user, VISITOR)
    assert await refusal_of(store.teams.accept(accomplice.session, text, VISITOR)) == "invalid_request"
    assert (await store.teams.look(own)).invitation.email == "old@example.org"
    assert (await other.events())[-1] == "app_role_taken"
    assert await joined(other) == []


async def test_a_removed_member_has_no_second_invitation(store: Store) -> None:
    world, client, _ = await owner_with(store)
    friend = await World.make(store)
    assert await refusal_of(invited(world, client, world.email)) == "invalid_request"
    text = await invited(world, client, friend.email)
    await store.teams.put(client, friend.user, "viewer")  # by the operator, while the invitation is open
    assert await refusal_of(store.teams.accept(friend.session, text, VISITOR)) == "invalid_request"
    await store.teams.remove(world.session, client, friend.user, VISITOR)
    assert await refusal_of(store.teams.accept(friend.session, text, VISITOR)) == "invalid_request"


ACTS_OF: dict[str, tuple[Act, Any]] = {
    "find": ("see", lambda w, c: w.store.owned.find(w.session, c)),
    "team": ("see", lambda w, c: w.store.teams.read(w.session, c)),
    "update": ("change", lambda w, c: w.store.owned.update(w.session, c, "app_changed", VISITOR, name="New")),
    "rotate": ("change", lambda w, c: w.store.owned.rotate(w.session, c, VISITOR)),
    "logo": ("change", lambda w, c: w.store.owned.set_logo(w.session, c, b"image", VISITOR)),
    "webhook": ("change", lambda w, c: w.store.owned.set_webhook(w.session, c, "https://a.example/h", VISITOR)),
    "invite": ("team", lambda w, c: invited(w, c, "x@invited.example")),
    "withdraw": ("team", lambda w, c: w.store.teams.withdraw(w.session, c, "x" * 22, VISITOR)),
    "role": ("team", lambda w, c: w.store.teams.set_role(w.session, c, w.user, "owner", VISITOR)),
    "delete": ("delete", lambda w, c: w.store.owned.delete(w.session, c, VISITOR)),
}


@pytest.mark.parametrize("role", [*ROLES, None])
async def test_the_store_checks_the_role_at_each_act(memory_store: Store, role: Role | None) -> None:
    store = memory_store
    _, client, others = await owner_with(store, *((role,) if role else ()))
    person = others[0] if others else await World.make(store)
    await reauth(person)
    refused = {}
    for name, (_, act) in ACTS_OF.items():
        refused[name] = await refusal_of(act(person, client))
    want = "access_denied" if role else "not_found"
    assert refused == {name: None if may(role, act) else want for name, (act, _) in ACTS_OF.items()}


async def test_a_change_asks_for_the_role_in_the_write_itself(memory_store: Store) -> None:
    """A member who is removed while their form is on its way changes nothing."""
    _, client, (other,) = await owner_with(memory_store, "developer")
    await memory_store.teams.take(client, other.user)
    apps = memory_store.apps
    assert await refusal_of(apps.update(client, other.user, name="Taken")) == "not_found"
    assert await refusal_of(apps.begin_deletion(client, by=other.user)) == "not_found"


async def test_changes_of_the_team_need_a_recent_proof(memory_store: Store) -> None:
    world, client, (other,) = await owner_with(memory_store, "owner")
    stale = await world.sign_in()
    teams = memory_store.teams
    for call in (
        teams.invite(stale, client, "x@invited.example", "viewer", VISITOR),
        teams.set_role(stale, client, other.user, "viewer", VISITOR),
        teams.remove(stale, client, other.user, VISITOR),
        teams.leave(stale, client, VISITOR),
    ):
        with pytest.raises(Unproved):
            await call
    assert await team(memory_store, client) == {world.user: "owner", other.user: "owner"}


async def test_the_last_owner_stays(store: Store) -> None:
    world, client, (other,) = await owner_with(store, "developer")
    assert await refusal_of(store.teams.leave(world.session, client, VISITOR)) == "access_denied"
    same = store.teams.set_role(world.session, client, world.user, "viewer", VISITOR)
    assert await refusal_of(same) == "access_denied"
    assert await refusal_of(store.teams.take(client, world.user)) == "access_denied", "nor does the operator"
    await store.teams.leave(other.session, client, VISITOR)
    assert await team(store, client) == {world.user: "owner"}


async def test_the_first_owner_hands_the_app_on(store: Store) -> None:
    world, client, (viewer, second) = await owner_with(store, "viewer", "owner")
    await store.teams.leave(world.session, client, VISITOR)
    app, _ = await store.apps.fresh(client)
    assert app is not None
    assert app.owner == second.user
    assert await owned(second) == [client]
    assert await joined(second) == []
    assert await owned(world) == []
    assert await joined(viewer) == [(client, "viewer")]
    assert await store.client.zscore(keys.person(second.user)["teams"], client) is None
    assert broken(await checked(store)) == set()


async def test_the_first_owner_may_step_down(store: Store) -> None:
    world, client, (second,) = await owner_with(store, "owner")
    await store.teams.set_role(second.session, client, world.user, "viewer", VISITOR)
    assert await team(store, client) == {second.user: "owner", world.user: "viewer"}
    assert await joined(world) == [(client, "viewer")]
    assert await owned(world) == []
    assert (await world.events())[-1] == "app_role_given"
    assert broken(await checked(store)) == set()


async def test_a_new_owner_cannot_take_the_app_for_a_week(clock: FakeClock, memory_store: Store) -> None:
    """A thief of an account makes themselves an owner; the person's link takes the account back within 7 days."""
    store = memory_store
    world, client, _ = await owner_with(store)
    thief = await World.make(store)
    await store.teams.accept(thief.session, await invited(world, client, thief.email, "owner"), VISITOR)
    await reauth(thief)
    assert await refusal_of(store.teams.remove(thief.session, client, world.user, VISITOR)) == "access_denied"
    down = store.teams.set_role(thief.session, client, world.user, "viewer", VISITOR)
    assert await refusal_of(down) == "access_denied"
    assert await refusal_of(store.teams.leave(world.session, client, VISITOR)) == "access_denied"
    clock.advance(7 * DAY + 1)
    thief.session = await thief.sign_in()
    await reauth(thief)
    await store.teams.remove(thief.session, client, world.user, VISITOR)
    assert await team(store, client) == {thief.user: "owner"}


async def test_a_new_owner_removes_no_settled_one_even_if_another_is_left(memory_store: Store) -> None:
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    new = await World.make(store)
    await store.teams.accept(new.session, await invited(world, client, new.email, "owner"), VISITOR)
    await reauth(new)
    assert await refusal_of(store.teams.remove(new.session, client, second.user, VISITOR)) == "access_denied"
    await store.teams.remove(second.session, client, world.user, VISITOR)


@pytest.mark.parametrize("number", range(3))
async def test_two_owners_who_remove_each_other_leave_one(store: Store, number: int) -> None:
    world, client, (second,) = await owner_with(store, "owner")
    done = await asyncio.gather(
        refusal_of(store.teams.remove(world.session, client, second.user, VISITOR)),
        refusal_of(store.teams.remove(second.session, client, world.user, VISITOR)),
    )
    assert done.count(None) == 1
    assert list((await team(store, client)).values()) == ["owner"]


async def test_a_deleted_account_hands_its_apps_on(store: Store) -> None:
    world, client, (second, third) = await owner_with(store, "owner", "developer")
    alone = (await register(world, "another nonce")).registration.client_id
    await store.people.delete(third.user)
    assert await team(store, client) == {world.user: "owner", second.user: "owner"}
    await store.people.delete(world.user)
    assert await team(store, client) == {second.user: "owner"}
    assert await owned(second) == [client]
    left, _ = await store.apps.fresh(alone)
    assert left is not None
    assert left.owner == world.user, "an app without another owner keeps the deleted one"
    assert not await store.client.exists(
        *(keys.person(one)[noun] for one in (world.user,) for noun in ("apps", "teams"))
    )
    assert broken(await checked(store)) == set()


async def test_an_heir_whose_account_is_gone_is_passed_over(memory_store: Store) -> None:
    store = memory_store
    world, client, (second, third) = await owner_with(store, "owner", "owner")
    await store.client.delete(keys.person(second.user)["user"])  # its own deletion is at work
    await store.teams.part_with(world.user)
    assert await team(store, client) == {third.user: "owner"}


@pytest.mark.parametrize("written", ["the entry alone", "entry and registration"])
async def test_a_change_that_is_cut_short_heals(memory_store: Store, clock: FakeClock, written: str) -> None:
    """The first owner leaves; the process ends after one of the writes."""
    store = memory_store
    world, client, (second,) = await owner_with(store, "owner")
    known = keys.person(second.user)
    await store.scripts.run("list_app", {"user": known["user"], "list": known["apps"]}, client=client)
    if written == "entry and registration":
        await store.apps.change(client, lambda app: without(app, world.user, "", 0))
    clock.advance(APP_BEGUN // 1000 + 1)
    left = await team(store, client)
    report = await checked(store)
    assert broken(report) <= {"owned-left"}, "a note: the next listing drops the entry"
    assert await owned(second) == ([client] if world.user not in left else [])
    assert await joined(second) == ([(client, "owner")] if world.user in left else [])
    assert await owned(world) == ([client] if world.user in left else [])
    assert broken(await checked(store)) == set()


async def test_fsck_adds_a_missing_entry_and_drops_a_foreign_one(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world, client, (second,) = await owner_with(store, "viewer")
    await store.client.delete(keys.person(second.user)["teams"])
    await store.client.zadd(keys.person(world.user)["teams"], {client: 1})
    assert broken(await checked(store)) == {"owned", "owned-left"}
    await checked(store, repair=True)
    assert broken(await checked(store)) == set()
    assert await joined(second) == [(client, "viewer")]
    await store.client.delete(keys.person(second.user)["user"])
    assert "team" in broken(await checked(store))


async def test_a_row_of_one_owner_is_what_earlier_releases_wrote(memory_store: Store) -> None:
    world, client, _ = await owner_with(memory_store)
    row = msgpack.unpackb(await memory_store.client.get(keys.app(client)))
    assert not {"members", "memberScopes"} & set(row)
    app, _ = await memory_store.apps.fresh(client)
    assert app is not None
    assert Registration.unpack(app.pack()) == app
    assert await team(memory_store, client) == {world.user: "owner"}


@pytest.mark.parametrize(
    ("owner", "members"),
    [
        pytest.param("", (Member("b", "viewer"),), id="members without an owner"),
        pytest.param("a", (Member("a", "viewer"),), id="the owner twice"),
        pytest.param("a", (Member("b", "viewer"), Member("b", "owner")), id="a member twice"),
        pytest.param("a", (Member("b", "root"),), id="an unknown role"),  # type: ignore[arg-type]  # wrong on purpose
        pytest.param("a", tuple(Member(f"m{n}", "viewer") for n in range(MOST_MEMBERS)), id="too many"),
    ],
)
def test_a_malformed_team_is_no_registration(owner: str, members: tuple[Member, ...]) -> None:
    with pytest.raises(InvalidRegistration):
        Registration("an-app", "App", (CALLBACK,), ("profile",), owner=owner, members=members)
