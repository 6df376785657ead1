"""The configuration file, and its values as text."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path

from settings.types import Setting, SettingsError


def read_config(path: str, names: Sequence[str]) -> dict[str, object]:
    """Return the table in the file, with keys from `names` only. Raises SettingsError."""
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"config cannot be read: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"config is not UTF-8: {path}") from None
    except (ValueError, RecursionError) as error:  # not TOML, or numbers or nesting that Python can't read
        raise SettingsError(f"config is not TOML: {path}: {error}") from None
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            raise SettingsError(f"{key!r} is no setting{f', {near[0]} is' if near else ''} (from {path})")
    return table


def as_text(item: Setting, value: object, source: str) -> str:
    """Return the text that the environment would have for a value of a flag or of the configuration file. Raises
    SettingsError."""
    if item.many and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise SettingsError(
        f"{item.name} must be {'an array of strings' if item.many else 'a single value'} (from {source})"
    )
