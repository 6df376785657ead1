"""The operator's command line: apps, people, tokens and secret keys, beside a running server or without one.

`python manage.py --help` names the commands. With `--json` a command prints one JSON object. Exit status: 0, 1 for a
command that was refused or failed and for a check that found faults, 2 for arguments and settings that cannot be used.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import commands
import commands_backup
import commands_credits
import commands_export
import commands_fsck
import commands_keys
from commands import Context, Outcome
from opening import open_keys, open_store
from settings import Settings, SettingsError, add_arguments, from_namespace
from settings_types import EMBEDDED
from store.connect import unix_url
from store.embedded import open_for_manage
from store.errors import StartupError, StoreError, StoreUnavailable
from store.keyring import KeyRingError, Keys
from store.names import UnknownScope
from store.refused import Refused

Verbs = Callable[..., argparse.ArgumentParser]
ABSENT = argparse.SUPPRESS


class UsageError(Exception):
    """The command line is not one that this program understands."""


class Parser(argparse.ArgumentParser):
    """Leaves it to `main` to say what is wrong, in words or in JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message} ({self.prog} --help explains)")


def build_parser() -> Parser:
    """Every command, each with the settings and `--json`, which are taken before and after it."""
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", default=ABSENT, help="print one JSON object")
    add_arguments(common, "manage")
    parser = Parser(prog="manage.py", description="Operates Latchkey.", parents=[common])
    nouns = parser.add_subparsers(metavar="COMMAND", required=True)

    def noun(name: str, about: str) -> Verbs:
        verbs = nouns.add_parser(name, help=about, description=about, parents=[common])
        actions = verbs.add_subparsers(metavar="ACTION", required=True)

        def verb(name: str, run: object, about: str, ask: str = "", offline: bool = False) -> argparse.ArgumentParser:
            made = actions.add_parser(name, help=about, description=about, parents=[common])
            made.set_defaults(run=run, ask=ask, offline=offline, password_stdin=False)
            if ask:
                made.add_argument("--yes", action="store_true", help="do not ask")
            return made

        return verb

    _add_apps(noun("app", "registered apps"))
    _add_users(noun("user", "people's accounts"))
    _add_credits(noun("credits", "people's credits, in micro-dollars: 1000000 are a dollar"))
    _add_tokens(noun("token", "tokens for tests and operators"))
    _add_keys(noun("keys", "the secret keys that seal tokens and documents"))
    about = "check the whole store beside the servers that use it"
    _add_fsck(nouns.add_parser("fsck", help=about, description=about, parents=[common]))
    _add_store(noun("store", "copies of the embedded store"))
    return parser


def _add_apps(verb: Verbs) -> None:
    create = verb("create", commands.create_app, "register an app")
    create.add_argument("--client-id", metavar="ID", help="default: a random one")
    _app_options(create, required=True)
    verb("list", commands.list_apps, "every app")
    update = verb("update", commands.update_app, "change what is given; --redirect-uri and --scopes replace all")
    _app_options(update, required=False)
    status = update.add_mutually_exclusive_group()
    status.add_argument("--disable", action="store_const", dest="status", const="disabled", default=ABSENT)
    status.add_argument("--enable", action="store_const", dest="status", const="active", default=ABSENT)
    rotate = verb("rotate-secret", commands.rotate_secret, "make a new client_secret")
    rotate.add_argument("--drop-old", action="store_true", help="the secret before it ends at once")
    question = "Delete the app {client_id}, every token of it and every document it keeps?"
    delete = verb("delete", commands.delete_app, "delete an app and all it left", ask=question)
    for named in (verb("show", commands.show_app, "one app"), update, rotate, delete):
        named.add_argument("client_id", metavar="CLIENT_ID")


def _app_options(parser: argparse.ArgumentParser, required: bool) -> None:
    def add(option: str, about: str, **options: Any) -> None:
        parser.add_argument(option, help=about, default=ABSENT, **options)

    add("--name", "what people see", metavar="N", required=required)
    add("--redirect-uri", "may be repeated", metavar="U", action="append", dest="redirect_uris", required=required)
    add("--scopes", 'such as "profile data:read"', metavar="S", required=required)
    add("--homepage", "http or https address", metavar="URL")
    add("--owner", "who manages it in the browser", metavar="EMAIL|SUB")
    add("--refresh-retry-seconds", "0 to 60: how long a lost rotation is answered again", metavar="N", type=int)
    flag = argparse.BooleanOptionalAction
    add("--public", "no client_secret, PKCE only", action=flag)
    add("--pkce-required", "PKCE is mandatory", action=flag)
    add("--hosted-storage", "keeps documents here; needs a data: scope", action=flag)
    add("--iss", "iss in the authorization response (RFC 9207)", action=flag, dest="iss_in_response")


def _add_users(verb: Verbs) -> None:
    create = verb("create", commands.create_user, "make an account; its address counts as confirmed")
    create.add_argument("--name", metavar="N", required=True)
    create.add_argument("--password-stdin", action="store_true", help="read the password; else one is made and printed")
    create.set_defaults(password=None)
    invite = verb("invite", commands.invite_user, "make a link with which the address can sign up; needs --base-url")
    for named in (create, invite):
        named.add_argument("--email", metavar="E", required=True)
    verb("list", commands.list_users, "every person")
    question = "Delete {email}, with everything apps keep for this person?"
    reset = verb("set-password", commands.set_password, "give a person a new password; every session ends")
    reset.add_argument("--password-stdin", action="store_true", help="read the password; else one is made and printed")
    reset.set_defaults(password=None)
    export = verb("export", commands_export.export_user, "write out all that is kept of one person")
    export.add_argument("--output", metavar="FILE", required=True, help="- is standard output")
    export.add_argument("--format", choices=("zip", "jsonl"), default="zip", help="default: zip")
    for named in (
        reset,
        export,
        verb("show", commands.show_user, "one person: second step, connected apps, newest activity"),
        verb("reset-factors", commands.reset_factors, "take authenticator app, passkeys and recovery codes"),
        verb("disable", commands.disable_user, "stop every token, end every session, and let nobody in"),
        verb("enable", commands.enable_user, "let the person in again; tokens that have not expired work again"),
        verb("delete", commands.delete_user, "delete a person and all that is theirs", ask=question),
    ):
        named.add_argument("email", metavar="EMAIL|SUB")


def _add_credits(verb: Verbs) -> None:
    about = "give a person credits, or take them with an amount below zero"
    grant = verb("grant", commands_credits.grant_credits, about)
    show = verb("show", commands_credits.show_credits, "the balance, what is held, and the newest entries")
    for named in (grant, show):
        named.add_argument("email", metavar="EMAIL|SUB")
    grant.add_argument("amount", metavar="MICRODOLLARS", type=commands_credits.whole)
    grant.add_argument("--reason", metavar="R", default="", help="what it is for; the person sees it")
    grant.add_argument("--key", metavar="K", help="given again with the same key, it is done once (in 90 days)")
    show.add_argument("--limit", metavar="N", type=commands_credits.limit, default=100, help="entries (default: 100)")


def _add_tokens(verb: Verbs) -> None:
    mint = verb("mint", commands.mint_token, "grant an app access to a person and print the token response")
    mint.add_argument("--user", metavar="E", required=True, help="the person's e-mail address")
    mint.add_argument("--client-id", metavar="C", required=True)
    mint.add_argument("--scopes", metavar="S", required=True, help='such as "profile data:read"')


def _add_keys(verb: Verbs) -> None:
    verb("generate", commands_keys.generate_key, "print a new key for LATCHKEY_SECRET_KEYS", offline=True)
    verb("list", commands_keys.list_keys, "the ids of the keys, the front one first", offline=True)
    verb("rotate", commands_keys.rotate_keys, "seal with a new key from now on")
    verb("reencrypt", commands_keys.reencrypt, "bring every document under the front key; can be begun again")
    retire = verb("retire", commands_keys.retire_key, "drop a key that nothing alive is sealed with")
    retire.add_argument("id", metavar="ID", type=int)


def _add_fsck(fsck: argparse.ArgumentParser) -> None:
    fsck.set_defaults(run=commands_fsck.check_store, ask="", offline=False, password_stdin=False)
    fsck.add_argument("--repair", action="store_true", help="put right what can be derived from the rest")
    fsck.add_argument("--deep", action="store_true", help="open every document too: damaged, moved, or its key gone?")
    fsck.add_argument(
        "--limit", metavar="N", type=commands_credits.limit, default=20, help="of each kind (default: 20)"
    )
    fsck.add_argument("-v", "--verbose", action="store_true", help="show e-mail addresses in the names of keys")


def _add_store(verb: Verbs) -> None:
    about = "copy the store into a new file, while a server runs on it or without one"
    save = verb("backup", commands_backup.back_up, about)
    about = "lay a copy into a data directory that holds no store yet"
    restore = verb("restore", commands_backup.restore, about, offline=True)
    for named, keys in ((save, "copy the key file into this one as well"), (restore, "the keys of that time")):
        named.add_argument("file", metavar="FILE")
        named.add_argument("--keys", metavar="FILE", help=keys)


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Runs one command and returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    as_json = "--json" in argv
    try:
        args = build_parser().parse_args(argv)
        settings = from_namespace(args, environ, "manage")
        outcome = run(args, settings)
        if outcome.record:  # what went to standard output already has none
            print(json.dumps(outcome.record) if as_json else in_words(outcome), flush=True)
        return outcome.status
    except (UsageError, SettingsError) as error:
        return complain(as_json, "invalid_request", str(error), status=2)
    except Refused as error:
        return complain(as_json, error.code, error.description)
    except UnknownScope as error:
        return complain(as_json, "invalid_scope", str(error))
    except KeyRingError as error:
        return complain(as_json, "server_error", str(error))
    except ValueError as error:
        return complain(as_json, "invalid_request", str(error))
    except StoreUnavailable as error:
        return complain(as_json, "temporarily_unavailable", f"The outcome is not known: {error}")
    except (StartupError, StoreError, OSError) as error:
        return complain(as_json, "server_error", str(error))
    except KeyboardInterrupt:
        return 130


def run(args: argparse.Namespace, settings: Settings) -> Outcome:
    """Carries the command out. What it asks, it asks before it holds the store."""
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    if args.ask:
        confirm(args.ask.format(**vars(args)), args.yes)
    if args.password_stdin:
        args.password = read_password()
    if args.offline:
        offline: Outcome = args.run(settings, args)
        return offline
    settings.require_keys()
    with store_url(settings) as (url, server_runs):
        return asyncio.run(within(url, server_runs, args, settings))


@contextlib.contextmanager
def store_url(settings: Settings) -> Iterator[tuple[str, bool]]:
    """The store's URL, and whether a server runs on the data directory; an embedded store that does not run runs for
    the length of the block. Raises StartupError."""
    if settings.redis_url != EMBEDDED:
        yield settings.redis_url, False
        return
    socket_path, started = open_for_manage(settings.data_dir)
    try:
        yield unix_url(socket_path), started is None
    finally:
        if started:
            started.stop()


async def within(url: str, server_runs: bool, args: argparse.Namespace, settings: Settings) -> Outcome:
    """The command, with the store open and held against the keys as a server does it."""
    source = open_keys(settings)
    async with open_store(settings, url, Keys(source)) as store:
        outcome: Outcome = await args.run(Context(settings, store, source, server_runs), args)
        return outcome


def confirm(question: str, sure: bool) -> None:
    """Returns only if the operator means it. Raises Refused, also where nobody can be asked."""
    if sure:
        return
    if not sys.stdin.isatty():
        raise Refused("invalid_request", "Deleting cannot be undone: give --yes, or run it on a terminal.")
    print(f"{_word(question)} This cannot be undone. [yes/no] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("invalid_request", "Nothing was deleted.")


def read_password() -> str:
    """The first line of standard input; on a terminal it is not shown. Raises UsageError for none."""
    if sys.stdin.isatty():
        return getpass.getpass()
    line = sys.stdin.buffer.readline().decode("utf-8", "surrogateescape")
    if not line:
        raise UsageError("--password-stdin reads the password from standard input, which is empty")
    return line.rstrip("\r\n")


def in_words(outcome: Outcome) -> str:
    """The answer for people: a field a line, rows as a table, and the note."""
    record = {name: outcome.words.get(name, value) for name, value in outcome.record.items()}
    fields = {name: value for name, value in record.items() if not _is_rows(value)}
    width = max(map(len, fields), default=0)
    lines = [f"{name:{width}}  {_word(value)}" for name, value in fields.items() if value not in ("", [])]
    for name, rows in record.items():
        if _is_rows(rows):
            lines += [*([""] if lines else []), *_table(name, rows, outcome.columns)]
    return "\n".join([*lines, *(["", outcome.note] if outcome.note else [])])


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and (not value or isinstance(value[0], dict))


def _table(name: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[str]:
    if not rows:
        return [f"no {name}"]
    columns = tuple(column for column in columns if column in rows[0])
    cells = [columns, *(tuple(_word(row[column]) for column in columns) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    # What a browser sent as its name could steer the terminal.
    return "".join(char if char.isprintable() else "?" for char in text)


def complain(as_json: bool, code: str, description: str, status: int = 1) -> int:
    """Says on one line of standard error what is wrong; returns the exit status."""
    line = _word(" ".join(description.split()))
    print(json.dumps({"error": code, "error_description": line}) if as_json else f"manage.py: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    # An embedded store that was started for the command is stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a command are text
    sys.exit(main())
