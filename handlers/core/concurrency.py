"""Concurrency limits for slow requests: one for the process, one for each person."""

from __future__ import annotations

import random
from collections import Counter

from store.phrases import Phrase
from store.refused import Refused
from store.results import Window

SPREAD_SECONDS = 3
"""Retries of refused requests are spread over this many seconds, so that they don't all arrive at once."""
OVERLOADED = Refused("temporarily_unavailable", Phrase("The server is overloaded. Nothing was done. Try again."))


def later() -> int:
    """A random time in seconds after which a refused client may retry."""
    return 1 + random.getrandbits(8) % SPREAD_SECONDS


class ConcurrencyLimit:
    """`most` places in all, at most `each` for one person. `shrinks`: `each` is also limited to a quarter of the free
    places, so that it takes many people to fill them all."""

    def __init__(self, most: int, each: int | None = None, *, shrinks: bool = False) -> None:
        self._most = most
        self._each = each
        self._shrinks = shrinks
        self._people: Counter[str] = Counter()
        self.taken = 0
        """The number of places in use."""

    def resize(self, most: int, each: int | None = None) -> None:
        """Changes the limits. Requests that have a place keep it."""
        self._most, self._each = most, each

    def place(self, person: str = "", *, window: Window | None = None) -> HeldPlace:
        """Holds a place during the block; without a `person`, it counts for nobody. Raises Refused:
        "temporarily_unavailable" if all places are taken, "rate_limited" with the `window` if the person has the
        maximum."""
        if self.taken >= self._most:
            raise Refused(OVERLOADED.code, OVERLOADED.description, retry_after=later())
        each = self._each
        if each is not None and self._shrinks:
            each = min(each, max(1, (self._most - self.taken) // 4))
        if person and each is not None and self._people[person] >= each:
            words = Phrase("Too many of these are already in progress.")
            raise Refused("rate_limited", words, window=window, retry_after=later())
        return HeldPlace(self, person)

    def take(self, person: str) -> None:
        """Takes a place."""
        self.taken += 1
        self._people[person] += 1

    def leave(self, person: str) -> None:
        """Frees a place."""
        self.taken -= 1
        self._people[person] -= 1
        if not self._people[person]:
            del self._people[person]


class HeldPlace:
    """A place of a limit, held during a block."""

    __slots__ = ("_limit", "_person")

    def __init__(self, limit: ConcurrencyLimit, person: str) -> None:
        self._limit, self._person = limit, person

    def __enter__(self) -> None:
        self._limit.take(self._person)

    def __exit__(self, *error: object) -> None:
        self._limit.leave(self._person)
