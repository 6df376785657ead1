"""`app member`: the team of an app, for the operator."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cli.commands.apps import find_app
from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.apps.owners.roles import check_role
from store.apps.owners.team import Teammate
from store.moments import at, timestamp
from store.operations import person_named


async def list_members(context: Context, args: Namespace) -> CommandResult:
    """Lists everybody in the team of an app, the first owner first. Raises Refused("not_found")."""
    return await _team(context, args.client_id)


async def add_member(context: Context, args: Namespace) -> CommandResult:
    """Adds a person to the team of an app, or changes their role. Raises Refused, ValueError."""
    person = await context.store.operator.find(person_named(args.email), 1)
    await context.store.teams.put(args.client_id, person.user, check_role(args.role))
    return await _team(context, args.client_id)


async def remove_member(context: Context, args: Namespace) -> CommandResult:
    """Removes a person from the team of an app. Raises Refused, ValueError."""
    person = await context.store.operator.find(person_named(args.email), 1)
    await context.store.teams.take(args.client_id, person.user)
    return await _team(context, args.client_id)


async def _team(context: Context, client_id: str) -> CommandResult:
    context.store.apps.forget(client_id)
    app = await find_app(context.store, client_id)
    people = [_record(one) for one in await context.store.teams.people(app)]
    return CommandResult({"client_id": client_id, "members": people}, ("sub", "email", "name", "role", "since"))


def _record(mate: Teammate) -> dict[str, Any]:
    member, person = mate
    return {
        "sub": member.user,
        "email": person.email if person else None,
        "name": person.name if person else None,
        "role": member.role,
        "since": timestamp(at(member.since)),
    }
