"""Repeated events of the security log, gathered into one event with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from store.logged_event import Event


@dataclass(slots=True)
class _Window:
    ends: float
    singles: int
    one: tuple[str, str]
    event: Event | None = None


class Gathering:
    """The windows of one stream.

    In each window of `seconds`, the first `singles` events of a cause pass one by one; the others are counted, and the
    count is an event when the window ends. At most `causes` causes are told apart at once. Events of further causes are
    counted by name and detail alone if `lumps`, else they pass. At most `of_one` of the causes may be of one event and
    person; further ones of them are one cause, whatever their details and clients.
    """

    def __init__(self, *, singles: int, seconds: float, causes: int, lumps: bool, of_one: int | None = None) -> None:
        self._singles = singles
        self._seconds = seconds
        self._causes = causes
        self._lumps = lumps
        self._of_one = causes if of_one is None else of_one
        self._told_apart: Counter[tuple[str, str]] = Counter()
        self._windows: dict[tuple[str, ...], _Window] = {}

    def counts(self, event: Event, who: tuple[str, ...], now: float) -> bool:
        """Whether the event is counted here; otherwise the caller logs it. `who` is the person or network, and what
        else tells causes apart. `now` is in seconds and never goes back."""
        cause = (event.event, event.detail, *who)
        one = (event.event, who[0])
        if cause not in self._windows and self._told_apart[one] >= self._of_one:
            cause = (event.event, "", who[0])
        if cause not in self._windows and len(self._windows) >= self._causes:
            if not self._lumps:
                return False
            cause = (event.event, event.detail)
        window = self._windows.get(cause)
        if window is None:
            window = self._windows[cause] = _Window(now + self._seconds, self._singles, one)
            self._told_apart[one] += 1
        if window.singles:
            window.singles -= 1
            return False
        window.event = event if window.event is None else _both(window.event, event)
        return True

    def ended(self, now: float) -> Iterator[Event]:
        """Closes the windows that are over, and gives the counts of those that have one."""
        # Windows are all of one length, so they end in the order in which they began.
        while (first := next(iter(self._windows), None)) and self._windows[first].ends <= now:
            window = self._windows.pop(first)
            self._told_apart[window.one] -= 1
            if not self._told_apart[window.one]:
                del self._told_apart[window.one]
            if window.event:
                yield window.event

    @property
    def next_end(self) -> float | None:
        """When the next window ends; None where there is none."""
        return next((window.ends for window in self._windows.values()), None)


def _both(one: Event, other: Event) -> Event:
    """The two events as one count, with the fields that they share."""
    return replace(
        one,
        person=_same(one.person, other.person),
        client=_same(one.client, other.client),
        address=_same(one.address, other.address),
        agent=_same(one.agent, other.agent),
        typed=_same(one.typed, other.typed),
        detail=_same(one.detail, other.detail),
        request_id=_same(one.request_id, other.request_id),
        count=one.count + other.count,
    )


def _same(one: str, other: str) -> str:
    return one if one == other else ""
