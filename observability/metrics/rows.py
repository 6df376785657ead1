"""The rows of figures that a process keeps, one for each set of labels: one figure, or those of a histogram; and the
form of a metric that Prometheus reads from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# Seconds. A request without waiting takes half a millisecond; ten seconds are longer than any call of the store.
QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# For requests that wait for a model's server or for a slow reader.
SLOW = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

MOST_APPS = 1000
"""Apps that one process counts by id. It counts later ones together, as `OTHER`."""
OTHER = "other"
"""The label of everything that is counted together."""


@dataclass(frozen=True, slots=True)
class RowFamily:
    """Rows of a process, one for each set of values of `labels`. With `bounds` a row is a histogram: a figure for each
    bound, one for values above the last, then the sum. `level`: a present value, which ends with its process. All
    others are counts, which a replacement process continues."""

    name: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    level: bool = False

    @property
    def width(self) -> int:
        """The number of figures in a row."""
        return len(self.bounds) + 2 if self.bounds else 1

    def count(self, row: list[float]) -> float:
        """The total count in a row."""
        return sum(row[:-1]) if self.bounds else row[0]


ANSWERED = RowFamily("answered", ("route", "method", "status"), QUICK)
ANSWERED_LATE = RowFamily("answered_late", ("route", "method", "status"), SLOW)
REFUSED = RowFamily("refused", ("route", "code"))
UNAVAILABLE = RowFamily("unavailable", ("route", "cause"))
CALLED = RowFamily("called", ("client_id",))
SCRIPTS = RowFamily("scripts", ("script", "answer"))
TIMED = RowFamily("timed", ("script",), QUICK)
UPSTREAM = RowFamily("upstream", ("server", "model", "outcome"), SLOW)
ATTEMPTS = RowFamily("attempts", ("server", "model", "outcome"))
FAILOVERS = RowFamily("failovers", ("server", "model", "outcome"))
EJECTIONS = RowFamily("ejections", ("server",))
TOKENS = RowFamily("tokens", ("server", "model", "direction"))
CHARGED = RowFamily("charged", ("server", "model"))
MAILED = RowFamily("mailed", ("what", "outcome"))
POSTED = RowFamily("posted", ("type", "outcome"))
SECURITY = RowFamily("security", ("event", "result"))
SIGN_IN_FAILED = RowFamily("sign_in_failed", ("reason",))
TRAIL_CUT = RowFamily("trail_cut", ("what",))
AUDIT_EXPORTED = RowFamily("audit_exported", ("outcome",))
AUDIT_BEHIND = RowFamily("audit_behind", level=True)
LAG = RowFamily("lag", (), LAGS)
DIED = RowFamily("died")
CPU = RowFamily("cpu")
RESIDENT = RowFamily("resident", level=True)
TICKED = RowFamily("ticked", level=True)
CONNECTIONS = RowFamily("connections", level=True)
REQUESTS = RowFamily("requests", level=True)
AI_CALLS = RowFamily("ai_calls", level=True)
AI_BODIES = RowFamily("ai_bodies", level=True)
DOWNLOADS = RowFamily("downloads", level=True)
LIVE_PAGES = RowFamily("live_pages", level=True)
STORE_QUEUE = RowFamily("store_queue", level=True)
MAIL_QUEUE = RowFamily("mail_queue", level=True)
WEBHOOK_QUEUE = RowFamily("webhook_queue", level=True)
STORE_MEMORY = RowFamily("store_memory", level=True)
STORE_MEMORY_LIMIT = RowFamily("store_memory_limit", level=True)

KEPT: Mapping[str, RowFamily] = {one.name: one for one in tuple(globals().values()) if isinstance(one, RowFamily)}

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, as Prometheus reads it, from the rows of `families`. Its labels are a subset of theirs; the other
    labels are summed. Or `only` selects rows and gives their labels. `worker` is a label that every process adds: its
    number, from 0."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    families: tuple[RowFamily, ...]
    labels: Labels = ()
    only: Mapping[Labels, Labels] = field(default_factory=dict)

    @property
    def by_worker(self) -> bool:
        """Whether each worker has its own value."""
        return "worker" in self.labels
