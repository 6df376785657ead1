"""The forms in which the security log leaves: JSON lines, CEF (ArcSight Common Event Format 0), and OTLP logs as JSON.

Each form is written piece by piece, so the length of the log needs no memory. A file of OTLP logs has a request on each
line, as the file exporter of OpenTelemetry's collector writes it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from latchkey import __version__
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_reading import EventFilter, SecurityEvents
from store.operators.records import event_record
from store.security_events import EVENTS

EventFormat = Callable[[list[AuditEvent]], bytes]

_OTLP_SEVERITY: Final = {"info": (9, "INFO"), "warning": (13, "WARN")}
_FAILED: Final = (17, "ERROR")
_HEADER, _VALUE = re.compile(r"[\\|]"), re.compile(r"[\\=]")
_BREAK: Final = re.compile(r"\r\n|\n|\r")


def json_lines(events: list[AuditEvent]) -> bytes:
    """An object a line, with the fields of docs/operations.md."""
    return b"".join(orjson.dumps(event_record(one)) + b"\n" for one in events)


def cef_lines(events: list[AuditEvent]) -> bytes:
    """A CEF event a line."""
    return "".join(map(_cef, events)).encode("utf-8", "replace")


def otlp_lines(events: list[AuditEvent]) -> bytes:
    """A line with these events as OTLP logs in JSON; nothing without events."""
    return orjson.dumps(otlp_request(events)) + b"\n" if events else b""


FORMATS: Final[Mapping[str, EventFormat]] = {"jsonl": json_lines, "cef": cef_lines, "otlp": otlp_lines}
MEDIA_TYPES: Final = {"jsonl": "application/jsonl", "cef": "text/plain; charset=utf-8", "otlp": "application/jsonl"}
ENDINGS: Final = {"jsonl": "jsonl", "cef": "cef", "otlp": "otlp.jsonl"}
"""How the name of a file ends."""


async def exported(
    events: SecurityEvents,
    form: str,
    since: int,
    until: int | None,
    wanted: EventFilter = lambda event: True,
) -> AsyncGenerator[bytes, None]:
    """Yields the wanted events from `since` and before `until` (epoch milliseconds), oldest first, in a form of
    FORMATS. Raises StoreUnavailable."""
    write = FORMATS[form]
    async for piece in events.pieces(since, until, wanted):
        yield write(piece)


def cef_severity(event: AuditEvent) -> int:
    """0 to 10: ordinary acts 2, changes of how people sign in 4, operators' acts 5, refusals 4, failures 6, warnings
    8."""
    if event.severity == "warning":
        return 8
    if event.result == "failed":
        return 6
    if event.stream == "operator":
        return 5
    return 4 if event.result == "refused" or event.stream == "sensitive" else 2


def otlp_request(events: Iterable[AuditEvent]) -> dict[str, Any]:
    """The events as an ExportLogsServiceRequest of OTLP in its JSON encoding: 64-bit numbers are texts."""
    resource = {"service.name": "latchkey", "service.version": __version__}
    scope = {"name": "latchkey.security", "version": __version__}
    records = [_otlp(one) for one in events]
    return {
        "resourceLogs": [
            {"resource": {"attributes": _attributes(resource)}, "scopeLogs": [{"scope": scope, "logRecords": records}]}
        ]
    }


def _otlp(event: AuditEvent) -> dict[str, Any]:
    number, text = _FAILED if event.result == "failed" else _OTLP_SEVERITY[event.severity]
    at = str(event.at_ms * 1_000_000)
    named: dict[str, str | int] = {
        "latchkey.event.id": event.id,
        "latchkey.result": event.result,
        "latchkey.actor": event.actor,
        "latchkey.by": event.by,
        "user.id": event.person,
        "latchkey.client_id": event.client,
        "client.address": event.address,
        "latchkey.agent": event.agent,
        "latchkey.typed": event.typed,
        "latchkey.detail": event.detail,
        "latchkey.count": event.count,
        "latchkey.request_id": event.request_id,
    }
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "severityNumber": number,
        "severityText": text,
        "eventName": f"latchkey.{event.event}",
        "body": {"stringValue": _sentence(event)},
        "attributes": _attributes(named),
    }


def _attributes(named: Mapping[str, str | int]) -> list[dict[str, Any]]:
    """Those that are not empty."""
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in named.items()
        if value != ""
    ]


def _cef(event: AuditEvent) -> str:
    address = {"src": event.address}
    if ":" in event.address:  # `src` is an IPv4 address
        address = {"c6a2": event.address, "c6a2Label": "Source IPv6 Address"}
    fields: dict[str, str | int] = {
        "rt": event.at_ms,
        "externalId": event.id,
        "cat": event.stream,
        "outcome": event.result,
        **address,
        "duid": event.person,
        "suser": event.by,
        "requestClientApplication": event.agent,
        "reason": event.detail,
        "cnt": event.count,
        **_labelled("cs1", "actor", event.actor),
        **_labelled("cs2", "clientId", event.client),
        **_labelled("cs3", "requestId", event.request_id),
        **_labelled("cs4", "typed", event.typed),
    }
    head = ("Latchkey", "Latchkey", __version__, event.event, _sentence(event), str(cef_severity(event)))
    tail = " ".join(f"{name}={_value(str(value))}" for name, value in fields.items() if value != "")
    return f"CEF:0|{'|'.join(map(_header, head))}|{tail}\n"


def _labelled(name: str, label: str, value: str) -> dict[str, str]:
    return {name: value, f"{name}Label": label} if value else {}


def _header(text: str) -> str:
    """A field of a header: no line breaks; pipes and backslashes are escaped."""
    return _HEADER.sub(r"\\\g<0>", _BREAK.sub(" ", text))


def _value(text: str) -> str:
    """The value of an extension: backslashes and equal signs are escaped, line breaks become `\\n`."""
    return _BREAK.sub(lambda found: r"\n", _VALUE.sub(r"\\\g<0>", text))


def _sentence(event: AuditEvent) -> str:
    declared = EVENTS.get(event.event)
    return declared.sentence if declared else event.event
