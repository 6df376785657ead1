"""Repeated events of the security log, gathered into one event with a count."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from store.accounts.audit.logged_event import AuditEvent

_SHARED: Final = ("person", "client", "address", "agent", "typed", "detail", "request_id")
"""Fields that a count keeps only if they are the same in all its events."""
MOST_HELD: Final = 20
"""Notes in the store that wait for a count: what a killed process can lose of it begins after them."""


@dataclass(slots=True)
class _Window:
    ends: float
    singles: int
    one: tuple[str, str]
    event: AuditEvent | None = None
    count: int = 0


class Gathering:
    """The windows of one class of events.

    In each window of `seconds`, the first `singles` events of a cause pass one by one. The others are counted, and the
    count becomes an event when the window ends. At most `causes` causes are distinguished at once. With `lumps`, events
    of further causes are counted by name and detail alone. Otherwise the oldest window ends early for them, so no
    person is left out, and ending a window early takes `causes` events. At most `of_one` of the causes may have the
    same event and person; further ones share one cause, whatever their details, clients and places.
    """

    def __init__(
        self, *, singles: int, seconds: float, causes: int, lumps: bool = False, of_one: int | None = None
    ) -> None:
        self._singles = singles
        self._seconds = seconds
        self._causes = causes
        self._lumps = lumps
        self._of_one = causes if of_one is None else of_one
        self._causes_of: Counter[tuple[str, str]] = Counter()
        self._windows: OrderedDict[tuple[str, ...], _Window] = OrderedDict()
        self.excess: list[tuple[str, str]] = []
        """Notes in the store that need not wait for the count."""

    def take(self, event: AuditEvent, who: tuple[str, ...], now: float) -> Iterator[AuditEvent]:
        """Yields the events to log now: the count of a window that ended early, and the event itself unless counted
        here. `who` is the person or network, with any other parts of the cause. `now` is in seconds, monotonic."""
        cause = (event.event, *who)
        one = (event.event, who[0])
        if cause not in self._windows and self._causes_of[one] >= self._of_one:
            cause = (event.event, "", who[0])
        if cause not in self._windows and len(self._windows) >= self._causes:
            if self._lumps:
                cause = (event.event, event.detail)
            else:
                yield from self._end_oldest()
        window = self._windows.get(cause)
        if window is None:
            window = self._windows[cause] = _Window(now + self._seconds, self._singles, one)
            self._causes_of[one] += 1
        if window.singles:
            window.singles -= 1
            yield event
        else:
            window.count += event.count
            if window.event is None:
                window.event = event
            else:
                if len(window.event.recorded) >= MOST_HELD:
                    self.excess += event.recorded
                    event = replace(event, recorded=())
                window.event = _both(window.event, event)

    def ended(self, now: float) -> Iterator[AuditEvent]:
        """Closes the windows that have ended, and yields their counts, if any."""
        while (end := self.next_end) is not None and end <= now:
            yield from self._end_oldest()

    @property
    def next_end(self) -> float | None:
        """When the next window ends; None without a window."""
        # All windows have the same length, so they end in the order they began.
        return next((window.ends for window in self._windows.values()), None)

    def _end_oldest(self) -> Iterator[AuditEvent]:
        _, window = self._windows.popitem(last=False)
        self._causes_of[window.one] -= 1
        if not self._causes_of[window.one]:
            del self._causes_of[window.one]
        if window.event:
            yield replace(window.event, count=window.count)


def _both(one: AuditEvent, other: AuditEvent) -> AuditEvent:
    """The first event, reduced to the fields that both share. Repetitions mostly share all remaining fields."""
    changed: dict[str, Any] = {name: "" for name in _SHARED if getattr(one, name) not in ("", getattr(other, name))}
    if other.recorded:
        changed["recorded"] = one.recorded + other.recorded
    return replace(one, **changed) if changed else one
