"""Reads the settings that `settings/serving.py` and `settings/offers.py` declare; checks each alone and all together.

A value comes from the first of these that has it: the command line, the environment, the configuration file, the
default.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from settings.declared import LOOPBACK_HOSTS, SETTINGS, Settings
from settings.file import as_text, read_config
from settings.types import MEMORY, PREFIX, Command, Setting, SettingsError

CONFIG = PREFIX + "CONFIG"


class _Refuse(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        name = self.dest.upper()
        parser.error(f"{self.option_strings[0]} is not a flag (others can read it): use {PREFIX}{name} or --config")


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add `--config` and the flags of `command`, in groups.

    A flag that is not given leaves nothing in the namespace, so a parser and its subparsers can have the same flags.
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


def from_namespace(namespace: argparse.Namespace, environ: Mapping[str, str], command: Command) -> Settings:
    """Return the settings of `command` from parsed arguments and the environment. Raises SettingsError."""
    path = getattr(namespace, "config", None) or environ.get(CONFIG)
    table = read_config(path, [item.name for item in SETTINGS]) if path else {}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for item in _of(command):
        if (flag := getattr(namespace, item.name, None)) is not None:
            text, source = as_text(item, flag, item.option), item.option
            _refuse_password(item, text)
        elif environ.get(item.environment):
            text, source = environ[item.environment], item.environment
        elif item.name in table:
            text, source = as_text(item, table[item.name], str(path)), str(path)
        else:
            continue
        values[item.name], sources[item.name] = item.read(text, source), source
    settings = with_sources(Settings(**values), sources)
    _check(settings, sources, command)
    return settings


def with_sources(settings: Settings, sources: Mapping[str, str]) -> Settings:
    """Notes where the values come from: by name, without those of defaults."""
    # It is no setting, and two settings with the same values are equal wherever these come from.
    object.__setattr__(settings, "sources", dict(sources))
    return settings


def sources_of(settings: Settings) -> Mapping[str, str]:
    """Where the values come from; empty if nobody noted it."""
    found: Mapping[str, str] = getattr(settings, "sources", {})
    return found


def _refuse_password(item: Setting, text: str) -> None:
    """Raise SettingsError for a password in a URL in a flag: every user of the machine can read a command line."""
    address, _, query = text.partition("://")[2].partition("?")
    if item.secret and (":" in address.rpartition("@")[0] or "password=" in query):
        raise SettingsError(
            f"{item.name} must have no password where it comes from {item.option}, which others can read: "
            f"use {item.environment} or --config"
        )


def _check(settings: Settings, sources: Mapping[str, str], command: Command) -> None:
    """Check the settings against each other. Raises SettingsError, which names the source of each value."""

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
    if settings.reuse_port and not settings.shared_store:
        refuse(
            f"reuse_port needs a store that both servers use, which {settings.redis_url} is not: the other one would "
            "take connections, and lose them",
            "reuse_port",
            "redis_url",
        )
    if settings.demo and settings.host not in LOOPBACK_HOSTS:
        refuse(f"demo needs one of the hosts {', '.join(LOOPBACK_HOSTS)}: its passwords are public", "demo", "host")
    if settings.demo and settings.shared_store:
        refuse("demo needs the embedded or the memory store: its passwords are public", "demo", "redis_url")
    if settings.auto_consent and not settings.testable:
        refuse(
            f"auto_consent needs redis_url memory, one of the hosts {', '.join(LOOPBACK_HOSTS)}, no other base_url, no "
            "trusted_proxies and no demo: whoever reaches the server would be that person",
            *("auto_consent", "redis_url", "host", "base_url", "trusted_proxies", "demo"),
        )
    if bool(settings.stripe_key) != bool(settings.stripe_webhook_secret):
        refuse(
            "stripe_key and stripe_webhook_secret must be set together: without the second, no payment becomes credits",
            *("stripe_key", "stripe_webhook_secret"),
        )
    if settings.stripe_key and find_spec("stripe") is None:
        refuse("stripe_key needs the package stripe: pip install 'latchkey[payments]'", "stripe_key")
    if settings.stripe_key and not (settings.stripe_api and settings.stripe_page):
        refuse("stripe_api and stripe_page must not be empty", "stripe_api", "stripe_page")
    if settings.audit_otlp_header and not settings.audit_otlp:
        refuse("audit_otlp_header must come with audit_otlp: there is nobody to send it to", "audit_otlp_header")
    if settings.trace_otlp_header and not settings.trace_otlp:
        refuse("trace_otlp_header must come with trace_otlp: there is nobody to send it to", "trace_otlp_header")
    if settings.trace_otlp and not _has("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"):
        refuse("trace_otlp needs the packages of OpenTelemetry: pip install 'latchkey[tracing]'", "trace_otlp")
    if settings.purchase_least > settings.purchase_most:
        refuse("purchase_least must be at most purchase_most", "purchase_least", "purchase_most")
    if settings.session_lifetime < settings.session_idle:
        refuse("session_lifetime must be at least session_idle", "session_lifetime", "session_idle")


def _has(*modules: str) -> bool:
    """Whether these modules are installed."""
    try:
        return all(find_spec(name) for name in modules)
    except ModuleNotFoundError:  # a package above one of them
        return False


def check(settings: Settings) -> None:
    """Check settings of the server that come from several sources against each other. Raises SettingsError."""
    _check(settings, {}, "server")
