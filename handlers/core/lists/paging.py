"""Long lists on a page: a part of the rows, and links to the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from store.refused import Refused

ListedItem = TypeVar("ListedItem")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class ListPart(Generic[ListedItem]):
    """A part of a list: its `rows`, its `number` from 1, and the number of parts (`pages`) and of rows in the `whole`
    list. `name` is the parameter with the number, and `at` the address of the page, which may have a query; `anchor` is
    the element that the links lead to."""

    rows: Sequence[ListedItem]
    number: int
    pages: int
    whole: int
    name: str
    at: str
    anchor: str = ""

    @property
    def first(self) -> str:
        """The address of the first part; empty on it."""
        return f"{self.at}{self._place}" if self.number > 1 else ""

    @property
    def onward(self) -> str:
        """The address of the next part; empty on the last."""
        joint = "&" if "?" in self.at else "?"
        more = f"{self.at}{joint}{self.name}={self.number + 1}{self._place}"
        return more if self.number < self.pages else ""

    @property
    def _place(self) -> str:
        return f"#{self.anchor}" if self.anchor else ""


def part_of(
    rows: Sequence[ListedItem], size: int, number: int, at: str, name: str = "page", anchor: str = ""
) -> ListPart[ListedItem]:
    """The part with this number, of `size` rows; past the last part, the last."""
    pages = max(1, -(-len(rows) // size))
    number = min(number, pages)
    shown = rows[(number - 1) * size : number * size]
    return ListPart(shown, number, pages, len(rows), name, at, anchor)


def page_number(text: str, name: str = "page") -> int:
    """The number of a page; 1 if none is given. Raises Refused("invalid_request")."""
    if text and not _NUMBER.fullmatch(text):
        raise Refused("invalid_request", f"{name} is a number from 1 to 999999.")
    return int(text or "1")
