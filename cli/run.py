"""Runs a command of the operator: asks questions, opens the store, and reports errors."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

from cli.commands.acts import ON_A_STORE, by_operator, note_act, note_failure
from cli.commands.context import Context, store_url
from cli.terminal.outcome import CommandResult
from cli.terminal.parser import UsageError
from cli.terminal.tables import word
from observability import logs
from runtime.wiring import open_keys, open_store
from settings.declared import Settings
from settings.types import EMBEDDED
from store.apps.client_ids import inner_id
from store.crypto.keyring import KeyRingError, Keys
from store.engine import backup
from store.errors import StartupError, StoreError, StoreUnavailable
from store.names import SCOPES, UnknownScope
from store.refused import Refused

FAILURES = (Refused, KeyRingError, ValueError, StartupError, StoreError, OSError)
"""The errors that a command may raise, in addition to UsageError and SettingsError."""
KNOWN_SCOPES: Final = f"There are {', '.join(SCOPES)}, and the scopes of your APIs: `api list`."

NO_STORE = (
    "There is no store in {}. `latchkey serve` makes one. If your server has its data elsewhere, name that directory "
    "with --data-dir, or its file with --config."
)
NEW_STORE = (
    "There was no store in {}, so this command makes an empty one. If your server has its data elsewhere, name that "
    "directory with --data-dir, or its file with --config."
)


def words_for(error: Exception) -> tuple[str, str]:
    """The code and the description of an error."""
    match error:
        case Refused():
            return error.code, error.description
        case UnicodeEncodeError():
            return "invalid_request", "The input is not UTF-8."
        case UnknownScope():
            return "invalid_scope", f"{error} {KNOWN_SCOPES}"
        case KeyRingError():
            return "server_error", str(error)
        case ValueError():
            return "invalid_request", str(error)
        case FileExistsError(filename=str(name)):
            return "server_error", f"{name} exists already, and is never overwritten. Choose another name."
        case OSError(filename=str(name), strerror=str(why)):
            return "server_error", f"{name}: {why}"
        case StoreUnavailable():
            return "temporarily_unavailable", f"The outcome is not known: {error}"
    return "server_error", str(error)


def run(args: argparse.Namespace, settings: Settings) -> CommandResult:
    """Runs the command. Questions come before the store is opened. Raises FAILURES, UsageError."""
    # If the caller has set up the log, keep it.
    if getattr(args, "json", False) and not logging.root.handlers:
        logs.configure(settings.log_level, logs.JSON)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    command = named(args.run)
    if args.ask:
        confirm(args.ask.format(**vars(args)), args.yes)
    if args.password_stdin:
        args.password = read_password()
    if getattr(args, "server", None) or getattr(args, "key_file", None):
        return _elsewhere(args, settings)
    if args.offline:
        offline: CommandResult = command(settings, args)
        return offline
    settings.require_keys()
    if settings.redis_url == EMBEDDED and not backup.has_store(settings.data_dir):
        if args.run in ON_A_STORE:
            raise Refused("not_found", NO_STORE.format(settings.data_dir.absolute()))
        if not getattr(args, "json", False):
            print(NEW_STORE.format(settings.data_dir.absolute()), file=sys.stderr, flush=True)
    with store_url(settings) as (url, server_runs):
        return asyncio.run(_within(url, server_runs, command, args, settings))


def _elsewhere(args: argparse.Namespace, settings: Settings) -> CommandResult:
    """Runs the command against the server of `--server`. Raises FAILURES, UsageError."""
    if not getattr(args, "server", None) or not getattr(args, "key_file", None):
        raise UsageError(
            "--server and --key-file go together: the key file has a key of `latchkey operator-key create`"
        )
    from cli.remote.client import RemoteServer, read_key
    from cli.remote.commands import run_remote

    server = RemoteServer(args.server, read_key(args.key_file))
    if hasattr(args, "logo_from"):  # the file is on this machine
        from cli.commands.app_logos import given_logo

        args.logo_file = asyncio.run(given_logo(settings, args))
    return run_remote(server, args)


def named(text: str) -> Callable[..., Any]:
    """The function with this name in the parser."""
    module, _, name = text.partition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"cli.commands.{module}"), name)
    return found


async def _within(
    url: str, server_runs: bool, command: Callable[..., Any], args: argparse.Namespace, settings: Settings
) -> CommandResult:
    """Runs the command with the store open and its keys checked, as a server does."""
    source = open_keys(settings)
    async with open_store(settings, url, Keys(source)) as store:
        by_operator(store)
        if getattr(args, "client_id", None):  # of a metadata document its URL
            args.client_id = inner_id(args.client_id)
        try:
            outcome: CommandResult = await command(Context(settings, store, source, server_runs), args)
        except FAILURES as error:
            note_failure(store, args, words_for(error)[0])
            raise
        note_act(store, args, outcome)
        return outcome


def confirm(question: str, sure: bool) -> None:
    """Returns only if the operator confirms. Raises Refused, also without a terminal to ask on."""
    if sure:
        return
    if not sys.stdin.isatty():
        raise Refused("invalid_request", "This cannot be undone: give --yes, or run it on a terminal.")
    print(f"{word(question)} This cannot be undone. [yes/no] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # Ctrl-D, which leaves the cursor after the question
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused("invalid_request", "Nothing was changed.")


def read_password() -> str:
    """The first line of standard input. On a terminal, asks twice without showing it. Raises UsageError if there is
    none, Refused if the two differ."""
    if sys.stdin.isatty():
        try:
            password = getpass.getpass("New password (it is not shown): ")
            again = getpass.getpass("The same once more: ")
        except EOFError:
            print(file=sys.stderr)
            raise UsageError("no password was typed") from None
        if password != again:
            raise Refused("invalid_request", "The two passwords differ. Nothing was changed.")
        return password
    line = sys.stdin.buffer.readline().decode("utf-8", "surrogateescape")
    if not line:
        raise UsageError("--password-stdin reads the password from standard input, which is empty")
    return line.rstrip("\r\n")
