"""A table of a TOML file that the operator wrote: known names, and values of the right type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

MAX_SECONDS = 3600.0


class Wrong(Exception):
    """A value is wrong. The message names its place, and never has the value of a secret."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}" if place else reason)


class TomlTable:
    """A table of the file: known names, values of the right type."""

    def __init__(self, given: object, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(given, dict):
            raise Wrong(place, "must be a table")
        self.place = place
        self._given: dict[str, Any] = given
        for name in given:
            if name not in known:
                raise Wrong(self._at(name[:64]), f"is unknown; known are {', '.join(known)}")

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def take(self, name: str, kind: type[Any], default: Any = None) -> Any:
        """The value, which must have this type."""
        value = self._given.get(name, default)
        if value is None:
            raise Wrong(self._at(name), "is missing")
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise Wrong(self._at(name), f"must be {_KINDS[kind]}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A line of printable text."""
        value: str = self.take(name, str, default)
        if len(value) > 500 or not value.isprintable() or (default is None and not value):
            raise Wrong(self._at(name), "must be a line of text")
        return value

    def one_of(self, name: str, values: tuple[str, ...], default: str | None = None) -> str:
        """One of these values; if it is missing the default, or else the first."""
        value = self.text(name, default or values[0])
        if value not in values:
            raise Wrong(self._at(name), f"must be {' or '.join(values)}")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number between `low` and `high`."""
        value: int = self.take(name, int, default)
        if not low <= value <= high:
            raise Wrong(self._at(name), f"must be {low} to {high}")
        return value

    def seconds(self, name: str, default: float) -> float:
        """A number of seconds above zero."""
        value: float = self.take(name, (int, float), default)  # type: ignore[arg-type]  # take() has checked
        if not 0 < value <= MAX_SECONDS:
            raise Wrong(self._at(name), f"must be more than 0 and at most {MAX_SECONDS:g} seconds")
        return float(value)

    def number(self, name: str, low: float, high: float, default: float) -> float:
        """A number between `low` and `high`."""
        value: float = self.take(name, (int, float), default)  # type: ignore[arg-type]  # take() has checked
        if not low <= value <= high:
            raise Wrong(self._at(name), f"must be {low:g} to {high:g}")
        return float(value)

    def texts(self, name: str) -> list[str]:
        """An array of strings; empty if it is missing."""
        values: list[Any] = self.take(name, list, [])
        if not all(isinstance(value, str) and "\0" not in value for value in values) or (values and not values[0]):
            raise Wrong(self._at(name), "must be an array of strings: a program and its arguments")
        return values

    def has(self, name: str) -> bool:
        """Whether the table has this name."""
        return name in self._given

    def tables(self, name: str, known: tuple[str, ...]) -> list[TomlTable]:
        """The tables of an array; empty if it is missing."""
        items = self.take(name, list, [])
        return [TomlTable(item, f"{self._at(name)}[{position}]", known) for position, item in enumerate(items)]


_KINDS: Mapping[Any, str] = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    (int, float): "a number",
    datetime: "a date and time",
    list: "an array",
    dict: "a table",
}
