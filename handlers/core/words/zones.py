"""Time zones: those that a person can choose, and those that a browser may name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel.core import get_global
from babel.dates import get_timezone_location

from store.phrases import Phrase

DEFAULT = "UTC"


@cache
def offered() -> Sequence[str]:
    """The zones of the list on the page: UTC, and by name those of places whose clocks have a history of their own."""
    places = {name for name in get_global("zone_territories") if not name.startswith("Etc/")}
    return (DEFAULT, *sorted(places - {*get_global("zone_aliases")}))


@cache
def _known() -> frozenset[str]:
    return frozenset({DEFAULT, *get_global("zone_territories"), *get_global("zone_aliases")})


_REGIONS = {
    "Africa": Phrase("Africa"),
    "America": Phrase("America"),
    "Antarctica": Phrase("Antarctica"),
    "Arctic": Phrase("Arctic Ocean"),
    "Asia": Phrase("Asia"),
    "Atlantic": Phrase("Atlantic Ocean"),
    "Australia": Phrase("Australia"),
    "Europe": Phrase("Europe"),
    "Indian": Phrase("Indian Ocean"),
    "Pacific": Phrase("Pacific Ocean"),
}


@cache
def places(locale: str) -> Sequence[tuple[Phrase, Sequence[tuple[str, str]]]]:
    """The zones of the list by region: each with its name and its place in words, by these words."""
    found: dict[str, list[tuple[str, str]]] = {region: [] for region in _REGIONS}
    for name in offered():
        region, slash, _ = name.partition("/")
        if slash:
            found[region].append((name, get_timezone_location(name, locale=locale, return_city=True)))
    return [(_REGIONS[region], sorted(rows, key=lambda row: row[1])) for region, rows in found.items()]


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
