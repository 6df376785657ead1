"""A clock for the whole process, which goes as the real one does and can be put forward.

The store's time is that of fakeredis: `TIME` in scripts, and what has expired. The few places of ours that look at a
wall clock themselves (the header `Date`, what pages say of times, which price counts) follow. What measures how long
something takes stays on the real clock, which goes on steadily: time limits of connections and calls, pauses.
"""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

TREE = Path(__file__).resolve().parent.parent
STEADY = ("handlers.core.application", "outbound.webhooks.poster", "testkit.clock")
"""The first notes when a request began, which Tornado holds against the real clock; the second stamps what it posts,
which an app that did not travel holds against the real clock too."""


LATEST = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC).timestamp()
"""Nobody travels farther. Dates end with the year 9999, in Python and in HTTP; what is issued lives for a while yet."""


class Clock:
    """Seconds since 1970, `ahead` of the real ones. One for the process."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._time = _Time(self)
        self._datetime = _moved_datetime(self)
        self._reached: set[str] = set(STEADY)

    def now(self) -> float:
        """The time that the service has."""
        return time.time() + self.ahead

    def forward(self, seconds: float) -> None:
        """Puts it forward. Nothing is touched before the first time."""
        self._reach_all()
        self.ahead += seconds

    def back_to_the_present(self) -> None:
        """What it says is the real time again: for a store that has been emptied."""
        self.ahead = 0.0

    def _reach_all(self) -> None:
        """Has every module that tells the time tell this one, also those that were imported since."""
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
    """Stands for the module `time`."""

    def __init__(self, clock: Clock) -> None:
        self.time = clock.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return int(self.time() * 1_000_000_000)


class _Kind(type):
    """What any module has made is a `datetime`, whichever of the two it knows by that name."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime.datetime)


def _moved_datetime(clock: Clock) -> type:
    class Moved(datetime.datetime, metaclass=_Kind):
        """Stands for the class `datetime`."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            """The time that the service has."""
            return datetime.datetime.fromtimestamp(clock.now(), tz)

    return Moved


def _is_ours(module: ModuleType) -> bool:
    file = Path(getattr(module, "__file__", None) or "/")
    return TREE in file.parents and "site-packages" not in file.relative_to(TREE).parts
