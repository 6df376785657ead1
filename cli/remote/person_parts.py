"""The commands about one session, or one account at another site, against a server elsewhere."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from cli.commands.person_parts import IDENTITIES, SESSIONS, check_listed, ended
from cli.remote.client import RemoteServer, part
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


PERSON_PARTS: Final[Mapping[str, RemoteCommand]] = {
    "person_parts.list_sessions": _listed("sessions", SESSIONS),
    "person_parts.end_session": _ended("sessions"),
    "person_parts.list_identities": _listed("identities", IDENTITIES),
    "person_parts.unlink": _ended("identities"),
}
