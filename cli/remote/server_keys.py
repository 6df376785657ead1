"""The keys of a server elsewhere."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Final

from cli.remote.client import RemoteServer
from cli.remote.person_parts import RemoteCommand
from cli.terminal.outcome import CommandResult


def list_secret_keys(server: RemoteServer, args: Namespace) -> CommandResult:
    """Lists the ids of the secret keys, and since when each is in use."""
    from cli.commands import key_ages

    found = [one for one in server.get("/keys")["items"] if one["kind"] == "secret"]
    return key_ages.listed([{**one, "id": int(one["id"])} for one in found])


def list_signing_keys(server: RemoteServer, args: Namespace) -> CommandResult:
    """Lists the keys that sign."""
    found = [one for one in server.get("/keys")["items"] if one["kind"] == "signing"]
    keys = [{"kid": one["id"], **{name: one[name] for name in ("alg", "state", "signsFrom", "until")}} for one in found]
    return CommandResult({"keys": keys}, ("kid", "alg", "state", "signsFrom", "until"))


SERVER_KEYS: Final[Mapping[str, RemoteCommand]] = {
    "keys.list_keys": list_secret_keys,
    "signing.list_keys": list_signing_keys,
}
"""Each remote command, by the name of the local one."""
