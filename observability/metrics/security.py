"""The metrics of sign-ins and of the security log, declared once: see `observability/metrics/declared.py`."""

from __future__ import annotations

from observability.metrics.rows import AUDIT_BEHIND, AUDIT_EXPORTED, SECURITY, SIGN_IN_FAILED, TRAIL_CUT, Metric

OF_SECURITY: tuple[Metric, ...] = (
    Metric(
        "latchkey_security_events_total",
        "counter",
        "Events of the security log, by name and result: ok, refused or failed.",
        (SECURITY,),
        ("event", "result"),
    ),
    Metric(
        "latchkey_sign_in_failures_total",
        "counter",
        "Failed sign-ins by reason: password, unknown (no such account), disabled, code, limited (a window was full), "
        "passkey (not valid), passkey_unknown, passkey_used (its challenge), provider (its answer was "
        "refused), provider_away.",
        (SIGN_IN_FAILED,),
        ("reason",),
    ),
    Metric(
        "latchkey_trail_cut_total",
        "counter",
        "Parts that the security log in the store dropped at its size limit: days of a stream, or events of one day.",
        (TRAIL_CUT,),
        ("what",),
    ),
    Metric(
        "latchkey_audit_export_events_total",
        "counter",
        "Events of the security log for the collector of --audit-otlp: sent, or refused for good.",
        (AUDIT_EXPORTED,),
        ("outcome",),
    ),
    Metric(
        "latchkey_audit_export_behind_seconds",
        "gauge",
        "Seconds that the collector of --audit-otlp is behind the security log, as each process knows it.",
        (AUDIT_BEHIND,),
        ("worker",),
    ),
)
