"""What a server adds to the security log: where the running request comes from, and a line for each event."""

from __future__ import annotations

import logging
from typing import Any

import orjson

from handlers.core.client_address import window_address
from handlers.core.devices import device_words
from handlers.core.server_state import ServerState
from observability import tracing
from observability.logs import LogMessage
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_log import AskedBy, Origin
from store.operators.roles import OperatorActor
from store.security_events import EVENTS

log = logging.getLogger("latchkey.security")

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING}


class SecurityLine(LogMessage):
    """One event. The fields are those of docs/operations.md, without the empty ones."""

    __slots__ = ("_event",)

    def __init__(self, event: AuditEvent) -> None:
        self._event = event

    def __str__(self) -> str:
        fields = (f"{name}={_word(value)}" for name, value in _fields(self._event).items())
        return " ".join((self._event.event, self._event.result, *fields))

    def words(self) -> str:
        """The sentence of the event."""
        declared = EVENTS.get(self._event.event)
        return declared.sentence if declared else self._event.event

    def put_fields(self, line: dict[str, Any]) -> None:
        """Everything known about the event."""
        line["event"], line["result"] = self._event.event, self._event.result
        line |= _fields(self._event)


def tell_security(application: ServerState) -> None:
    """Gives the store's security log the origin of each event, and writes each event to the process's log. Asks the
    application for its site each time, since a reload replaces the site."""
    security = application.site.store.security

    def asked_by() -> AskedBy:
        request = tracing.current() or tracing.CONTINUED.get()
        if request is None:
            return AskedBy()
        operator: OperatorActor | None = getattr(request, "latchkey_operator", None)
        # Buyers cause what a payment back end does: it must not push the acts of operators out of the log.
        actor = "operator" if operator and operator.role != "credits" else ""
        return AskedBy(actor, tracing.request_id(request), operator.shown if operator else "")

    def origin() -> Origin:
        request = tracing.current() or tracing.CONTINUED.get()
        if request is None:
            return Origin()
        actor, request_id, by = asked_by()
        address = application.site.address(request)
        agent = device_words(request.headers.get("User-Agent", ""))
        return Origin(address, agent, request_id, actor, window_address(address), by)

    security.origin, security.asked_by, security.tell = origin, asked_by, tell


def tell(event: AuditEvent) -> None:
    """Writes the line of an event."""
    level = _LEVELS[event.severity]
    if log.isEnabledFor(level):
        log.log(level, SecurityLine(event))


def _fields(event: AuditEvent) -> dict[str, str | int]:
    """The fields of a line after event and result; its level is the severity."""
    apart = ("event", "result", "severity", *(("count",) if event.count == 1 else ()))
    return {name: value for name, value in event.shown().items() if value and name not in apart}


def _word(value: str | int) -> str:
    """The value, in quotes if it would look like several."""
    text = str(value)
    return orjson.dumps(text).decode() if " " in text or '"' in text else text
