"""The clock that tests of apps move: the product's wall clock, and the time of the store in memory, which follows it.

Measurements of durations stay on the real clock, which is steady: time limits of connections and calls, pauses.
"""

from __future__ import annotations

import datetime

from store.clock import wall
from testkit import fakeredis_private

LATEST = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC).timestamp()
"""The latest time to travel to. Dates end with the year 9999 in Python and in HTTP, and tokens outlive the present."""


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
