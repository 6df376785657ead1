"""`user`: the operator's commands about people, one function for each."""

from __future__ import annotations

import json
import secrets
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from cli.commands.context import SHOWN_ONCE, Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from cli.terminal.tables import word
from store.crypto.passwords import check_password
from store.directory.queries import ANY
from store.directory.rebuild import IN_A_COMMAND
from store.lifetimes import DAY, INVITE
from store.moments import timestamp
from store.names import check_groups, check_person_name, is_user_id, normalise_email
from store.operations import Person, Suspension, person_named, suspended_until
from store.operators.cursors import MOST_AT_ONCE
from store.operators.people_pages import PersonSummary
from store.operators.role_holders import LAST_ADMIN
from store.refused import Refused
from store.results import Visitor

USERS = ("email", "sub", "status", "name")
AT_ONCE = 1000
"""People that are printed as one table."""


async def create_user(context: Context, args: Namespace) -> CommandResult:
    """Makes an account with a confirmed address. Raises Refused, ValueError."""
    email, name = normalise_email(args.email), check_person_name(args.name)
    password = secrets.token_urlsafe(18) if args.password is None else args.password
    await _check_password(context, password, email, name)
    groups = check_groups(args.groups)
    await context.store.people.create(
        email, name, password, verified=True, event="created_by_operator", visitor=Visitor(), groups=groups
    )
    person = await context.store.operator.find(email)
    if args.password is not None:
        return one_person(person)
    return one_person(person, {"password": password}, note=f"The password {SHOWN_ONCE}")


async def list_users(context: Context, args: Namespace) -> CommandResult:
    """Lists people: one page, everybody, or with `--stream` one JSON object a line. Many people are printed as they
    come, and never all in memory. Raises Refused("invalid_request"), ValueError."""
    if args.by != ANY:
        return CommandResult({"users": [_user(person) async for person in _found(context, args)]}, USERS)
    pages, status = context.store.people_pages, args.status
    if args.limit is not None or args.cursor is not None:
        page = await pages.page(
            args.query, status, args.limit or MOST_AT_ONCE, args.cursor or "", counted=not args.cursor
        )
        users = [_listed(one) for one in page.people]
        record = {"users": users, "nextCursor": page.cursor or None, "total": page.total}
        return CommandResult(record, USERS, words={"nextCursor": page.cursor, "total": page.total or ""})
    first: list[dict[str, Any]] = []
    found = pages.everyone(args.query, status)
    as_json, begun = getattr(args, "json", False), False
    async for one in found:
        if args.stream:
            print(json.dumps(_listed(one)))
            continue
        first.append(_listed(one))
        if len(first) == AT_ONCE:
            print(in_pieces(first, as_json, begun), end="")
            first, begun = [], True
    if args.stream:
        return CommandResult({})
    if not begun:
        return CommandResult({"users": first}, USERS)
    print(in_pieces(first, as_json, begun), end="]}\n" if as_json else "")
    return CommandResult({})


def in_pieces(users: list[dict[str, Any]], as_json: bool, begun: bool) -> str:
    """A part of a long list: of its JSON object, or of its table."""
    if as_json:
        joined = ", ".join(json.dumps(user) for user in users)
        return ((", " if joined else "") if begun else '{"users": [') + joined
    return "".join("  ".join(word(user[name]) for name in USERS) + "\n" for user in users)


async def _found(context: Context, args: Namespace) -> AsyncIterator[Person]:
    """People found by `--by`: by address, name or domain alone."""
    if not args.query:
        raise ValueError("--by goes with --query.")
    left, cursor = args.limit or MOST_AT_ONCE, ""
    while left > 0:
        page = await context.store.directory.search(
            args.query, by=args.by, status=args.status, limit=left, cursor=cursor
        )
        for found in page.people:
            person = await context.store.operator.show(found.user)
            if person:
                yield person
        left, cursor = left - len(page.people), page.cursor
        if not cursor:
            return


async def reindex(context: Context, args: Namespace) -> CommandResult:
    """Rebuilds the index of people while servers run. An interrupted run continues where it was. Raises StoreError,
    StoreUnavailable."""
    rebuild, left = context.store.directory_rebuild, 0
    await rebuild.begin()
    with ProgressBar(sys.stderr) as bar:
        async for progress in rebuild.fill(IN_A_COMMAND):
            bar.show(progress.done / progress.of, "people are compared")
        async for progress in rebuild.clean():
            bar.show(progress.done / progress.of, "entries are compared")
            left = progress.left
    return CommandResult({"removed": left}, note="Everybody is in the index.")


async def show_user(context: Context, args: Namespace) -> CommandResult:
    """Shows one person with their second step, connected apps and newest activity. Raises Refused("not_found"),
    ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    security = await context.store.operator.security(person.user)
    factors = {
        "authenticatorApp": security.app_since is not None,
        "passkeys": len(security.passkeys),
        "recoveryCodesLeft": security.codes,
    }
    activity = [
        {
            "at": timestamp(entry.at),
            "event": entry.event,
            "client_id": entry.client,
            "address": entry.address,
            "agent": entry.agent,
        }
        for entry in person.activity
    ]
    record = {**_user(person), **_suspended(person), **factors, "apps": list(person.apps), "activity": activity}
    return CommandResult(record, ("at", "event", "client_id", "address", "agent"), words=_words(record))


async def disable_user(context: Context, args: Namespace) -> CommandResult:
    """Disables a person: stops every token, ends every session and blocks sign-in. Raises Refused("not_found"),
    ValueError."""
    return one_person(await context.store.operator.set_status(person_named(args.email), "disabled"))


async def suspend_user(context: Context, args: Namespace) -> CommandResult:
    """Disables a person, and keeps a reason that the person reads. Raises Refused("not_found"), ValueError."""
    suspension = Suspension(args.reason, args.note, suspended_until(args.until, "--until") if args.until else None)
    person = await context.store.operator.suspend(person_named(args.email), suspension)
    return one_person(person, _suspended(person))


async def set_password(context: Context, args: Namespace) -> CommandResult:
    """Sets a new password for a person who forgot it. Every session ends. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    password = secrets.token_urlsafe(18) if args.password is None else args.password
    await _check_password(context, password, person.email, person.name)
    changed = await context.store.operator.set_password(person.user, await context.store.hasher.hash(password))
    if args.password is not None:
        return one_person(changed)
    return one_person(changed, {"password": password}, note=f"The password {SHOWN_ONCE}")


async def reset_factors(context: Context, args: Namespace) -> CommandResult:
    """Removes a person's second step, but not the password. Raises Refused("not_found"), ValueError."""
    return one_person(await context.store.operator.reset_factors(person_named(args.email)))


async def sign_out(context: Context, args: Namespace) -> CommandResult:
    """Ends every session of a person, and no token of an app. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    await context.store.people_acts.parts.end_sessions(person.user)
    return one_person(person)


async def disconnect_app(context: Context, args: Namespace) -> CommandResult:
    """Disconnects an app from a person. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    until = await context.store.people_acts.parts.disconnect(person.user, args.client_id)
    record = {"sub": person.user, "client_id": args.client_id, "dataUntil": timestamp(until)}
    return CommandResult(record)


async def enable_user(context: Context, args: Namespace) -> CommandResult:
    """Enables a person again. Raises Refused("not_found"), ValueError."""
    return one_person(await context.store.operator.set_status(person_named(args.email), "active"))


async def add_groups(context: Context, args: Namespace) -> CommandResult:
    """Adds a person to groups. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    await context.store.groups.change(person.user, person.groups, add=args.groups)
    note = "" if person.email_verified else "Nobody has confirmed this address: the account may be somebody else's."
    return one_person(await context.store.operator.find(person.user), note=note)


async def remove_groups(context: Context, args: Namespace) -> CommandResult:
    """Removes a person from groups. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    await context.store.groups.change(person.user, person.groups, remove=args.groups)
    return one_person(await context.store.operator.find(person.user))


async def delete_user(context: Context, args: Namespace) -> CommandResult:
    """Deletes a person and all their data. Raises Refused("not_found"), Refused("access_denied") for the last admin,
    ValueError."""
    who, holders = person_named(args.email), context.store.role_holders
    user = who if is_user_id(who) else await context.store.people.find(who)
    if user and await holders.is_last_admin(user):
        raise Refused("access_denied", LAST_ADMIN)
    if args.wait is not None:
        return await _plan_deletion(context, args, who)
    if args.reason:
        raise Refused("invalid_request", "--reason goes with --wait: a person who is deleted at once reads nothing.")
    with ProgressBar(sys.stderr) as bar:
        user = await context.store.operator.delete(
            person_named(args.email), lambda apps: bar.tell(f"{apps:,} apps disconnected")
        )
    return CommandResult({"sub": user, "deleted": True})


async def _plan_deletion(context: Context, args: Namespace, who: str) -> CommandResult:
    person = await context.store.operator.find(who, 0)
    if role := await context.store.role_holders.of(person.user):
        raise Refused("access_denied", f"This person has the role {role}. Remove the role first.")
    await context.store.planned_deletions.plan(person.user, args.wait, args.reason)
    return await _told_of_deletion(context, person.user, "deletion_planned")


async def cancel_deletion(context: Context, args: Namespace) -> CommandResult:
    """Cancels a planned deletion. Raises Refused("not_found"), Refused("invalid_request") without one, ValueError."""
    person = await context.store.operator.find(person_named(args.email), 0)
    await context.store.planned_deletions.cancel(person.user)
    return await _told_of_deletion(context, person.user, "deletion_cancelled")


async def _told_of_deletion(context: Context, user: str, what: str) -> CommandResult:
    """The person, who got a mail."""
    from cli.operator_mail import mailing  # what mails need takes longer to load than most commands run
    from handlers.admin import operator_mails

    person = await context.store.operator.find(user, 0)
    async with mailing(context) as site:
        await getattr(operator_mails, what)(site, person)
    return one_person(person, _suspended(person))


async def invite_user(context: Context, args: Namespace) -> CommandResult:
    """Makes a link with which anybody can sign up with the address. Raises Refused, ValueError."""
    email = normalise_email(args.email)
    if not context.settings.base_url:
        raise Refused("invalid_request", "The link needs the server's address: --base-url or LATCHKEY_BASE_URL.")
    if await context.store.people.credentials(email):
        raise Refused("invalid_request", "There's already an account with this e-mail address.")
    invite = await context.store.people.invite(email)
    link = f"{context.settings.base_url}/signup?invite={quote(invite)}"
    note = f"Valid once, for {INVITE // DAY} days, and only this newest one. Send it to that address and nobody else."
    return CommandResult({"email": email, "link": link}, note=note)


async def _check_password(context: Context, password: str, email: str, name: str) -> None:
    check_password(password, email, name)
    if context.settings.password_ranges:
        from outbound.breaches import Breaches  # aiohttp takes longer to load than most commands run

        await Breaches(context.settings.password_ranges).check(password)


def one_person(person: Person, more: dict[str, Any] | None = None, note: str = "") -> CommandResult:
    """A person as the result of a command."""
    record = {**_user(person), **(more or {})}
    return CommandResult(record, note=note, words=_words(record))


def _words(record: dict[str, Any]) -> dict[str, str]:
    """Shows no line for a list without members: it would look like a table without rows."""
    return {name: "" for name in ("groups",) if not record[name]}


def _suspended(person: Person) -> dict[str, Any]:
    """Why the person is suspended, and when they are deleted; nothing for others."""
    planned = {"deletionAt": timestamp(person.delete_at)} if person.delete_at else {}
    if person.suspension is None:
        return planned
    reason, note, until = person.suspension
    return {"reason": reason, "note": note, "until": timestamp(until) if until else None, **planned}


def _listed(one: PersonSummary) -> dict[str, Any]:
    return {
        "sub": one.user,
        "email": one.email,
        "email_verified": one.email_verified,
        "name": one.name,
        "status": one.status,
        "groups": list(one.groups),
        "createdAt": timestamp(one.created_at),
    }


def _user(person: Person) -> dict[str, Any]:
    return {
        "sub": person.user,
        "email": person.email,
        "email_verified": person.email_verified,
        "name": person.name,
        "status": person.status,
        "groups": list(person.groups),
        "createdAt": timestamp(person.created_at),
    }
