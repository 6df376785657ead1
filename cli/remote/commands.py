"""The commands that work against a server elsewhere: what each asks the management interface."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from cli.commands import bulk, operators
from cli.commands import credits as money
from cli.commands import export as exports
from cli.commands.audit import COLUMNS as EVENT_COLUMNS
from cli.commands.audit import SHOWN, checked_bounds, filters_of, moment
from cli.commands.context import OLDER_STAYS, ONLY_ONE, SHOWN_ONCE, SIGNING_ONCE
from cli.remote.app_logos import set_logo
from cli.remote.client import RemoteServer, ServerUnreachable, part
from cli.remote.following import follow_events
from cli.remote.person_parts import PERSON_PARTS, RemoteCommand
from cli.remote.server_keys import SERVER_KEYS
from cli.remote.shown import person_of, user_of
from cli.terminal.outcome import CommandResult
from store.apps.registration_rows import RECORD
from store.moments import at, timestamp
from store.refused import Refused

PEOPLE: Final = ("email", "sub", "status", "name")
WAIT: Final = 0.2
"""Seconds between two looks at long work."""
INVITED: Final = {
    True: "The address gets this link by e-mail.",
    False: "The server has no mail server, so it sends no e-mail. Give this link to that person yourself.",
    None: "If the server has a mail server, the address gets this link by e-mail. Otherwise give it to that person.",
}
"""What to do with the link of an invitation; None: a server of an earlier release, which doesn't say."""
ACTIVITY: Final = ("at", "event", "client_id", "address", "agent")


def list_users(server: RemoteServer, args: Namespace) -> CommandResult:
    """Lists people."""
    query = {"query": args.query, "status": args.status}
    if args.limit is None and args.cursor is None:
        return CommandResult({"users": [user_of(one) for one in server.items("/people", **query)]}, PEOPLE)
    page = server.get("/people", **query, limit=min(args.limit or 100, 100), cursor=args.cursor)
    record = {
        "users": [user_of(one) for one in page["items"]],
        "nextCursor": page["nextCursor"],
        "total": page.get("total"),
    }
    return CommandResult(record, PEOPLE, words={"nextCursor": page["nextCursor"] or "", "total": record["total"] or ""})


def show_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Shows one person."""
    record = server.get(f"/people/{server.person(args.email)['id']}")
    names = ("authenticatorApp", "passkeys", "recoveryCodesLeft", "apps", "activity")
    shown = {**user_of(record), **(record["suspension"] or {}), **{name: record[name] for name in names}}
    return CommandResult(shown, ACTIVITY, words={} if record["groups"] else {"groups": ""})


def create_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Makes an account."""
    body = {"email": args.email, "name": args.name, "groups": args.groups}
    if args.password is not None:
        body["password"] = args.password
    record = server.do("POST", "/people", body)
    made = {"password": record["password"]} if "password" in record else {}
    return person_of(record, made, f"The password {SHOWN_ONCE}" if made else "")


def invite_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Invites an address by e-mail."""
    record = server.do("POST", "/people", {"email": args.email, "invite": True})
    note = INVITED[record.get("mailed")]
    return CommandResult({"email": record["email"], "link": record["link"]}, note=note)


def _act(act: str) -> RemoteCommand:
    def run(server: RemoteServer, args: Namespace) -> CommandResult:
        body = {name: value for name in ("reason", "note", "until") if (value := getattr(args, name, None))}
        return person_of(server.do("POST", f"/people/{server.person(args.email)['id']}/{act}", body))

    return run


def bulk_users(server: RemoteServer, args: Namespace) -> CommandResult:
    """Says what an act on many people would do, or with a token does it and waits for the end."""
    named = ("act", "query", "status", "reason", "note", "until")
    body: dict[str, Any] = {name: value for name in named if (value := getattr(args, name))}
    if args.wait is not None:
        body["waitDays"] = args.wait
    if users := bulk.users_in(args.file):
        body["people"] = users
    if not args.token:
        return bulk.told(server.do("POST", "/people/bulk", {**body, "dryRun": True}))
    record = server.do("POST", "/people/bulk", {**body, "token": args.token})
    while record["state"] == "running":
        time.sleep(WAIT)
        record = server.get(f"/people/bulk/{part(args.token)}")
    return bulk.told(record)


def delete_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Deletes a person, at once or after a wait."""
    path = f"/people/{server.person(args.email)['id']}"
    if args.wait is None:
        record = server.do("DELETE", path + (f"?{urlencode({'reason': args.reason})}" if args.reason else ""))
        return CommandResult({"sub": record["id"], "deleted": True})
    server.do("DELETE", f"{path}?{urlencode({'wait_days': args.wait, 'reason': args.reason})}")
    return person_of(server.get(path))


def disconnect_app(server: RemoteServer, args: Namespace) -> CommandResult:
    """Disconnects an app from a person."""
    ended = server.do("DELETE", f"/people/{server.person(args.email)['id']}/grants/{part(args.client_id)}")
    return CommandResult({"sub": ended["person"], "client_id": ended["client_id"], "dataUntil": ended["dataUntil"]})


def _groups(change: Callable[[set[str], set[str]], set[str]]) -> RemoteCommand:
    def run(server: RemoteServer, args: Namespace) -> CommandResult:
        path = f"/people/{server.person(args.email)['id']}"
        groups = change({*server.get(path)["groups"]}, {*args.groups})
        return person_of(server.do("PATCH", path, {"groups": sorted(groups)}))

    return run


def export_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Writes an export with documents, which needs the role admin."""
    if args.output == exports.STANDARD_OUTPUT and getattr(args, "json", False):
        raise Refused("invalid_request", "--json and --output - both write to standard output; give a file.")
    person, size = server.person(args.email), 0
    with exports.target(args.output) as file:
        for piece in server.lines(f"/people/{person['id']}/export?format={args.format}&documents=true"):
            file.write(piece)
            size += len(piece)
    if args.output == exports.STANDARD_OUTPUT:
        return CommandResult({})
    return CommandResult({"email": person["email"], "sub": person["id"], "bytes": size, "output": args.output})


def give_role(server: RemoteServer, args: Namespace) -> CommandResult:
    """Gives a person a role, or takes it."""
    person = server.person(args.email)
    path = f"/people/{person['id']}/role"
    given = None if args.role == operators.NOBODY else args.role
    record = server.do("PUT", path, {"role": given}) if given else server.do("DELETE", path)
    return operators.told_role(person["id"], person["email"], given, record["before"])


def _listed(path: str, name: str, columns: tuple[str, ...]) -> RemoteCommand:
    def run(server: RemoteServer, args: Namespace) -> CommandResult:
        return CommandResult({name: list(server.get(path)["items"])}, columns)

    return run


def revoke_key(server: RemoteServer, args: Namespace) -> CommandResult:
    """Ends an operator key."""
    return CommandResult(server.do("DELETE", f"/operator-keys/{part(args.id)}"))


def grant_credits(server: RemoteServer, args: Namespace) -> CommandResult:
    """Adds or takes credits."""
    person = server.person(args.email)
    body = {"amount": args.amount, "reason": args.reason}
    record = server.do("POST", f"/people/{person['id']}/credits", body, key=args.key)
    record = {"sub": record.pop("id"), "email": person["email"], **record}
    note = "This key did the same before; nothing was done now." if record["replayed"] else ""
    return CommandResult(record, note=note, words=money.in_dollars(record))


def show_credits(server: RemoteServer, args: Namespace) -> CommandResult:
    """Shows the balance and the newest entries."""
    person = server.person(args.email)
    path = f"/people/{person['id']}/credits"
    first = server.get(path, limit=1)
    entries = list(server.items(path, args.limit))
    figures = {name: first[name] for name in ("paid", "held", "spendable", "currency", "scale")}
    record = {"sub": person["id"], "email": person["email"], **figures, **first["opening"]}
    record |= {"holds": first["holds"], "entries": entries}
    return CommandResult(record, money.COLUMNS, words=money.in_dollars(record))


def list_apps(server: RemoteServer, args: Namespace) -> CommandResult:
    """Lists all apps."""
    return CommandResult({"apps": list(server.items("/apps"))}, ("client_id", "name", "status", "scopes"))


def show_app(server: RemoteServer, args: Namespace) -> CommandResult:
    """Shows one app."""
    return _app(server.get(f"/apps/{part(args.client_id)}"))


def _app(record: dict[str, Any], failed: str = "") -> CommandResult:
    notes = [failed] if failed else []
    notes += [f"The client_secret {SHOWN_ONCE}"] if record.get("client_secret") else []
    notes += [f"The webhook_secret {SIGNING_ONCE}"] if record.get("webhook_secret") else []
    words = {name: "" for name, value in record.items() if value == []}
    return CommandResult(record, note="\n".join(notes), words=words)


def _ordered(args: Namespace) -> dict[str, Any]:
    """The body of an app's creation or change. Raises Refused for an option that only works where the store is."""
    if hasattr(args, "jwks"):
        raise Refused("invalid_request", "--jwks works on the server's machine only, without --server.")
    members = {attribute: member for member, attribute in RECORD.items()}
    body = {
        members[name]: value
        for name, value in vars(args).items()
        if name in members and name not in ("client_id", "status")
    }
    if args.any_name:
        body["anyName"] = True
    return body


def create_app(server: RemoteServer, args: Namespace) -> CommandResult:
    """Registers an app."""
    named = {"client_id": args.client_id} if args.client_id is not None else {}
    record = server.do("POST", "/apps", {**_ordered(args), **named})
    try:
        record |= set_logo(server, record["client_id"], args)
    except (Refused, ServerUnreachable) as error:  # the secret must be shown: nobody can read it again
        failed = f"The app has no logo: {error} Try `app update {record['client_id']} --logo` again."
        return _app(record, failed)
    return _app(record)


def update_app(server: RemoteServer, args: Namespace) -> CommandResult:
    """Changes an app."""
    path, body, status = f"/apps/{part(args.client_id)}", _ordered(args), getattr(args, "status", "")
    if not body and not status and not hasattr(args, "logo_file"):
        raise Refused("invalid_request", "Nothing to change is given.")
    record = server.do("PATCH", path, body) if body else {}
    record |= set_logo(server, args.client_id, args)
    if status:
        record |= server.do("POST", f"{path}/{'suspend' if status == 'disabled' else 'resume'}")
    return _app(record)


def rotate_app_secret(server: RemoteServer, args: Namespace) -> CommandResult:
    """Makes a new client secret."""
    record = server.do("POST", f"/apps/{part(args.client_id)}/rotate-secret", {"dropOld": args.drop_old})
    old = ONLY_ONE if args.drop_old else OLDER_STAYS
    return CommandResult(record, note=f"The client_secret {SHOWN_ONCE} {old}")


def delete_app(server: RemoteServer, args: Namespace) -> CommandResult:
    """Deletes an app."""
    from cli.apps_parser import PURGED

    purge = "true" if args.documents == PURGED else "false"
    record = server.do("DELETE", f"/apps/{part(args.client_id)}?purge={purge}")
    return CommandResult({name: record[name] for name in ("client_id", "deleted", "purged")})


def list_deliveries(server: RemoteServer, args: Namespace) -> CommandResult:
    """Lists the newest deliveries of an app."""
    columns = ("id", "type", "state", "attempts", "occurredAt", "lastStatus", "lastError")
    found = list(server.items("/webhooks/deliveries", args.limit, app=args.client_id))
    return CommandResult({"client_id": args.client_id, "deliveries": found}, columns)


def replay(server: RemoteServer, args: Namespace) -> CommandResult:
    """Posts an event once more."""
    body = {"client_id": args.client_id}
    return CommandResult(server.do("POST", f"/webhooks/deliveries/{part(args.id)}/send", body))


def show_events(server: RemoteServer, args: Namespace) -> CommandResult:
    """Shows the newest security events, oldest first. With `--follow`, prints new ones until interrupted."""
    if args.follow:
        follow_events(server, args)
        return CommandResult({})
    since = None if args.since is None else timestamp(at(moment(args.since)))
    most = args.limit or (SHOWN if since is None else None)
    found = list(server.items("/audit", most, **filters_of(args), since=since))
    return CommandResult({"events": found[::-1]}, EVENT_COLUMNS)


def export_events(server: RemoteServer, args: Namespace) -> CommandResult:
    """Writes security events as a file."""
    since, until = checked_bounds(args)
    bounds = {"since": timestamp(at(since)), "until": timestamp(at(until)) if until is not None else None}
    asked = {"format": args.format, **filters_of(args), **bounds}
    size = 0
    with exports.target(args.output) as file:
        for piece in server.lines(f"/audit/export?{urlencode({name: one for name, one in asked.items() if one})}"):
            file.write(piece)
            size += len(piece)
    return CommandResult({} if args.output == exports.STANDARD_OUTPUT else {"bytes": size, "output": args.output})


REMOTE: Final[Mapping[str, RemoteCommand]] = {
    "people.list_users": list_users,
    "people.show_user": show_user,
    "people.create_user": create_user,
    "people.invite_user": invite_user,
    "people.suspend_user": _act("suspend"),
    "people.enable_user": _act("resume"),
    "bulk.bulk_users": bulk_users,
    "people.reset_factors": _act("reset-factors"),
    "people.sign_out": _act("sign-out"),
    "people.disconnect_app": disconnect_app,
    **PERSON_PARTS,
    "people.delete_user": delete_user,
    "people.cancel_deletion": _act("cancel-deletion"),
    "people.add_groups": _groups(lambda present, named: present | named),
    "people.remove_groups": _groups(lambda present, named: present - named),
    "export.export_user": export_user,
    "operators.give": give_role,
    "operators.list_roles": _listed("/roles", "roles", ("id", "role", "since", "givenBy")),
    "operators.list_keys": _listed("/operator-keys", "keys", operators.COLUMNS),
    "operators.revoke_key": revoke_key,
    "credits.grant_credits": grant_credits,
    "credits.show_credits": show_credits,
    "apps.list_apps": list_apps,
    "apps.show_app": show_app,
    "apps.create_app": create_app,
    "apps.update_app": update_app,
    "apps.rotate_secret": rotate_app_secret,
    "apps.delete_app": delete_app,
    "webhooks.list_deliveries": list_deliveries,
    "webhooks.replay": replay,
    "audit.show_events": show_events,
    "audit.export_events": export_events,
    **SERVER_KEYS,
}
"""Each remote command, by the name of the local one."""


def run_remote(server: RemoteServer, args: Namespace) -> CommandResult:
    """Runs a command against a server. Raises Refused, also for a command that only works where the store is."""
    command = REMOTE.get(args.run)
    if command is None:
        raise Refused(
            "invalid_request",
            "This command works where the store is: run it on the server's machine, without --server.",
        )
    return command(server, args)
