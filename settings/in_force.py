"""The settings in force, for operators: each value, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from settings.declared import SETTINGS, Settings
from settings.reading import sources_of
from settings.types import Setting


def in_force(settings: Settings) -> list[dict[str, Any]]:
    """Every setting by name. A secret's value is null, and so is that of a URL which may have a secret in its path. A
    URL has no password. `source` is a flag, an environment variable, a file, or `default`."""
    sources = sources_of(settings)
    return [_item(item, getattr(settings, item.name), sources.get(item.name, "default")) for item in SETTINGS]


def explained() -> dict[str, dict[str, Any]]:
    """What to know of each setting, by name: `meaning`: the text of its help; `flag`: empty for one that has none;
    `environment`: its variable; `live`: whether SIGHUP changes it."""
    return {
        item.name: {
            "meaning": item.meaning,
            "flag": item.option if item.flag else "",
            "environment": item.environment,
            "live": item.live,
        }
        for item in SETTINGS
    }


def _item(item: Setting, value: object, source: str) -> dict[str, Any]:
    address = item.secret and item.flag and isinstance(value, str)
    shown = _without_secrets(str(value)) if address else None if item.secret else _plain(value)
    return {"name": item.name, "value": shown, "source": source, "secret": item.secret and not address}


def _plain(value: object) -> object:
    """The value as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Sequence):
        return [_plain(one) for one in value]
    return str(value)


def _without_secrets(address: str) -> str:
    """The URL with its scheme, host and path. A user name, a password and a query are cut: some name one there."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")) if parts.scheme and host else address.partition("@")[0]
