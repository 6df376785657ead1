"""The wall clock, for product code that needs the date.

Durations use a steady clock. Lifetimes follow the store's clock. tests/repo/test_clock.py names the few modules that
read the host's clock themselves.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime


class WallClock:
    """The host's clock, and `ahead`, in seconds. Only tests of apps move it: testkit/clock.py."""

    __slots__ = ("ahead",)

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time() + self.ahead

    def utc(self) -> datetime:
        """The moment, in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)


wall = WallClock()
"""The clock of this process."""
