"""The commands about one session, or one account at another site, against a server elsewhere."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from cli.commands.person_parts import IDENTITIES, SESSIONS, check_listed, check_update, ended
from cli.remote.client import RemoteServer, part
from cli.remote.shown import person_of
from cli.terminal.outcome import CommandResult

RemoteCommand = Callable[[RemoteServer, Namespace], CommandResult]


def _listed(name: str, columns: tuple[str, ...]) -> RemoteCommand:
    def run(server: RemoteServer, args: Namespace) -> CommandResult:
        user = server.person(args.email)["id"]
        return CommandResult({"sub": user, name: server.get(f"/people/{user}/{name}")["items"]}, columns)

    return run


def _ended(name: str) -> RemoteCommand:
    def run(server: RemoteServer, args: Namespace) -> CommandResult:
        user = server.person(args.email)["id"]
        path = f"/people/{user}/{name}"
        check_listed(args.id, (one["id"] for one in server.get(path)["items"]), name)
        server.do("DELETE", f"{path}/{part(args.id)}")
        return ended(user, args.id)

    return run


def update_user(server: RemoteServer, args: Namespace) -> CommandResult:
    """Changes the address or the name of a person."""
    check_update(args)
    sent = {"email": args.new_email, "name": args.name, "wayBack": None if args.way_back else False}
    body = {name: value for name, value in sent.items() if value is not None}
    return person_of(server.do("PATCH", f"/people/{server.person(args.email)['id']}", body))


PERSON_PARTS: Final[Mapping[str, RemoteCommand]] = {
    "person_parts.update_user": update_user,
    "person_parts.list_sessions": _listed("sessions", SESSIONS),
    "person_parts.end_session": _ended("sessions"),
    "person_parts.list_identities": _listed("identities", IDENTITIES),
    "person_parts.unlink": _ended("identities"),
}
