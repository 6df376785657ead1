"""The counters of a process.

Events of every request are first noted in a list, and counted together ten times a second, for half the cost. All other
events are counted at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from observability.metrics import rows as of
from observability.metrics.memory import MetricsMemory, Place
from observability.metrics.rows import MOST_APPS, OTHER, RowFamily

K = TypeVar("K")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})

AnsweredRequest = tuple[str, str | None, int, bool, float, str]
"""An answered request: route, method, status, whether it waited for a model's server or a slow reader, seconds, and the
client id of the app that called, or nothing."""
Answers = Callable[[], Iterable[tuple[str, str, int]]]
"""The store's scripts, their answers since the process began, and how often each was given."""


class Measures:
    """Counts into a place in shared memory. Without a place, nobody reads the counts."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = MetricsMemory().place(0) if place is None else place
        self._figures = self._place.figures
        # Includes apps that the previous process at this place counted by id.
        self._apps = {labels[0] for family, labels, _ in self._place.rows() if family is of.CALLED} - {OTHER}
        self._answers: list[Any] = []
        self.answered: Callable[[AnsweredRequest], None] = self._answers.extend
        """Notes an answered request. `fold` counts it."""
        self.scripts: Answers = tuple
        """The source of the store's counts for `fold`; empty until it is set."""
        self._counted: dict[tuple[str, str], int] = {}

    def fold(self) -> None:
        """Counts the noted events."""
        if self._answers:
            answers, clients = self._answers, self._answers[5::6]
            keys = zip(answers[0::6], answers[1::6], answers[2::6], answers[3::6], strict=True)
            gathered = _gathered(zip(keys, answers[4::6], strict=True))
            answers.clear()
            for (route, method, status, late), found in gathered.items():
                family = of.ANSWERED_LATE if late else of.ANSWERED
                # Methods that clients invent share one row.
                self._spread(family, found, route, method if method in METHODS else OTHER, str(status))
            for client, number in Counter(clients).items():
                if client:
                    self._count(of.CALLED, self._app(client), by=number)
        for script, answer, total in self.scripts():
            new = total - self._counted.get((script, answer), 0)
            if new:
                self._counted[script, answer] = total
                self._count(of.SCRIPTS, script, answer, by=new)

    def took(self, script: str, seconds: float) -> None:
        """Counts and times a call of a script."""
        self._observe(of.TIMED, seconds, script)

    def _app(self, client_id: str) -> str:
        """The label of an app. No app gives up its label for another: its count would disappear in one process but not
        in others, so that the sum would look like a restart."""
        if client_id not in self._apps:
            if len(self._apps) >= MOST_APPS:
                return OTHER
            self._apps.add(client_id)
        return client_id

    def _spread(self, family: RowFamily, seconds: list[float], *labels: str) -> None:
        """Adds observations to a histogram."""
        seconds.sort()
        if seconds[0] < 0.0:  # the clock was set back
            seconds = [max(0.0, one) for one in seconds]
        at, figures, below = self._place.row(family, *labels), self._figures, 0
        for number, bound in enumerate(family.bounds):
            up_to = bisect_right(seconds, bound, below)
            if up_to > below:
                figures[at + number] += up_to - below
                below = up_to
        figures[at + len(family.bounds)] += len(seconds) - below
        figures[at + len(family.bounds) + 1] += sum(seconds)

    def refused(self, route: str, code: str) -> None:
        """Counts a refused request, by its code in the catalogue."""
        self._count(of.REFUSED, route, code)

    def unavailable(self, route: str, cause: str) -> None:
        """Counts a request that was answered 503."""
        self._count(of.UNAVAILABLE, route, cause)

    def called_upstream(self, server: str, model: str, outcome: str, seconds: float) -> None:
        """Counts a finished call of a model's server."""
        self._observe(of.UPSTREAM, seconds, server, model, outcome)

    def attempted(self, server: str, model: str, outcome: str) -> None:
        """Counts an attempt at a model's server, up to the beginning of its answer."""
        self._count(of.ATTEMPTS, server, model, outcome)

    def failed_over(self, server: str, model: str, outcome: str) -> None:
        """Counts a call that went on to another server after this one had failed."""
        self._count(of.FAILOVERS, server, model, outcome)

    def ejected(self, server: str) -> None:
        """Counts a server that failed so often that others are asked first."""
        self._count(of.EJECTIONS, server)

    def charged(self, server: str, model: str, input_tokens: int, output_tokens: int, amount: int) -> None:
        """Counts a settled call; `amount` is in micro-dollars."""
        self._count(of.TOKENS, server, model, "input", by=input_tokens)
        self._count(of.TOKENS, server, model, "output", by=output_tokens)
        self._count(of.CHARGED, server, model, by=amount)

    def mailed(self, what: str, outcome: str) -> None:
        """Counts a mail that was sent or not."""
        self._count(of.MAILED, what, outcome)

    def posted(self, event: str, outcome: str) -> None:
        """Counts a settled attempt to post an event to an app."""
        self._count(of.POSTED, event, outcome)

    def secured(self, event: str, result: str, count: int) -> None:
        """Counts an event of the security log, or `count` of the same cause."""
        self._count(of.SECURITY, event, result, by=count)

    def sign_in_failed(self, reason: str) -> None:
        """Counts a failed sign-in."""
        self._count(of.SIGN_IN_FAILED, reason)

    def trail_cut(self, what: str, count: int) -> None:
        """Counts the days or events that made room in the security log."""
        self._count(of.TRAIL_CUT, what, by=count)

    def exported(self, outcome: str, count: int) -> None:
        """Counts events of the security log that a collector got: sent, or refused."""
        self._count(of.AUDIT_EXPORTED, outcome, by=count)

    def lagged(self, seconds: float) -> None:
        """Counts a late timer of the event loop."""
        self._observe(of.LAG, seconds)

    def level(self, family: RowFamily, value: float) -> None:
        """Sets a present value."""
        self._figures[self._place.row(family)] = value

    def reading(self, family: RowFamily) -> float:
        """The value of a family with a single row."""
        return self._figures[self._place.row(family)]

    def _count(self, family: RowFamily, *labels: str, by: float = 1.0) -> None:
        self._figures[self._place.row(family, *labels)] += by

    def _observe(self, family: RowFamily, seconds: float, *labels: str) -> None:
        seconds = max(0.0, seconds)  # the clock may have been set back
        at, figures = self._place.row(family, *labels), self._figures
        figures[at + bisect_left(family.bounds, seconds)] += 1.0
        figures[at + len(family.bounds) + 1] += seconds


def _gathered(pairs: Iterable[tuple[K, float]]) -> dict[K, list[float]]:
    """The figures by key."""
    found: defaultdict[K, list[float]] = defaultdict(list)
    for key, one in pairs:
        found[key].append(one)
    return found
