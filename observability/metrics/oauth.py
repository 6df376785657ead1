"""The metrics of codes, tokens and authorization requests, declared once: see `observability/metrics/declared.py`."""

from __future__ import annotations

from observability.metrics.rows import SCRIPTS, Metric

OF_OAUTH: tuple[Metric, ...] = (
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
        "Refresh tokens that were exchanged for new ones.",
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
        "Client assertions and DPoP proofs that were sent a second time to the token endpoint or the endpoint "
        "for pushed requests. Proofs sent a second time with a call are refusals with the code "
        "invalid_dpop_proof.",
        (SCRIPTS,),
        ("kind",),
        only={("use_assertion", "used"): ("client_assertion",), ("use_dpop_proof", "used"): ("dpop_proof",)},
    ),
    Metric(
        "latchkey_introspections_total",
        "counter",
        "Introspections by apps and APIs, by answer: live, or dead, which includes foreign and invented tokens.",
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
        "Pushed authorization requests: pushed, full (refused because the app has too many), arrived with a "
        "browser, gone (too late, another browser, or already used).",
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
        "latchkey_device_requests_total",
        "counter",
        "Authorization requests of devices: begun, allowed, denied, wrong_code (typed by a person, wrong or too old), "
        "slow_down (a poll that came too early).",
        (SCRIPTS,),
        ("event",),
        only={
            ("begin_device_request", "ok"): ("begun",),
            ("answer_device_request", "allowed"): ("allowed",),
            ("answer_device_request", "denied"): ("denied",),
            ("find_device_request", "gone"): ("wrong_code",),
            ("poll_device_request", "slow_down"): ("slow_down",),
        },
    ),
)
