"""Every command of the operator: its flags, its examples, and the name of its function.

Functions are named as text, `module.function`, so that help, a mistyped flag and completion load none of the modules
that the commands need.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from cli.apis_parser import ABSENT, Verbs, add_apis
from cli.apps_parser import add_apps, add_members, add_registration_tokens, limit
from cli.keys_parser import add_secret_keys, add_signing_keys
from cli.local_commands import LOCAL
from cli.moving_parser import add_export, add_import
from cli.operators_parser import add_operator_keys, add_roles
from cli.people_parser import add_groups, add_users
from cli.terminal.parser import NoCommand, Parser, UsageError
from latchkey import __version__
from settings.declared import SETTINGS
from settings.reading import add_arguments

PROGRAM = "manage.py"
SHELLS = ("bash", "zsh", "tcsh")
TRAIL_FORMATS = ("jsonl", "cef", "otlp")
BRIEF = ("config", "data_dir", "redis_url")
"""The settings in the short help of a command."""
DECIMALS = 6
_AMOUNT = r"(-?)(?:([0-9]{1,18})|([0-9]{1,12})(?:\.([0-9]{1,18}))?usd)"
NO_FLAG = r"-(?:(?:\d+|\d*\.\d+)(?:usd)?|\w[\w-]{20})$"
"""Words that are amounts below zero, or meant as such, or ids of 22 characters. They are no flags."""

SECTIONS = {
    "serve": ["serve"],
    "apps and people": ["app", "api", "user", "credits", "token"],
    "operators": ["operator-key"],
    "import and export": ["import", "export"],
    "AI models": ["ai"],
    "the store and its keys": ["keys", "store", "fsck"],
    "security log": ["audit"],
    "shell completion": ["completion"],
}


class CommandParser(Parser):
    """Lets `main` report errors, in words or in JSON. Amounts below zero, and ids, are no flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.allow_below_zero(NO_FLAG)

    def useless(self, action: argparse.Action) -> bool:
        """Whether the flag is for commands that work on another server, and none of this parser's does."""
        if action.dest not in ("server", "key_file"):
            return False
        return all(one.get_default("run") in LOCAL for one in (tuple(self.leaves()) or (self,)))

    def error(self, message: str) -> NoReturn:
        """Raises UsageError, NoCommand."""
        mistake = f"{message} ({self.prog} --help explains)"
        if self.commands and message.endswith(("required: COMMAND", "required: ACTION")):
            raise NoCommand(mistake, self)
        raise UsageError(mistake)


def amount(text: str) -> int:
    """Micro-dollars: "5000000", or in dollars "5usd" and "0.25usd". Raises argparse.ArgumentTypeError."""
    found = re.fullmatch(_AMOUNT, text, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError("an amount such as 5usd or 0.25usd, or whole micro-dollars such as 5000000")
    sign, whole, dollars, decimals = found.groups(default="")
    if len(decimals) > DECIMALS:
        raise argparse.ArgumentTypeError(f"a dollar has {DECIMALS} decimals at most, such as 0.000001usd")
    return int(sign + (whole or dollars + decimals.ljust(DECIMALS, "0")))


def build_parser(program: str = PROGRAM) -> Parser:
    """The parser of all commands. Each takes the settings and `--json`, before and after the command."""
    common = CommandParser(add_help=False)
    common.add_argument("--json", action="store_true", default=ABSENT, help="print one JSON object")
    about = "run the command on another server, through its operations port, such as https://ops.example.org:8081"
    common.add_argument("--server", metavar="URL", default=ABSENT, help=about)
    about = "the file with the operator key for --server, which only you can read"
    common.add_argument("--key-file", metavar="FILE", default=ABSENT, help=about)
    common.add_help_settings()
    add_arguments(common, "manage")
    aside = {item.group for item in SETTINGS}
    given: dict[str, Any] = {"parents": [common], "aside": aside, "brief": BRIEF, "typed": program}
    parser = CommandParser(
        prog=program,
        description="Run and operate Latchkey, an identity server. Commands work with and without a running server.",
        epilog=f"`{program} COMMAND --help` explains a command. Data is kept in ./data unless --data-dir or "
        "--redis-url says otherwise.",
        examples=("serve --demo", "user create --email ada@example.com --name Ada", "app list"),
        **given,
    )
    parser.add_argument("--version", action="version", version=f"latchkey {__version__}", help="print the version")
    parser.sections = SECTIONS
    # Give the program's name, because argparse would format a usage line to find it.
    nouns = parser.add_subparsers(metavar="COMMAND", required=True, prog=program)

    groups: dict[str, Any] = {"": nouns}

    def noun(name: str, about: str, within: str = "") -> Verbs:
        verbs = groups[within].add_parser(name, help=about, description=_sentence(about), **given)
        actions = groups[name] = verbs.add_subparsers(metavar="ACTION", required=True, prog=verbs.prog)

        def verb(
            name: str, run: str, about: str, *examples: str, ask: str = "", offline: bool = False
        ) -> argparse.ArgumentParser:
            typed = verbs.prog.removeprefix(f"{program} ")
            written = [f"{typed} {name} {example}".strip() for example in examples]
            made: Parser = actions.add_parser(name, help=about, description=_sentence(about), examples=written, **given)
            made.set_defaults(run=run, ask=ask, offline=offline, password_stdin=False)
            if ask:
                made.add_argument("--yes", action="store_true", help="don't ask for confirmation")
            return made

        return verb

    # `start` handles it before anything is parsed. It is here for the help.
    serve = nouns.add_parser("serve", help="run the server; `serve --help` lists its settings", add_help=False)
    serve.set_defaults(run="", ask="", offline=True, password_stdin=False)
    add_apps(noun("app", "registered apps"))
    add_members(noun("member", "the people who manage an app in the browser", "app"))
    add_registration_tokens(noun("registration-token", "tokens that let apps register themselves", "app"))
    add_apis(noun("api", "APIs of yours that Latchkey protects"))
    users = noun("user", "people's accounts")
    add_users(users)
    add_roles(users)
    add_groups(noun("group", "the groups of a person, for apps with the scope `groups`", "user"))
    _add_credits(noun("credits", "people's credits"))
    add_operator_keys(noun("operator-key", "keys of programs that operate this server"))
    _add_ai(noun("ai", "the AI models of --ai-config"))
    _add_tokens(noun("token", "tokens for tests and operators"))
    add_secret_keys(noun("keys", "the secret keys that seal tokens and documents, and the keys that sign"))
    add_signing_keys(noun("signing", "the keys that sign tokens for others", "keys"))
    about = "import people from a file; an interrupted import continues"
    examples: tuple[str, ...] = (
        "import people.jsonl --dry-run",
        "import people.jsonl",
        "import people.jsonl --update",
        "import realm.json --from keycloak",
    )
    add_import(nouns.add_parser("import", help=about, description=_sentence(about), examples=examples, **given))
    about, examples = (
        "export all people to a file that `import` can read",
        ("export people.jsonl", "export - --hashes"),
    )
    add_export(nouns.add_parser("export", help=about, description=_sentence(about), examples=examples, **given))
    about = "check the whole store while servers use it"
    _add_fsck(
        nouns.add_parser(
            "fsck",
            help=about,
            description=_sentence(about),
            examples=("fsck", "fsck --deep", "fsck --repair"),
            **given,
        )
    )
    _add_store(noun("store", "copies of the embedded store"))
    about = "show the security log: sign-ins, refusals, changes, the operator's acts"
    audit = nouns.add_parser(
        "audit",
        help=about,
        description=_sentence(about),
        examples=(
            "audit",
            "audit --follow",
            "audit --since 2h --person ada@example.com",
            "audit --event signed_in,sign_in_refused --app shop",
            "audit --operator ben@example.com",
        ),
        **given,
    )
    _add_audit(audit)
    about = "export events in a format for other programs, oldest first"
    files = audit.add_subparsers(metavar="export", prog=audit.prog)
    named: dict[str, Any] = {"help": about, "description": _sentence(about), "examples": ("audit export --format cef",)}
    _add_audit_export(files.add_parser("export", **named, **given))
    about = "print a script that lets the Tab key complete commands and flags of `latchkey`"
    described: dict[str, Any] = {"help": about, "description": _sentence(about), "examples": ("completion bash",)}
    shell = nouns.add_parser("completion", **described, **given)
    shell.epilog = 'For bash, in ~/.bashrc: eval "$(latchkey completion bash)"'
    shell.set_defaults(run="shell.completion", ask="", offline=True, password_stdin=False)
    shell.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    return parser


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _add_credits(verb: Verbs) -> None:
    about = "give a person credits, or take them away with a negative amount"
    grant = verb(
        "grant",
        "credits.grant_credits",
        about,
        'ada@example.com 5usd --reason "Payment 17" --key payment-17',
        'ada@example.com -0.25usd --reason "Paid back"',
        "ada@example.com 5000000",
    )
    about = "show the balance, the held amount and the newest entries"
    show = verb("show", "credits.show_credits", about, "ada@example.com --limit 20")
    for named in (grant, show):
        named.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")
    about = "5usd, 0.25usd, or whole micro-dollars: 5000000 are 5 dollars"
    grant.add_argument("amount", metavar="AMOUNT", type=amount, help=about)
    grant.add_argument("--reason", metavar="R", default="", help="the reason; the person sees it")
    grant.add_argument("--key", metavar="K", help="idempotency key: a repetition within 90 days changes nothing")
    show.add_argument("--limit", metavar="N", type=limit, default=100, help="entries (default: 100)")


def _add_ai(verb: Verbs) -> None:
    about = "call each model once at each of its servers, and show tokens, price and time"
    examples = ("--ai-config models.toml", "--model claude-sonnet --json")
    check = verb("check", "ai.check_models", about, *examples, offline=True)
    check.add_argument("--model", metavar="ID", help="only this model")


def _add_tokens(verb: Verbs) -> None:
    mint = verb(
        "mint",
        "tokens.mint_token",
        "give an app access to a person's account and print the token response",
        '--user ada@example.com --client-id my-app --scopes "profile data:read"',
        "--user ada@example.com --client-id shop --scopes orders:read --resource https://orders.example.com",
    )
    mint.add_argument("--user", metavar="E", required=True, help="the person's e-mail address")
    mint.add_argument("--client-id", metavar="C", required=True, help="as `app list` shows it")
    mint.add_argument("--scopes", metavar="S", required=True, help='such as "profile data:read"')
    about = "the API that the access token is for; not needed if all other scopes are of one API"
    mint.add_argument("--resource", metavar="URI", help=about)
    about = "thumbprint of the DPoP key that the tokens are bound to (RFC 7638)"
    mint.add_argument("--dpop-jkt", metavar="JKT", help=about)


def _add_fsck(fsck: argparse.ArgumentParser) -> None:
    fsck.set_defaults(run="fsck.check_store", ask="", offline=False, password_stdin=False)
    fsck.add_argument("--repair", action="store_true", help="repair what can be derived from other data")
    fsck.add_argument(
        "--deep", action="store_true", help="also open every document, to find damaged and moved ones and missing keys"
    )
    fsck.add_argument(
        "--limit", metavar="N", type=limit, default=20, help="how many to show of each kind (default: 20)"
    )
    fsck.add_argument("-v", "--verbose", action="store_true", help="show e-mail addresses in the names of keys")


def _add_audit(audit: argparse.ArgumentParser) -> None:
    audit.set_defaults(run="audit.show_events", ask="", offline=False, password_stdin=False)
    audit.add_argument("--follow", action="store_true", help="print events as they come; with --json one object a line")
    audit.add_argument("--since", metavar="T", help="a date, a time (UTC), or a duration such as 15m, 2h or 7d")
    audit.add_argument(
        "--person", metavar="EMAIL|SUB", help="only events of this person, or of somebody who used that address"
    )
    audit.add_argument(
        "--limit", metavar="N", type=limit, help="how many of the newest events (default: 100; 10 with --follow)"
    )
    _add_event_filters(audit, "events", None)


def _add_event_filters(command: argparse.ArgumentParser, events: str, without: str | None) -> None:
    about = "only events of this name, such as signed_in; repeatable, or several with commas"
    command.add_argument("--event", metavar="NAME", dest=events, action="append", default=[], help=about)
    command.add_argument("--app", metavar="CLIENT_ID", default=without, help="only events of this app")
    about = "only acts of this operator: a person with a role, or a key by its ID"
    command.add_argument("--operator", metavar="EMAIL|SUB|KEY_ID", default=without, help=about)


def _add_audit_export(export: argparse.ArgumentParser) -> None:
    export.set_defaults(run="audit.export_events", ask="", offline=False, password_stdin=False)
    about = "jsonl (an object a line), cef, or otlp (logs of OpenTelemetry); default: jsonl"
    export.add_argument("--format", choices=TRAIL_FORMATS, default="jsonl", help=about)
    about = "a date, a time (UTC), or a duration such as 15m, 2h or 7d"
    # Flags before the word `export` count too: a flag without a default doesn't overwrite them.
    export.add_argument("--since", metavar="T", default=ABSENT, help=about)
    export.add_argument("--until", metavar="T", help="events before this, in the same forms")
    export.add_argument("--person", metavar="EMAIL|SUB", default=ABSENT, help="only events of this person")
    _add_event_filters(export, "more_events", ABSENT)
    export.add_argument("--output", metavar="FILE", default="-", help="a file (default: standard output)")


def _add_store(verb: Verbs) -> None:
    copy = "/backups/latchkey.rdb --keys /elsewhere/latchkey-keys"
    about = "copy the store to a new file, with or without a running server"
    save = verb("backup", "backup.back_up", about, copy)
    about = "restore a copy into a data directory without a store"
    restore = verb("restore", "backup.restore", about, f"{copy} --data-dir data-new", offline=True)
    about = "keep the sessions and tokens of the copy, including those that ended since"
    restore.add_argument("--keep-tokens", action="store_true", help=about)
    about = "restore although a key that sealed something is lost: what it sealed stays closed"
    restore.add_argument("--without-lost-keys", action="store_true", help=about)
    about = "end every session and token, after a restore by other means"
    question = "End every session of every person and every token of every app?"
    verb("end-tokens", "backup.end_tokens", about, "", ask=question)
    for named, keys in (
        (save, "also copy the key file to this file"),
        (restore, "the key file from the time of the copy"),
    ):
        named.add_argument("file", metavar="FILE", help="the copy")
        named.add_argument("--keys", metavar="FILE", help=keys)
