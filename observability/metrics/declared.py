"""Every metric, declared once: what a process counts, and what Prometheus reads.

A process keeps a row of figures for each set of labels: one figure, or those of a histogram. Several metrics may use
the same rows, so that each event is counted in one place only.
"""

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
TOKENS = RowFamily("tokens", ("server", "model", "direction"))
CHARGED = RowFamily("charged", ("server", "model"))
MAILED = RowFamily("mailed", ("what", "outcome"))
POSTED = RowFamily("posted", ("type", "outcome"))
SECURITY = RowFamily("security", ("event", "result"))
LAG = RowFamily("lag", (), LAGS)
DIED = RowFamily("died")
CPU = RowFamily("cpu")
RESIDENT = RowFamily("resident", level=True)
TICKED = RowFamily("ticked", level=True)
CONNECTIONS = RowFamily("connections", level=True)
REQUESTS = RowFamily("requests", level=True)
AI_CALLS = RowFamily("ai_calls", level=True)
DOWNLOADS = RowFamily("downloads", level=True)
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


METRICS: tuple[Metric, ...] = (
    Metric(
        "latchkey_requests_total",
        "counter",
        "Requests that were answered, by route, method and status. Those that overload sent away are not among them.",
        (ANSWERED, ANSWERED_LATE),
        ("route", "method", "status"),
    ),
    Metric(
        "latchkey_request_seconds",
        "histogram",
        "Seconds from the head of a request to its answer, for all but those of latchkey_long_request_seconds.",
        (ANSWERED,),
        ("route",),
    ),
    Metric(
        "latchkey_long_request_seconds",
        "histogram",
        "Seconds to the end of what waits for a model's server or for its reader: AI calls, streams, downloads.",
        (ANSWERED_LATE,),
        ("route",),
    ),
    Metric(
        "latchkey_app_requests_total",
        "counter",
        f"Answered calls of apps, and questions of APIs, by client id; beyond {MOST_APPS} in a process: {OTHER}.",
        (CALLED,),
        ("client_id",),
    ),
    Metric(
        "latchkey_refusals_total",
        "counter",
        "Requests that were refused, by route and code of the error catalogue.",
        (REFUSED,),
        ("route", "code"),
    ),
    Metric(
        "latchkey_unavailable_total",
        "counter",
        "Requests that were answered 503, by cause: requests (as many are at work as may be), places (so it is with AI "
        "calls, downloads, uploads), passwords (the hasher is busy), store (it is away), full (it has no room), "
        "replicas (too few confirmed).",
        (UNAVAILABLE,),
        ("route", "cause"),
    ),
    Metric(
        "latchkey_store_calls_total",
        "counter",
        "Scripts that ran in the store, by name and first word of the answer; unavailable, full, unconfirmed and "
        "failed are those without one.",
        (SCRIPTS,),
        ("script", "answer"),
    ),
    Metric(
        "latchkey_store_call_seconds",
        "histogram",
        "Seconds from asking for a script to its answer, by name, its way through the queue included: of one call in "
        "eight.",
        (TIMED,),
        ("script",),
    ),
    Metric(
        "latchkey_exchanges_total",
        "counter",
        "Codes that were exchanged for tokens.",
        (SCRIPTS,),
        only={("exchange_code", "ok"): ()},
    ),
    Metric(
        "latchkey_rotations_total",
        "counter",
        "Refresh tokens that were traded for new ones.",
        (SCRIPTS,),
        only={("rotate_refresh", "ok"): ()},
    ),
    Metric(
        "latchkey_replays_total",
        "counter",
        "Codes and refresh tokens that were presented after they had been used or revoked.",
        (SCRIPTS,),
        ("kind",),
        only={("rotate_refresh", "replayed"): ("refresh_token",), ("exchange_code", "replayed"): ("code",)},
    ),
    Metric(
        "latchkey_replayed_proofs_total",
        "counter",
        "Client assertions and DPoP proofs that came to the token endpoint or the endpoint for pushed requests again. "
        "Proofs that come to a call again are refusals with the code invalid_dpop_proof.",
        (SCRIPTS,),
        ("kind",),
        only={("use_assertion", "used"): ("client_assertion",), ("use_dpop_proof", "used"): ("dpop_proof",)},
    ),
    Metric(
        "latchkey_introspections_total",
        "counter",
        "Questions of apps and APIs about tokens, by answer: live, or dead, which foreign and invented ones are too.",
        (SCRIPTS,),
        ("answer",),
        only={
            ("introspect_token", "live"): ("live",),
            ("introspect_token", "itself"): ("live",),
            ("introspect_token", "dead"): ("dead",),
        },
    ),
    Metric(
        "latchkey_app_tokens_total",
        "counter",
        "Tokens that apps got for themselves (client_credentials).",
        (SCRIPTS,),
        only={("issue_app_token", "ok"): ()},
    ),
    Metric(
        "latchkey_pushed_requests_total",
        "counter",
        "Pushed authorization requests: pushed, full (refused, since the app has too many), arrived with a browser, "
        "gone (too late, for another browser, or used up before).",
        (SCRIPTS,),
        ("event",),
        only={
            ("push_request", "ok"): ("pushed",),
            ("push_request", "full"): ("full",),
            ("open_pushed", "ok"): ("arrived",),
            ("open_pushed", "gone"): ("gone",),
        },
    ),
    Metric(
        "latchkey_holds_total",
        "counter",
        "Holds on credits: placed, settled (charged), released (free), and expired before the call could be settled.",
        (SCRIPTS,),
        ("event",),
        only={
            ("place_hold", "held"): ("placed",),
            ("settle_hold", "ok"): ("settled",),
            ("release_hold", "ok"): ("released",),
            ("settle_hold", "ended"): ("expired",),
        },
    ),
    Metric(
        "latchkey_upstream_calls_total",
        "counter",
        "Calls of models' servers, by outcome: ok, the code of a failure, or cut, when nobody was left to wait.",
        (UPSTREAM,),
        ("server", "model", "outcome"),
    ),
    Metric(
        "latchkey_upstream_seconds",
        "histogram",
        "Seconds that calls of models' servers took to the end of their reply.",
        (UPSTREAM,),
        ("server", "model"),
    ),
    Metric(
        "latchkey_upstream_tokens_total",
        "counter",
        "Tokens that were settled, by direction: input or output.",
        (TOKENS,),
        ("server", "model", "direction"),
    ),
    Metric(
        "latchkey_charged_microdollars_total",
        "counter",
        "Micro-dollars that AI calls were charged.",
        (CHARGED,),
        ("server", "model"),
    ),
    Metric(
        "latchkey_mails_total",
        "counter",
        "Mails, by what they are for and outcome: sent, failed, or dropped, since too many waited or the server ended.",
        (MAILED,),
        ("what", "outcome"),
    ),
    Metric(
        "latchkey_webhook_attempts_total",
        "counter",
        "Attempts to tell an app of an event, by its type and outcome: delivered, again, since it will be tried once "
        "more, or failed for good.",
        (POSTED,),
        ("type", "outcome"),
    ),
    Metric(
        "latchkey_security_events_total",
        "counter",
        "Events of the security log, by name and result: ok, refused or failed.",
        (SECURITY,),
        ("event", "result"),
    ),
    Metric(
        "latchkey_event_loop_lag_seconds",
        "histogram",
        "By how much a timer of the event loop was late: what every request in the process had to wait.",
        (LAG,),
    ),
    Metric(
        "latchkey_connections",
        "gauge",
        "Open connections of clients.",
        (CONNECTIONS,),
        ("worker",),
    ),
    Metric(
        "latchkey_requests_in_progress",
        "gauge",
        "Requests at work.",
        (REQUESTS,),
        ("worker",),
    ),
    Metric(
        "latchkey_ai_calls_in_progress",
        "gauge",
        "AI calls under way.",
        (AI_CALLS,),
        ("worker",),
    ),
    Metric(
        "latchkey_downloads_in_progress",
        "gauge",
        "Downloads under way.",
        (DOWNLOADS,),
        ("worker",),
    ),
    Metric(
        "latchkey_store_queue",
        "gauge",
        "Calls that wait for their answer from the store.",
        (STORE_QUEUE,),
        ("worker",),
    ),
    Metric(
        "latchkey_store_memory_bytes",
        "gauge",
        "Bytes of memory that the store has taken; of a cluster, its fullest primary.",
        (STORE_MEMORY,),
    ),
    Metric(
        "latchkey_store_memory_limit_bytes",
        "gauge",
        "Bytes of memory at which the store refuses what adds to it; 0 where it has no maxmemory.",
        (STORE_MEMORY_LIMIT,),
    ),
    Metric(
        "latchkey_mail_queue",
        "gauge",
        "Mails that wait to be sent.",
        (MAIL_QUEUE,),
        ("worker",),
    ),
    Metric(
        "latchkey_webhook_queue",
        "gauge",
        "Events that a process has taken, and posts or waits to post.",
        (WEBHOOK_QUEUE,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_deaths_total",
        "counter",
        "Workers that ended without being told to. Another one is started in the place of each.",
        (DIED,),
    ),
    Metric(
        "latchkey_worker_cpu_seconds_total",
        "counter",
        "Seconds of a core that server processes have used; what replaces a worker goes on counting.",
        (CPU,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_resident_bytes",
        "gauge",
        "Bytes of memory that a server process takes.",
        (RESIDENT,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_ticked_timestamp_seconds",
        "gauge",
        "When the event loop of a server process last turned, in seconds since 1970: one long past says that it hangs.",
        (TICKED,),
        ("worker",),
    ),
)
BUILD = "latchkey_build"
BUILD_HELP = "The release that runs, and what it runs on."
BUILD_LABELS = ("version", "python", "http", "loop")
