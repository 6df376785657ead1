"""Calls about the teams of apps."""

from __future__ import annotations

from itertools import count

from tests.support.calls.apps import own_app
from tests.support.calls.prepared import Call, call
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import VISITOR, World

_numbers = count(1)


async def friend(w: World) -> str:
    """The user id of another person."""
    return await w.person(f"friend{next(_numbers)}@example.com")


async def two_owners(w: World) -> tuple[str, str]:
    """The client id of an app of the person with a second owner, and that one's user id."""
    client, user = await own_app(w), await friend(w)
    await w.store.teams.put(client, user, "owner")
    return client, user


async def invitation(w: World, email: str) -> str:
    """The text of an invitation to the team of an app of the person."""
    client = await own_app(w)
    return await w.store.teams.invite(w.session, client, email, "developer", VISITOR)


@call("teams.person", "read_member")
async def _(w: World) -> Call:
    return lambda: w.store.teams.person(w.user)


@call("teams.read", "read_session", "read_member")
async def _(w: World) -> Call:
    client, _ = await two_owners(w)
    return lambda: w.store.teams.read(w.session, client)


@call("teams.people", "read_member")
async def _(w: World) -> Call:
    app, _ = await w.store.apps.fresh(await own_app(w))
    assert app is not None
    return lambda: w.store.teams.people(app)


@call("teams.persons", "read_member")
async def _(w: World) -> Call:
    return lambda: w.store.teams.persons([w.user])


@call("teams.invite", "read_session", "read_member", "note_app", "invite_member")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.teams.invite(w.session, client, "somebody@example.com", "viewer", VISITOR)


@call("teams.withdraw", "read_session", "note_app")
async def _(w: World) -> Call:
    await invitation(w, "somebody@example.com")
    client = await own_app(w)
    (one,) = (await w.store.teams.read(w.session, client)).invitations
    return lambda: w.store.teams.withdraw(w.session, client, one.id, VISITOR)


@call("teams.look", "read_member")
async def _(w: World) -> Call:
    text = await invitation(w, "somebody@example.com")
    return lambda: w.store.teams.look(text)


@call("teams.is_member")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.teams.is_member(w.user, client)


@call("teams.accept", "read_member", "join_app", "accept_invitation")
async def _(w: World) -> Call:
    email = f"friend{next(_numbers)}@example.com"
    await w.person(email)
    text, session = await invitation(w, email), await w.sign_in(email)
    return lambda: w.store.teams.accept(session, text, VISITOR)


@call("teams.set_role", "read_session", "read_member", "note_app", "save_app", "record_event")
async def _(w: World) -> Call:
    client, user = await two_owners(w)
    return lambda: w.store.teams.set_role(w.session, client, user, "viewer", VISITOR)


@call("teams.remove", "read_session", "read_member", "note_app", "save_app", "record_event")
async def _(w: World) -> Call:
    client, user = await two_owners(w)
    return lambda: w.store.teams.remove(w.session, client, user, VISITOR)


@call("teams.leave", "read_session", "read_member", "note_app", "list_app", "save_app")
async def _(w: World) -> Call:
    client, _ = await two_owners(w)
    await reauth_if_needed(w)
    return lambda: w.store.teams.leave(w.session, client, VISITOR)


@call("teams.put", "read_member", "list_app", "save_app", "record_event")
async def _(w: World) -> Call:
    client, user = await own_app(w), await friend(w)
    return lambda: w.store.teams.put(client, user, "developer")


@call("teams.take", "read_member", "save_app", "record_event")
async def _(w: World) -> Call:
    client, user = await two_owners(w)
    return lambda: w.store.teams.take(client, user)


@call("teams.part_with", "list_app", "save_app")
async def _(w: World) -> Call:
    await two_owners(w)
    return lambda: w.store.teams.part_with(w.user)
