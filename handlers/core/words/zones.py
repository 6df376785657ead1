"""Time zones: those that a person can choose, and those that a browser may name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel.core import get_global

DEFAULT = "UTC"


@cache
def offered() -> Sequence[str]:
    """The zones of the list on the page: UTC, and by name those of places whose clocks have a history of their own."""
    places = {name for name in get_global("zone_territories") if not name.startswith("Etc/")}
    return (DEFAULT, *sorted(places - {*get_global("zone_aliases")}))


@cache
def _known() -> frozenset[str]:
    return frozenset({DEFAULT, *get_global("zone_territories"), *get_global("zone_aliases")})


def zone_of(name: str) -> tzinfo | None:
    """The zone of this name; None if CLDR or the host has none. The name may come from anybody."""
    return _zone(name) if name in _known() else None


@cache
def _zone(name: str) -> tzinfo | None:
    if name == DEFAULT:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
