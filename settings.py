"""Every setting of Latchkey, declared once: its default, its check and its documentation.

A value comes from the command line, else from the environment, else from the configuration file, else from the default.
`python settings.py` prints docs/settings.md.
"""

from __future__ import annotations

import argparse
import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import settings_types as to
from settings_page import rendered
from settings_types import EMBEDDED, MEMORY, PREFIX, Command, Network, Setting, SettingsError, declare

__all__ = ["SETTINGS", "Setting", "Settings", "SettingsError", "add_arguments", "document", "from_namespace", "load"]

CONFIG = PREFIX + "CONFIG"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
DAY = 86_400


@dataclass(frozen=True)
class Settings:
    """The settings of one process. `Settings()` is the defaults; `load` reads, parses and checks."""

    # fmt: off
    host: str = declare("Listening", "HOST", "localhost", to.host,
        "Name or address to listen on; localhost is both loopback addresses.")
    port: int = declare("Listening", "PORT", "8080", to.whole(0, 65535), "TCP port; 0 picks a free one.")
    base_url: str = declare("Listening", "URL", "", to.origin,
        "Origin that browsers and apps see; empty is http://localhost:PORT. Over http:// to any host but loopback, "
        "everybody on the way can read passwords and tokens: put TLS in front and name the https:// origin.", "both")
    trusted_proxies: tuple[Network, ...] = declare("Listening", "NETWORKS", "", to.networks,
        "Addresses and networks, by commas, of the proxies whose forwarded headers are believed.", many=True)
    workers: int = declare("Listening", "N", "1", to.whole(1, 256), "Server processes that share the port.")
    http: str = declare("Listening", "WHICH", "fast", to.one_of("fast", "tornado"),
        "The HTTP server: fast (parses with llhttp, in C, and is the stricter one) or tornado (Tornado's own).")
    connections: int = declare("Listening", "N", "4096", to.whole(16, 1_000_000),
        "Open connections, at most, for each process with the fast HTTP server; then idle ones make room, or new ones "
        "wait.")
    drain_timeout: float = declare("Listening", "SECONDS", "10", to.seconds(0, 3600),
        "Seconds that running requests get to finish when the server stops.")
    log_level: str = declare("Listening", "LEVEL", "info", to.one_of("debug", "info", "warning", "error"),
        "Least level that is logged: debug, info, warning or error.", "both")

    max_head: int = declare("Limits", "BYTES", "65536", to.whole(4096, 2**20),
        "Largest head of a request (its line and its headers, of which there may be 200), in bytes.")
    max_body: int = declare("Limits", "BYTES", "65536", to.whole(1024, 2**26), "Largest request body, in bytes.")
    idle_timeout: float = declare("Limits", "SECONDS", "75", to.seconds(1, 3600),
        "Seconds that a connection is kept without a request; longer than a proxy in front keeps one.")
    head_timeout: float = declare("Limits", "SECONDS", "20", to.seconds(1, 3600),
        "Seconds that the head of a request may take; with the tornado HTTP server it is idle_timeout that counts.")
    body_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds that the body of a request may take.")
    write_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds in which a client takes all that is ready for it, or 64 KiB of it, with the fast HTTP server; else it "
        "is cut.")
    slow_memory: int = declare("Limits", "BYTES", "134217728", to.whole(2**20, 2**36),
        "Bytes that the fast HTTP server holds in each process for clients that have not sent all of a request, or not "
        "taken all of an answer; beyond it those that have been slow for longest are cut.")
    requests: int = declare("Limits", "N", "512", to.whole(1, 100_000),
        "Requests at work at once in each process, but for AI calls and downloads under way; more are answered 503.")
    ai_calls: int = declare("Limits", "N", "2048", to.whole(1, 100_000),
        "AI calls under way at once in each process; more are answered 503.")
    downloads: int = declare("Limits", "N", "32", to.whole(1, 10_000),
        "Downloads of what is kept of a person under way at once in each process, two of them for one person; more are "
        "answered 503.")

    ops_port: int | None = declare("Operations", "PORT", "", to.optional_port,
        "TCP port of what payment back ends call, apart from everything else; 0 picks a free one, none is off.")
    ops_host: str = declare("Operations", "HOST", "localhost", to.host,
        "Name or address of that port. Whoever holds an operator key can give credits: leave it on loopback or on a "
        "private network.")
    operator_keys: tuple[str, ...] = declare("Operations", "KEYS", "", to.operator_keys,
        "Keys of which a caller of that port shows one, by commas, so that one can be replaced: each 32 characters or "
        "more of A-Z, a-z, 0-9, _ and -.", secret=True, flag=False, many=True)

    redis_url: str = declare("Store", "URL", EMBEDDED, to.redis_url,
        "embedded (a private store in the data directory), memory (nothing is kept; for tests), or a URL: redis://HOST "
        "or unix:///PATH of one server, redis+sentinel://HOST,HOST/SERVICE of a replicated set (sentinels, and what "
        "they call it), redis+cluster://HOST,HOST of a cluster (some of its nodes); with TLS rediss. A URL with a "
        "password belongs in the environment or the file.", "both", secret=True)
    data_dir: Path = declare("Store", "DIR", "data", to.path,
        "Directory of the embedded store and of the keys made for it.", "both")
    redis_timeout: float = declare("Store", "SECONDS", "5", to.seconds(0.01, 300),
        "Seconds that one call to the store may take.", "both")
    redis_connections: int = declare("Store", "N", "64", to.whole(1, 10_000),
        "Connections to the store, at most, for each process; of a cluster, to each node.", "both")
    wait_replicas: int = declare("Store", "N", "0", to.whole(0, 100),
        "Replicas that must have a revocation, a rotation or a move of credits before it is answered; with fewer the "
        "answer is 503. 0 waits for none, and a failover may undo what was answered in the last moment: see "
        "docs/replication.md.", "both")
    wait_timeout: float = declare("Store", "SECONDS", "0.5", to.seconds(0.001, 60),
        "Seconds that the replicas get for that.", "both")
    secret_keys: str = declare("Store", "KEYS", "", to.secret_keys,
        "Keys that seal tokens and documents: id:key pairs by commas, newest first. Required with the URL "
        "of a store; else a file in the data directory is made on first start.",
        "both", secret=True, flag=False, many=True)

    signup: str = declare("Accounts", "WHO", "open", to.one_of("open", "invite", "off"),
        "Who may create an account: open (everybody), invite (who was invited) or off (the operator alone does).")
    app_registration: str = declare("Accounts", "WHO", "everybody", to.one_of("everybody", "operator"),
        "Who may register apps: everybody (who is signed in) or operator (with `manage.py` alone).")
    apps_per_person: int = declare("Accounts", "N", "20", to.whole(1, 1000),
        "Apps that one person may have registered, at most.")
    session_idle: int = declare("Accounts", "SECONDS", str(14 * DAY), to.whole(60, 30 * DAY),
        "Seconds without a request that end a browser session (14 days).")
    session_lifetime: int = declare("Accounts", "SECONDS", str(30 * DAY), to.whole(60, 30 * DAY),
        "Seconds after sign-in that end a browser session, used or not (30 days, and no more).")
    smtp_url: str = declare("Mail", "URL", "", to.smtp_url,
        "Mail server: smtp://USER:PASSWORD@HOST:587?starttls, smtps://HOST, or smtp://HOST without TLS, which takes no "
        "password unless it is on this machine. With it an address must be confirmed before an app sees it; without it "
        "mails are kept in the data directory. A URL with a password belongs in the environment or the file.",
        secret=True)
    mail_from: str = declare("Mail", "ADDRESS", "", to.mail_address,
        "Address that mails come from; empty is noreply at the host of the base URL.")
    smtp_timeout: float = declare("Mail", "SECONDS", "10", to.seconds(0.1, 300),
        "Seconds that one step of handing over a mail may take.")
    password_memory: int = declare("Passwords", "KIB", "19456", to.whole(8192, 262_144),
        "KiB of memory that one password hash (Argon2id) takes.", "both")
    password_iterations: int = declare("Passwords", "N", "2", to.whole(1, 16), "Passes of one password hash.", "both")
    password_workers: int = declare("Passwords", "N", "2", to.whole(1, 256),
        "Password hashes that run at once in each process; each takes its memory.")
    password_queue: int = declare("Passwords", "N", "32", to.whole(0, 10_000),
        "Password hashes that wait, at most; one more is refused as overload.")

    document_size: int = declare("Documents", "BYTES", "262144", to.whole(1024, 2**20),
        "Largest document, in bytes as it was sent.")
    document_limit: int = declare("Documents", "N", "10000", to.whole(1, 1_000_000),
        "Documents that one app keeps for one person, at most.")
    collection_limit: int = declare("Documents", "N", "1000", to.whole(1, 5_000),
        "Collections that one app keeps for one person, at most.")
    storage_limit: int = declare("Documents", "BYTES", "67108864", to.whole(1024, 2**40),
        "Bytes that one app keeps for one person, at most.")

    ledger_days: int = declare("Credits", "DAYS", "400", to.whole(1, 3650),
        "Days that an entry stands in a person's ledger; older ones are folded into a dated opening balance.", "both")
    ai_config: Path | None = declare("AI calls", "FILE", "", to.optional_path,
        "TOML file of model servers, models and prices; without it there is the built-in model latchkey-echo alone.")
    ai_request_size: int = declare("AI calls", "BYTES", "1048576", to.whole(1024, 2**25),
        "Largest request of an AI call, in bytes.")

    seed: Path | None = declare("First start", "FILE", "", to.optional_path,
        "JSON file of apps, users and their first credits; what is missing is created, at every start.")
    demo: bool = declare("First start", "", "false", to.boolean,
        "Add a demo user with credits and a demo app, and serve the demo app; on a loopback host only.")
    # fmt: on

    @property
    def shared_store(self) -> bool:
        """True when other hosts can use the same store, so that nothing in the data directory is known to all."""
        return self.redis_url not in (EMBEDDED, MEMORY)

    @property
    def call_seconds(self) -> float:
        """The seconds that one call to the store takes at most: one that waits for replicas waits for its turn too."""
        return self.redis_timeout * (2 if self.wait_replicas else 1)

    def origin(self, port: int) -> str:
        """Return `base_url`, or the default origin for the port that is listened on."""
        return self.base_url or to.origin(f"http://localhost:{port}")

    def sender(self, base_url: str) -> str:
        """Return `mail_from`, or noreply at the host of the base URL."""
        host = urlsplit(base_url).hostname or ""
        literal = f"[IPv6:{host}]" if ":" in host else f"[{host}]" if host.rpartition(".")[2].isdigit() else host
        return self.mail_from or f"noreply@{literal}"

    def require_keys(self) -> None:
        """Raise SettingsError when the store is shared and no secret keys are configured.

        Not part of `load`, so that `manage.py keys generate` can make the first ones.
        """
        if self.shared_store and not self.secret_keys:
            raise SettingsError(
                "secret_keys must be set with the URL of a store, the same on every host: "
                f"set {PREFIX}SECRET_KEYS to what `manage.py keys generate` prints"
            )


SETTINGS: tuple[Setting, ...] = tuple(Setting(name=item.name, **item.metadata) for item in fields(Settings))


class _Refuse(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        name = self.dest.upper()
        parser.error(f"{self.option_strings[0]} is not a flag (others can read it): use {PREFIX}{name} or --config")


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add `--config` and the flags of `command`, in groups.

    A flag that is not given leaves no trace in the namespace, so a parser and its subparsers can both have them.
    """
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=f"TOML file of settings [{CONFIG}]")
    groups = {name: parser.add_argument_group(name) for name in dict.fromkeys(item.group for item in _of(command))}
    for item in _of(command):
        options: dict[str, Any] = {"default": argparse.SUPPRESS, "dest": item.name}
        if not item.flag:
            options |= {"action": _Refuse, "nargs": "?", "help": argparse.SUPPRESS}
        elif not item.metavar:
            options |= {"action": argparse.BooleanOptionalAction, "help": _help(item)}
        else:
            options |= {"metavar": item.metavar, "help": _help(item)}
        groups[item.group].add_argument(item.option, **options)


def _of(command: Command) -> Iterator[Setting]:
    return (item for item in SETTINGS if item.applies_to(command))


def _help(item: Setting) -> str:
    return f"{item.meaning} Default: {item.default or 'none'} [{item.environment}]".replace("%", "%%")


def load(argv: Sequence[str], environ: Mapping[str, str], command: Command = "server") -> Settings:
    """Return the settings of `command` from its arguments (without the program's name) and the environment.

    Raises SettingsError for a value that cannot be used, SystemExit for `--help` and for an argument that is none.
    """
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options]",
        allow_abbrev=False,
        description="Each option can also be set by the environment variable in brackets, or in the --config file.",
    )
    add_arguments(parser, command)
    return from_namespace(parser.parse_args(argv), environ, command)


def from_namespace(namespace: argparse.Namespace, environ: Mapping[str, str], command: Command) -> Settings:
    """Return the settings of `command` from parsed arguments and the environment. Raises SettingsError."""
    path = getattr(namespace, "config", None) or environ.get(CONFIG)
    table = _read_config(path) if path else {}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for item in _of(command):
        if (flag := getattr(namespace, item.name, None)) is not None:
            text, source = _as_text(item, flag, item.option), item.option
        elif environ.get(item.environment):
            text, source = environ[item.environment], item.environment
        elif item.name in table:
            text, source = _as_text(item, table[item.name], str(path)), str(path)
        else:
            continue
        values[item.name], sources[item.name] = item.read(text, source), source
    settings = Settings(**values)
    _check(settings, sources, command)
    return settings


def _read_config(path: str) -> dict[str, object]:
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"config cannot be read: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"config is not UTF-8: {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"config is not TOML: {path}: {error}") from None
    names = [item.name for item in SETTINGS]
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            raise SettingsError(f"{key!r} is no setting{f', {near[0]} is' if near else ''} (from {path})")
    return table


def _as_text(item: Setting, value: object, source: str) -> str:
    """Return what the environment would say for a value of a flag or of the configuration file."""
    if item.many and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise SettingsError(
        f"{item.name} must be {'an array of strings' if item.many else 'a single value'} (from {source})"
    )


def _check(settings: Settings, sources: Mapping[str, str], command: Command) -> None:
    """Hold the settings against each other. Raises SettingsError, which says where each of them came from."""

    def refuse(message: str, *names: str) -> None:
        origins = ", ".join(f"{name} from {sources.get(name, 'its default')}" for name in names)
        raise SettingsError(f"{message} ({origins})")

    if settings.redis_url == MEMORY and command == "manage":
        refuse("redis_url must not be memory here: that store lives inside one server process", "redis_url")
    if settings.redis_url == MEMORY and settings.workers > 1:
        refuse("workers must be 1 with redis_url memory: processes cannot share it", "workers", "redis_url")
    if settings.wait_replicas and not settings.shared_store:
        refuse(f"wait_replicas must be 0 here: the {settings.redis_url} store has none", "wait_replicas", "redis_url")
    if settings.wait_replicas and settings.wait_timeout >= settings.redis_timeout:
        refuse("wait_timeout must be below redis_timeout", "wait_timeout", "redis_timeout")
    if settings.demo and settings.host not in LOOPBACK_HOSTS:
        refuse(f"demo needs one of the hosts {', '.join(LOOPBACK_HOSTS)}: its passwords are public", "demo", "host")
    if settings.demo and settings.shared_store:
        refuse("demo needs the embedded or the memory store: its passwords are public", "demo", "redis_url")
    if settings.ops_port is not None and not settings.operator_keys:
        refuse(f"ops_port needs operator_keys: set {PREFIX}OPERATOR_KEYS", "ops_port", "operator_keys")
    if settings.session_lifetime < settings.session_idle:
        refuse("session_lifetime must be at least session_idle", "session_lifetime", "session_idle")


def document() -> str:
    """Return docs/settings.md."""
    return rendered(SETTINGS)


if __name__ == "__main__":
    print(document(), end="")
