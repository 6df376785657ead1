"""The arguments of a tool call. Whatever is wrong with them is said in words that a model can act on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from store.refused import Refused


class ToolArguments:
    """The arguments by name. Null counts as missing. Each method raises Refused("invalid_request")."""

    def __init__(self, given: Mapping[str, Any], known: Collection[str]) -> None:
        if unknown := [name for name in given if name not in known]:
            raise Refused("invalid_request", f"There is no argument {unknown[0][:64]!r}. {_known(known)}")
        self._given = given

    def value(self, name: str) -> Any:
        """Any JSON value, null too. Raises if the argument is missing."""
        if name not in self._given:
            raise Refused("invalid_request", f"The argument {name} is missing.")
        return self._given[name]

    def text(self, name: str) -> str:
        """A text that is not empty."""
        found = self.optional(name)
        if not found:
            raise Refused("invalid_request", f"The argument {name} is missing.")
        return found

    def optional(self, name: str) -> str | None:
        """A text, or None if it is missing."""
        found = self._given.get(name)
        if found is not None and not isinstance(found, str):
            raise Refused("invalid_request", f"The argument {name} must be a string.")
        return found

    def whole(self, name: str, usual: int, most: int) -> int:
        """A whole number from 1 to `most`; `usual` if it is missing."""
        found = self._given.get(name)
        if found is None:
            return usual
        if type(found) is not int or not 1 <= found <= most:  # isinstance would take a boolean
            raise Refused("invalid_request", f"The argument {name} must be a whole number from 1 to {most}.")
        return found

    def flag(self, name: str) -> bool:
        """A boolean; False if it is missing."""
        found = self._given.get(name)
        if found is not None and not isinstance(found, bool):
            raise Refused("invalid_request", f"The argument {name} must be true or false.")
        return bool(found)


def _known(known: Collection[str]) -> str:
    return f"This tool takes {', '.join(known)}." if known else "This tool takes none."
