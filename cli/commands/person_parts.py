"""`user update`, and what operators see and take from a person one by one: `user sessions`, `identities` and so on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from cli.commands.bulk import BY_COMMAND
from cli.commands.context import Context
from cli.commands.people import one_person
from cli.terminal.outcome import CommandResult
from store.operations import person_named
from store.operators.people_acts import Changes
from store.operators.records import identity_record, session_record
from store.refused import Refused

SESSIONS = ("id", "signedInAt", "lastUsedAt", "address", "agent")
IDENTITIES = ("id", "issuer", "subject", "label", "lastUsedAt")


async def list_sessions(context: Context, args: Namespace) -> CommandResult:
    """Lists a person's live sessions, the newest first. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    found = (await context.store.operator.security(person.user)).sessions
    return CommandResult({"sub": person.user, "sessions": [session_record(one) for one in found]}, SESSIONS)


async def end_session(context: Context, args: Namespace) -> CommandResult:
    """Ends one session of a person, and no token of an app. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    sessions = (await context.store.operator.security(person.user)).sessions
    check_listed(args.id, (one.session_id for one in sessions), "sessions")
    await context.store.people_acts.parts.end_session(person.user, args.id)
    return ended(person.user, args.id)


async def list_identities(context: Context, args: Namespace) -> CommandResult:
    """Lists a person's accounts at other sites, the earliest link first. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    found = (await context.store.operator.security(person.user)).identities
    return CommandResult({"sub": person.user, "identities": [identity_record(one) for one in found]}, IDENTITIES)


async def unlink(context: Context, args: Namespace) -> CommandResult:
    """Disconnects an account at another site. Raises Refused("not_found"), Refused("invalid_request") if the person
    could not sign in without it, ValueError."""
    from outbound.identity.config import load_providers  # most commands need no providers

    person = await context.store.operator.find(person_named(args.email), 0)
    identities = (await context.store.operator.security(person.user)).identities
    check_listed(args.id, (one.identity.name for one in identities), "identities")
    others = load_providers(context.settings.identity_config).usable(one.identity for one in identities)
    await context.store.people_acts.parts.unlink(person.user, args.id, others)
    return ended(person.user, args.id)


async def update_user(context: Context, args: Namespace) -> CommandResult:
    """Changes the address or the name of a person, and mails both addresses. Raises Refused("not_found"),
    Refused("invalid_request") for an address that has an account, ValueError."""
    from cli.operator_mail import mailing  # what mails need takes longer to load than most commands run
    from handlers.admin import operator_mails

    check_update(args)
    person = await context.store.operator.find(person_named(args.email), 0)
    acts, changes = context.store.people_acts, Changes(args.name)
    changes.check()
    if args.new_email is not None:
        changed = await acts.change_address(BY_COMMAND, person.user, args.new_email, way_back=args.way_back)
        async with mailing(context) as site:
            operator_mails.address_changed(site, person.user, changed)
    if args.name is not None:
        await acts.change(BY_COMMAND, person.user, changes)
    return one_person(await context.store.operator.find(person.user, 0))


def check_update(args: Namespace) -> None:
    """Raises Refused("invalid_request") for options that change nothing."""
    if args.new_email is None and not args.way_back:
        raise Refused("invalid_request", "--no-way-back goes with --email.")
    if args.new_email is None and args.name is None:
        raise Refused("invalid_request", "Nothing to change is given: --email, --name, or both.")


def check_listed(typed: str, known: Iterable[str], verb: str) -> None:
    """Raises Refused("not_found") for an id that the list of this verb does not have."""
    if typed not in known:
        raise Refused("not_found", f"This person has none with that id: `latchkey user {verb}` lists them.")


def ended(user: str, name: str) -> CommandResult:
    """What has ended."""
    return CommandResult({"sub": user, "id": name, "ended": True})
