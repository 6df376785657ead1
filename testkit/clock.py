"""A clock for the whole process, which runs like the real one and can be moved forward.

The store's time is fakeredis's: `TIME` in scripts, and expiry. The few modules of ours that read a wall clock (the
header `Date`, times on pages, the price that applies) follow. Measurements of durations stay on the real clock, which
is steady: time limits of connections and calls, pauses.
"""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

TREE = Path(__file__).resolve().parent.parent
STEADY = ("runtime.http.tornado_private", "outbound.webhooks.poster", "testkit.clock")
"""The first notes when a request began, which Tornado holds against the real clock; the second stamps what it posts,
which an app that did not travel holds against the real clock too."""


LATEST = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC).timestamp()
"""The latest time to travel to. Dates end with the year 9999 in Python and in HTTP, and tokens outlive the present."""


class Clock:
    """Seconds since 1970, `ahead` of the real clock. A process has one."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._time = _Time(self)
        self._datetime = _moved_datetime(self)
        self._reached: set[str] = set(STEADY)

    def now(self) -> float:
        """The service's time."""
        return time.time() + self.ahead

    def forward(self, seconds: float) -> None:
        """Moves the clock forward. Changes no module before the first call."""
        self._reach_all()
        self.ahead += seconds

    def back_to_the_present(self) -> None:
        """Returns to the real time, for a store that was emptied."""
        self.ahead = 0.0

    def _reach_all(self) -> None:
        """Makes every module that reads the time use this clock, also modules imported since."""
        for name in sys.modules.keys() - self._reached:
            self._reached.add(name)
            module = sys.modules[name]
            if name.partition(".")[0] == "fakeredis" or _is_ours(module):
                self._reach(module)

    def _reach(self, module: ModuleType) -> None:
        for known, value in list(vars(module).items()):
            if value is time:
                setattr(module, known, self._time)
            elif value is time.time:
                setattr(module, known, self.now)
            elif value is datetime.datetime:
                setattr(module, known, self._datetime)


class _Time:
    """Replaces the module `time`."""

    def __init__(self, clock: Clock) -> None:
        self.time = clock.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return int(self.time() * 1_000_000_000)


class _Kind(type):
    """Makes any `datetime` an instance, whichever of the two classes a module uses."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime.datetime)


def _moved_datetime(clock: Clock) -> type:
    class Moved(datetime.datetime, metaclass=_Kind):
        """Replaces the class `datetime`."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            """The service's time."""
            return datetime.datetime.fromtimestamp(clock.now(), tz)

    return Moved


def _is_ours(module: ModuleType) -> bool:
    file = Path(getattr(module, "__file__", None) or "/")
    return TREE in file.parents and "site-packages" not in file.relative_to(TREE).parts
