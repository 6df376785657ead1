"""`operator-key` and `user role`: who operates the server through its interface and its console."""

from __future__ import annotations

from argparse import Namespace

from cli.commands.context import SHOWN_ONCE, Context
from cli.commands.registration import ends_at
from cli.terminal.outcome import CommandResult
from store.moments import at, timestamp
from store.operations import person_named
from store.operators.people_acts import give_role
from store.operators.records import holder_record, key_record
from store.operators.role_holders import BY_COMMAND
from store.operators.roles import PEOPLES_ROLES, check_operator_role

COLUMNS = ("id", "role", "name", "address", "expiresAt", "lastUsedAt", "lastUsedFrom")
NOBODY = "none"
"""In place of a role, to take it."""


async def create_key(context: Context, args: Namespace) -> CommandResult:
    """Makes an operator key. Raises Refused, ValueError."""
    ends = round(ends_at(args.expires).timestamp() * 1000) if args.expires is not None else 0
    role = check_operator_role(args.role)
    key, text = await context.store.operator_keys.create(role, name=args.name, ends_at=ends, network=args.address or "")
    record = {"id": key.id, "key": text, "role": role, "expiresAt": timestamp(at(ends)) if ends else None}
    note = f"The key {SHOWN_ONCE} A server takes it at its --ops-port."
    return CommandResult(record, note=note, words={"expiresAt": record["expiresAt"] or "never"})


async def list_keys(context: Context, args: Namespace) -> CommandResult:
    """Lists the live keys, oldest first. Raises StoreError."""
    return CommandResult({"keys": [key_record(one) for one in await context.store.operator_keys.list()]}, COLUMNS)


async def revoke_key(context: Context, args: Namespace) -> CommandResult:
    """Ends a key at once. Raises Refused("not_found")."""
    await context.store.operator_keys.revoke(args.id)
    return CommandResult({"id": args.id, "revoked": True})


async def give(context: Context, args: Namespace) -> CommandResult:
    """Gives a person a role, or takes it, and mails them. Raises Refused, ValueError."""
    role = None if args.role == NOBODY else check_operator_role(args.role, PEOPLES_ROLES)
    store = context.store
    before = await give_role(store.operator, store.role_holders, person_named(args.email), role, BY_COMMAND)
    person = await store.operator.find(person_named(args.email), 0)
    if before != role:
        from cli.operator_mail import mailing  # what mails need takes longer to load than most commands run
        from handlers.admin.operator_mails import role_changed

        async with mailing(context) as site:
            await role_changed(site, person.user, role)
    return told_role(person.user, person.email, role, before)


def told_role(user: str, email: str, role: str | None, before: str | None) -> CommandResult:
    """The result of a changed role."""
    record = {"sub": user, "email": email, "role": role, "before": before}
    words = {"role": role or NOBODY, "before": before or NOBODY}
    note = "The role works once this person signs in with two-step verification." if role else ""
    return CommandResult(record, note=note, words=words)


async def list_roles(context: Context, args: Namespace) -> CommandResult:
    """Lists everybody with a role. Raises StoreError."""
    holders = await context.store.role_holders.list()
    return CommandResult({"roles": [holder_record(one) for one in holders]}, ("id", "role", "since", "givenBy"))
