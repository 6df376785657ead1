"""Places for what takes long: so many at once, and so many for one person."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from store.refused import Refused
from store.results import Window

SPREAD_SECONDS = 3
"""Over so many seconds those who are sent away are told to come back, or they would all come back at once."""
OVERLOADED = Refused("temporarily_unavailable", "The server is overloaded. Nothing was done: try again.")


def later() -> int:
    """Seconds after which somebody who is sent away may come back."""
    return 1 + random.getrandbits(8) % SPREAD_SECONDS


class ConcurrencyLimit:
    """`most` places, at most `each` of them for one person. `shrinks`: that becomes a quarter of the free places where
    it is less, so it takes many people to fill them all."""

    def __init__(self, most: int, each: int | None = None, *, shrinks: bool = False) -> None:
        self._most = most
        self._each = each
        self._shrinks = shrinks
        self._people: Counter[str] = Counter()
        self.taken = 0
        """How many are taken."""

    def resize(self, most: int, each: int | None = None) -> None:
        """From now on there are that many. Whoever has a place keeps it."""
        self._most, self._each = most, each

    @contextmanager
    def place(self, person: str = "", *, window: Window | None = None) -> Iterator[None]:
        """A place as long as the block goes on; without a `person` it is nobody's. Raises Refused:
        "temporarily_unavailable" where all are taken, "rate_limited" with the `window` where the person has as many as
        one person may."""
        if self.taken >= self._most:
            raise Refused(OVERLOADED.code, OVERLOADED.description, retry_after=later())
        each = self._each
        if each is not None and self._shrinks:
            each = min(each, max(1, (self._most - self.taken) // 4))
        if person and each is not None and self._people[person] >= each:
            words = "Too many of these are already in progress."
            raise Refused("rate_limited", words, window=window, retry_after=later())
        self.taken += 1
        self._people[person] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._people[person] -= 1
            if not self._people[person]:
                del self._people[person]
