"""Every command of the operator: its flags, its examples, and the name of its function.

Functions are named as text, `module.function`, so that help, a mistyped flag and completion load none of the modules
that the commands need.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from cli.apis_parser import ABSENT, Verbs, add_apis
from cli.keys_parser import add_secret_keys, add_signing_keys
from cli.people_parser import add_groups, add_users
from cli.terminal.parser import NoCommand, Parser, UsageError
from latchkey import __version__
from settings.declared import SETTINGS
from settings.reading import add_arguments

PROGRAM = "manage.py"
SHELLS = ("bash", "zsh", "tcsh")
BRIEF = ("config", "data_dir", "redis_url")
"""The settings in the short help of a command."""

SECTIONS = {
    "serve": ["serve"],
    "apps and people": ["app", "api", "user", "credits", "token"],
    "the store and its keys": ["keys", "store", "fsck"],
    "what happened": ["audit"],
    "your shell": ["completion"],
}


class CommandParser(Parser):
    """Lets `main` report errors, in words or in JSON."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError, NoCommand."""
        said = f"{message} ({self.prog} --help explains)"
        if self.commands and message.endswith(("required: COMMAND", "required: ACTION")):
            raise NoCommand(said, self)
        raise UsageError(said)


KEPT = "and, in 30 days, every document it keeps"
PURGED = "and every document it keeps, now"
"""The question's words for what an app's deletion does to documents."""


def whole(text: str) -> int:
    """A whole number. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number of micro-dollars, such as 5000000 for 5 dollars")
    return int(text)


def limit(text: str) -> int:
    """A number of entries. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


def build_parser(program: str = PROGRAM) -> Parser:
    """The parser of all commands. Each takes the settings and `--json`, before and after the command."""
    common = CommandParser(add_help=False)
    common.add_argument("--json", action="store_true", default=ABSENT, help="print one JSON object")
    common.add_help_settings()
    add_arguments(common, "manage")
    aside = {item.group for item in SETTINGS}
    given: dict[str, Any] = {"parents": [common], "aside": aside, "brief": BRIEF, "typed": program}
    parser = CommandParser(
        prog=program,
        description="Latchkey, an identity server: runs it, and operates it while it runs or without it.",
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
                made.add_argument("--yes", action="store_true", help="do not ask")
            return made

        return verb

    # `start` handles it before anything is parsed. It is here for the help.
    serve = nouns.add_parser("serve", help="run the server; `serve --help` lists its settings", add_help=False)
    serve.set_defaults(run="", ask="", offline=True, password_stdin=False)
    _add_apps(noun("app", "registered apps"))
    add_apis(noun("api", "APIs of yours that Latchkey protects"))
    add_users(noun("user", "people's accounts"))
    add_groups(noun("group", "the groups of a person, for apps with the scope `groups`", "user"))
    _add_credits(noun("credits", "people's credits, in micro-dollars: 1000000 are a dollar"))
    _add_tokens(noun("token", "tokens for tests and operators"))
    add_secret_keys(noun("keys", "the secret keys that seal tokens and documents, and the keys that sign"))
    add_signing_keys(noun("signing", "the keys that sign tokens for others", "keys"))
    about = "check the whole store beside the servers that use it"
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
    about = "the security log: sign-ins, refusals, changes, the operator's acts"
    _add_audit(
        nouns.add_parser(
            "audit",
            help=about,
            description=_sentence(about),
            examples=("audit", "audit --follow", "audit --since 2h --person ada@example.com"),
            **given,
        )
    )
    about = "print what makes the Tab key complete commands and flags of `latchkey`"
    described: dict[str, Any] = {"help": about, "description": _sentence(about), "examples": ("completion bash",)}
    shell = nouns.add_parser("completion", **described, **given)
    shell.epilog = 'For bash, in ~/.bashrc: eval "$(latchkey completion bash)"'
    shell.set_defaults(run="shell.completion", ask="", offline=True, password_stdin=False)
    shell.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    return parser


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _add_apps(verb: Verbs) -> None:
    create = verb(
        "create",
        "apps.create_app",
        "register an app",
        '--name "My app" --redirect-uri https://app.example.com/callback --scopes "profile data:read"',
        "--name Mobile --redirect-uri com.example.mobile:/callback --scopes profile --public",
    )
    create.add_argument("--client-id", metavar="ID", help="default: a random one")
    _app_options(create, required=True)
    verb("list", "apps.list_apps", "every app", "", "--json")
    update = verb(
        "update",
        "apps.update_app",
        "change what is given; --redirect-uri and --scopes replace all",
        'my-app --scopes "profile credits:read"',
        "my-app --disable",
    )
    _app_options(update, required=False)
    status = update.add_mutually_exclusive_group()
    about = "stop every token of it"
    status.add_argument("--disable", action="store_const", dest="status", const="disabled", default=ABSENT, help=about)
    about = "let it work again"
    status.add_argument("--enable", action="store_const", dest="status", const="active", default=ABSENT, help=about)
    rotate = verb("rotate-secret", "apps.rotate_secret", "make a new client_secret", "my-app")
    rotate.add_argument("--drop-old", action="store_true", help="the secret before it ends at once")
    about = "make a new secret that signs webhooks; the one before it signs for 24 hours more"
    resign = verb("rotate-webhook-secret", "webhooks.rotate_secret", about, "my-app")
    about = "the newest events that an app was posted, or is to be"
    events = verb("deliveries", "webhooks.list_deliveries", about, "my-app", "my-app --limit 100")
    events.add_argument("--limit", metavar="N", type=limit, default=20, help="how many (default: 20)")
    about = "post an event to an app once more"
    again = verb("replay", "webhooks.replay", about, "my-app 4cTJmRk3nEWw0pYzQe1uZA")
    question = "Delete the app {client_id}, every token of it {documents}?"
    about = "delete an app; people keep its documents for 30 days"
    delete = verb("delete", "apps.delete_app", about, "my-app", "my-app --purge", ask=question)
    about = "delete its documents now, also those of an app that was deleted before"
    delete.add_argument("--purge", dest="documents", action="store_const", const=PURGED, default=KEPT, help=about)
    for named in (
        verb("show", "apps.show_app", "one app", "my-app"),
        update,
        rotate,
        resign,
        events,
        again,
        delete,
    ):
        named.add_argument("client_id", metavar="CLIENT_ID", help="as `app list` shows it")
    again.add_argument("id", metavar="ID", help="as `app deliveries` shows it")


def _app_options(parser: argparse.ArgumentParser, required: bool) -> None:
    def add(option: str, about: str, **options: Any) -> None:
        parser.add_argument(option, help=about, default=ABSENT, **options)

    add("--name", "what people see", metavar="N", required=required)
    about = "take a name that holds Latchkey's own, or mixes scripts"
    parser.add_argument("--any-name", action="store_true", help=about)
    add("--redirect-uri", "may be repeated", metavar="U", action="append", dest="redirect_uris", required=required)
    add("--scopes", 'such as "profile data:read"; scopes of APIs by their names', metavar="S", required=required)
    add("--homepage", "http or https address", metavar="URL")
    add("--webhook-url", "where events are posted; empty for nowhere", metavar="URL")
    about = "where people return after it signed them out; may be repeated, once empty for nowhere"
    add("--post-logout-redirect-uri", about, metavar="U", action="append", dest="post_logout_redirect_uris")
    about = "where it hears that a session has ended; empty for nowhere"
    add("--backchannel-logout-uri", about, metavar="URL")
    add("--owner", "who manages it in the browser", metavar="EMAIL|SUB")
    add("--refresh-retry-seconds", "0 to 60: how long a lost rotation is answered again", metavar="N", type=int)
    about = "days after a sign-in at which its refresh tokens end; 0: no end but the server's"
    add("--refresh-lifetime-days", about, metavar="N", type=int)
    add("--id-token-alg", "how its ID tokens are signed; ES256 is the quickest", choices=("RS256", "ES256", "EdDSA"))
    about = "public: `sub` is the person's id (default); pairwise: one id for all apps of its sector. It never changes"
    add("--subject-type", about, choices=("public", "pairwise"))
    about = "https address of a JSON array with the redirect URIs of a pairwise app; its host is the sector"
    add("--sector-identifier-uri", about, metavar="URI", dest="sector_uri")
    flag = argparse.BooleanOptionalAction
    add("--public", "no client_secret, PKCE only", action=flag)
    add("--pkce-required", "PKCE is mandatory", action=flag)
    add("--hosted-storage", "keeps documents here; needs a data: scope", action=flag)
    marks = parser.add_mutually_exclusive_group()
    marked: dict[str, Any] = {"dest": "verified", "default": ABSENT}
    about = "people see that the operator has verified it; an owner's change of name or redirect URIs ends that"
    marks.add_argument("--verified", action="store_true", help=about, **marked)
    about = "people see that nobody has verified it; a proven domain counts no more"
    marks.add_argument("--not-verified", action="store_false", help=about, **marked)
    add("--iss", "iss in the authorization response (RFC 9207)", action=flag, dest="iss_in_response")


def _add_credits(verb: Verbs) -> None:
    about = "give a person credits, or take them with an amount below zero"
    grant = verb(
        "grant",
        "credits.grant_credits",
        about,
        'ada@example.com 5000000 --reason "Payment 17" --key payment-17',
        'ada@example.com -1000000 --reason "Paid back"',
    )
    about = "the balance, what is held, and the newest entries"
    show = verb("show", "credits.show_credits", about, "ada@example.com --limit 20")
    for named in (grant, show):
        named.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")
    grant.add_argument("amount", metavar="MICRODOLLARS", type=whole, help="1000000 are a dollar")
    grant.add_argument("--reason", metavar="R", default="", help="what it is for; the person sees it")
    grant.add_argument("--key", metavar="K", help="given again with the same key, it is done once (in 90 days)")
    show.add_argument("--limit", metavar="N", type=limit, default=100, help="entries (default: 100)")


def _add_tokens(verb: Verbs) -> None:
    mint = verb(
        "mint",
        "tokens.mint_token",
        "grant an app access to a person and print the token response",
        '--user ada@example.com --client-id my-app --scopes "profile data:read"',
    )
    mint.add_argument("--user", metavar="E", required=True, help="the person's e-mail address")
    mint.add_argument("--client-id", metavar="C", required=True, help="as `app list` shows it")
    mint.add_argument("--scopes", metavar="S", required=True, help='such as "profile data:read"')


def _add_fsck(fsck: argparse.ArgumentParser) -> None:
    fsck.set_defaults(run="fsck.check_store", ask="", offline=False, password_stdin=False)
    fsck.add_argument("--repair", action="store_true", help="put right what can be derived from the rest")
    fsck.add_argument("--deep", action="store_true", help="open every document too: damaged, moved, or its key gone?")
    fsck.add_argument("--limit", metavar="N", type=limit, default=20, help="of each kind (default: 20)")
    fsck.add_argument("-v", "--verbose", action="store_true", help="show e-mail addresses in the names of keys")


def _add_audit(audit: argparse.ArgumentParser) -> None:
    audit.set_defaults(run="audit.show_events", ask="", offline=False, password_stdin=False)
    audit.add_argument("--follow", action="store_true", help="print events as they come; with --json one object a line")
    audit.add_argument("--since", metavar="T", help="a date, a time (UTC), or a while such as 15m, 2h or 7d")
    audit.add_argument("--person", metavar="EMAIL|SUB", help="only what this person did, or somebody with that address")
    audit.add_argument("--limit", metavar="N", type=limit, help="the newest so many (default: 100; 10 with --follow)")


def _add_store(verb: Verbs) -> None:
    copy = "/backups/latchkey.rdb --keys /elsewhere/latchkey-keys"
    about = "copy the store into a new file, while a server runs on it or without one"
    save = verb("backup", "backup.back_up", about, copy)
    about = "lay a copy into a data directory that holds no store yet"
    restore = verb("restore", "backup.restore", about, f"{copy} --data-dir data-new", offline=True)
    about = "let sessions and tokens of the copy live on, those that ended since among them"
    restore.add_argument("--keep-tokens", action="store_true", help=about)
    about = "end every session and token, after a restore by other means"
    question = "End every session of every person and every token of every app?"
    verb("end-tokens", "backup.end_tokens", about, "", ask=question)
    for named, keys in ((save, "copy the key file into this one as well"), (restore, "the keys of that time")):
        named.add_argument("file", metavar="FILE", help="the copy")
        named.add_argument("--keys", metavar="FILE", help=keys)
