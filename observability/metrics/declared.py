"""Every metric, declared once: what Prometheus reads. Several metrics may use the same rows, so that each event is
counted in one place only.
"""

from __future__ import annotations

from observability.metrics.oauth import OF_OAUTH
from observability.metrics.rows import (
    AI_BODIES,
    AI_CALLS,
    ANSWERED,
    ANSWERED_LATE,
    ATTEMPTS,
    CALLED,
    CHARGED,
    CONNECTIONS,
    CPU,
    DIED,
    DOWNLOADS,
    EJECTIONS,
    FAILOVERS,
    LAG,
    LIVE_PAGES,
    MAIL_QUEUE,
    MAILED,
    MOST_APPS,
    OTHER,
    POSTED,
    REFUSED,
    REQUESTS,
    RESIDENT,
    SCRIPTS,
    STORE_MEMORY,
    STORE_MEMORY_LIMIT,
    STORE_QUEUE,
    TICKED,
    TIMED,
    TOKENS,
    UNAVAILABLE,
    UPSTREAM,
    WEBHOOK_QUEUE,
    Metric,
)
from observability.metrics.security import OF_SECURITY

METRICS: tuple[Metric, ...] = (
    Metric(
        "latchkey_requests_total",
        "counter",
        "Answered requests, by route, method and status, without those that were refused under overload.",
        (ANSWERED, ANSWERED_LATE),
        ("route", "method", "status"),
    ),
    Metric(
        "latchkey_request_seconds",
        "histogram",
        "Seconds from the head of a request to its answer, without those of latchkey_long_request_seconds.",
        (ANSWERED,),
        ("route",),
    ),
    Metric(
        "latchkey_long_request_seconds",
        "histogram",
        "Seconds to the end of requests that wait for a model's server or for their reader: AI calls, "
        "streams, downloads.",
        (ANSWERED_LATE,),
        ("route",),
    ),
    Metric(
        "latchkey_app_requests_total",
        "counter",
        f"Answered calls of apps, and introspections by APIs, by client id; beyond {MOST_APPS} in a process: {OTHER}.",
        (CALLED,),
        ("client_id",),
    ),
    Metric(
        "latchkey_refusals_total",
        "counter",
        "Refused requests, by route and code of the error catalogue.",
        (REFUSED,),
        ("route", "code"),
    ),
    Metric(
        "latchkey_unavailable_total",
        "counter",
        "Requests that were answered 503, by cause: requests (too many in progress), places (too many AI "
        "calls, downloads or uploads), passwords (too many being checked), store (no answer), full (the store "
        "has no room), replicas (too few confirmed), keys (a secret key is missing).",
        (UNAVAILABLE,),
        ("route", "cause"),
    ),
    Metric(
        "latchkey_store_calls_total",
        "counter",
        "Calls of scripts in the store, by script and first word of the answer; without an answer: "
        "unavailable, full, unconfirmed or failed.",
        (SCRIPTS,),
        ("script", "answer"),
    ),
    Metric(
        "latchkey_store_call_seconds",
        "histogram",
        "Seconds from calling a script to its answer, by script, including the time in the queue; measured "
        "for one call in eight.",
        (TIMED,),
        ("script",),
    ),
    *OF_OAUTH,
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
        "Calls of models' servers, by outcome: ok, the code of a failure, or cut (the app had left).",
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
        "latchkey_upstream_attempts_total",
        "counter",
        "Attempts at models' servers, including token counts, by outcome: ok (an answer began), a failure's "
        "code, or cut.",
        (ATTEMPTS,),
        ("server", "model", "outcome"),
    ),
    Metric(
        "latchkey_upstream_failovers_total",
        "counter",
        "Calls that moved on to another server, by the server that failed and the code of its failure.",
        (FAILOVERS,),
        ("server", "model", "outcome"),
    ),
    Metric(
        "latchkey_upstream_ejections_total",
        "counter",
        "Ejections of a model's server: it failed several times in a row, so calls go to other servers first.",
        (EJECTIONS,),
        ("server",),
    ),
    Metric(
        "latchkey_upstream_tokens_total",
        "counter",
        "Tokens that were charged, by direction: input or output.",
        (TOKENS,),
        ("server", "model", "direction"),
    ),
    Metric(
        "latchkey_charged_microdollars_total",
        "counter",
        "Micro-dollars charged for AI calls.",
        (CHARGED,),
        ("server", "model"),
    ),
    Metric(
        "latchkey_mails_total",
        "counter",
        "Mails, by purpose and outcome: sent, failed, or dropped (too many waited, or the server stopped).",
        (MAILED,),
        ("what", "outcome"),
    ),
    Metric(
        "latchkey_webhook_attempts_total",
        "counter",
        "Attempts to post an event to an app, by its type and outcome: delivered, again (a retry follows), or "
        "failed for good.",
        (POSTED,),
        ("type", "outcome"),
    ),
    *OF_SECURITY,
    Metric(
        "latchkey_event_loop_lag_seconds",
        "histogram",
        "Seconds that a timer of the event loop was late; every request in the process waited that long.",
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
        "Requests in progress.",
        (REQUESTS,),
        ("worker",),
    ),
    Metric("latchkey_ai_calls_in_progress", "gauge", "AI calls in progress.", (AI_CALLS,), ("worker",)),
    Metric("latchkey_ai_body_bytes", "gauge", "Bytes in use by long AI requests.", (AI_BODIES,), ("worker",)),
    Metric(
        "latchkey_downloads_in_progress",
        "gauge",
        "Downloads in progress.",
        (DOWNLOADS,),
        ("worker",),
    ),
    Metric(
        "latchkey_live_pages",
        "gauge",
        "Open pages of connected apps that follow what apps do. A worker has room for 512, a person for 6.",
        (LIVE_PAGES,),
        ("worker",),
    ),
    Metric(
        "latchkey_store_queue",
        "gauge",
        "Calls that wait for an answer from the store.",
        (STORE_QUEUE,),
        ("worker",),
    ),
    Metric(
        "latchkey_store_memory_bytes",
        "gauge",
        "Bytes of memory that the store uses; in a cluster, its fullest primary.",
        (STORE_MEMORY,),
    ),
    Metric(
        "latchkey_store_memory_limit_bytes",
        "gauge",
        "Bytes of memory at which the store refuses to store more; 0 if it has no maxmemory.",
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
        "Events that a process has claimed, and is posting or waiting to post.",
        (WEBHOOK_QUEUE,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_deaths_total",
        "counter",
        "Workers that ended unexpectedly. Each is replaced.",
        (DIED,),
    ),
    Metric(
        "latchkey_worker_cpu_seconds_total",
        "counter",
        "CPU seconds that server processes have used; a worker's replacement continues its count.",
        (CPU,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_resident_bytes",
        "gauge",
        "Resident bytes of memory of a server process.",
        (RESIDENT,),
        ("worker",),
    ),
    Metric(
        "latchkey_worker_ticked_timestamp_seconds",
        "gauge",
        "When the event loop of a server process last turned, in seconds since 1970; a time long past means "
        "that it hangs.",
        (TICKED,),
        ("worker",),
    ),
)
BUILD = "latchkey_build"
BUILD_HELP = "The running release, and its Python, HTTP server and event loop."
BUILD_LABELS = ("version", "python", "http", "loop")
