"""Lists of groups that directories read page by page: read once for a list, not once for each page."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

MOST_LISTS: Final = 4
"""Lists of a process; a new one replaces the list that was used least recently."""
KEPT_SECONDS: Final = 60.0
"""Between two pages."""

T = TypeVar("T")


class _Kept(NamedTuple, Generic[T]):
    list: T
    next: int
    until: float


class GroupPages(Generic[T]):
    """Lists that are not read to their end yet, by who reads them. No I/O."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Hashable, _Kept[T]] = OrderedDict()

    def take(self, who: Hashable, start: int) -> T | None:
        """The list whose next page for `who` begins at the number `start`; None for every other page."""
        kept = self._lists.pop(who, None)
        return kept.list if kept and kept.next == start and kept.until > time.monotonic() else None

    def keep(self, who: Hashable, listed: T, start: int) -> None:
        """Keeps a list until its page from `start`, if that comes within a minute."""
        self._lists[who] = _Kept(listed, start, time.monotonic() + KEPT_SECONDS)
        self._lists.move_to_end(who)
        if len(self._lists) > MOST_LISTS:
            self._lists.popitem(last=False)
