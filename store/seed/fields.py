"""Reads the objects of a seed file, and names the place of each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Invalid(Exception):
    """A mistake and its place in the file; never a value, because it may be a secret."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


class SeedObject(dict[str, Any]):
    """A JSON object that remembers a repeated name, which a plain dict would hide."""

    repeated: str | None = None


def seed_object(pairs: list[tuple[str, Any]]) -> SeedObject:
    """An object of the file, for the hook of `json.loads`."""
    made = SeedObject()
    for name, value in pairs:
        if name in made:
            made.repeated = name
        made[name] = value
    return made


class Fields:
    """Reads one object of the file: known names only, each at most once, with values of the right type."""

    def __init__(self, given: object, place: str, known: tuple[str, ...]) -> None:
        self.place = place
        if not isinstance(given, SeedObject):
            raise Invalid(place or "the whole", "must be an object")
        self.given = given
        for name in given:
            if name not in known:
                raise Invalid(self.at(ascii(name[:64])[1:-1]), f"is unknown here; known are {', '.join(known)}")
        if given.repeated is not None:
            raise Invalid(self.at(given.repeated), "is given twice")

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required without a default."""
        return self._take(name, str, "a string", default)

    def boolean(self, name: str, default: bool) -> bool:
        """A boolean: true or false."""
        return self._take(name, bool, "true or false", default)

    def whole(self, name: str, default: int) -> int:
        """A whole number; a boolean is refused."""
        if isinstance(self.given.get(name), bool):
            raise Invalid(self.at(name), "must be a whole number")
        return self._take(name, int, "a whole number", default)

    def texts(self, name: str) -> tuple[str, ...]:
        """A required list of strings."""
        items: list[Any] = self._take(name, list, "a list of strings", None)
        for position, item in enumerate(items):
            if not isinstance(item, str):
                raise Invalid(f"{self.at(name)}[{position}]", "must be a string")
        return tuple(items)

    def anything(self, name: str) -> Any:
        """A required value of any type, for a check that knows more."""
        return self._take(name, object, "given", None)

    def objects(self, name: str, known: tuple[str, ...]) -> Iterator[Fields]:
        """Yields the objects of a list; nothing if the list is missing."""
        items: list[Any] = self._take(name, list, "a list", [])
        return (Fields(item, f"{self.at(name)}[{position}]", known) for position, item in enumerate(items))

    def _take(self, name: str, kind: type[T], what: str, default: T | None) -> T:
        if name not in self.given and default is not None:
            return default
        if name not in self.given:
            raise Invalid(self.at(name), "is missing")
        found = self.given[name]
        if not isinstance(found, kind):
            raise Invalid(self.at(name), f"must be {what}")
        return found
