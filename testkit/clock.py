"""The clock that tests of apps move: the product's wall clock, and the time of the store in memory, which follows it.

Measurements of durations stay on the real clock, which is steady: time limits of connections and calls, pauses.
"""

from __future__ import annotations

import datetime

from store.clock import wall
from store.crypto.jose.private import OURS
from store.crypto.signing_rows import current, waiting
from store.crypto.signing_store import KeySet
from store.lifetimes import DAY, SECOND, SIGNING_AHEAD
from store.wiring import Store
from testkit import fakeredis_private

LATEST = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC).timestamp()
"""The latest time to travel to. Dates end with the year 9999 in Python and in HTTP, and tokens outlive the present."""

MOST_STOPS = 4 * len(OURS)
"""One travel makes three successors of each key at most: of the one that signs now, of its successor, of the last."""


class Clock:
    """Moves the service's time forward, and back to the present."""

    def __init__(self) -> None:
        fakeredis_private.follow(wall.time)

    def now(self) -> float:
        """The service's time, in seconds since 1970."""
        return wall.time()

    def forward(self, seconds: float) -> None:
        """Moves the clock forward."""
        wall.ahead += seconds

    def back_to_the_present(self) -> None:
        """Returns to the real time, for a store that was emptied."""
        wall.ahead = 0.0


async def pass_time(store: Store, clock: Clock, seconds: float) -> None:
    """Moves the clock forward, and stops where a running server would have published a new signing key."""
    left = seconds
    for _ in range(MOST_STOPS):
        found = await store.signing_store.read()
        stop = next_rotation(found, found.now + int(left * SECOND), store.signing_keys.days)
        if stop is None:
            break
        step = min(left, (stop - found.now + 1) / SECOND)
        clock.forward(step)
        left -= step
        store.signing_keys.forget()
        await store.signing_keys.verifier(found.rows[0].kid)  # whoever reads the keys makes what is due
    clock.forward(left)


def next_rotation(found: KeySet, until: int, days: int) -> int | None:
    """When the next key is `days` old and gets a successor; None if that is after `until`. Times are in epoch ms. Of
    the keys that begin to sign and end during the travel, all but the first are left out: nobody can have their
    tokens."""
    period, stops = days * DAY + SIGNING_AHEAD, []
    for algorithm in OURS if days else ():
        successor = waiting(found.rows, algorithm, found.now)
        last = successor or current(found.rows, algorithm, found.now)
        if last is None or last.first_use > until:
            continue
        signs = last.first_use
        if successor:
            signs += max(0, (until - signs) // period - 1) * period
        if signs + days * DAY <= until:
            stops.append(max(found.now, signs + days * DAY))
    return min(stops, default=None)
