"""An event of the security log, in its stored form and its displayed form."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

import orjson

from store.events.declared_event import EventStream


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event, or `count` events of the same cause. `at_ms` is in epoch milliseconds; `id` is unique. `typed` is a
    keyed fingerprint of an address that belongs to nobody. `by`: the operator key or the person with a role that did
    it; empty for commands. `stream` names the stream that keeps the event. `recorded`: shard and id of each note that
    the script of the act left in the store, until the event is in the log. `entry`: its place in the log, for an event
    that was read there."""

    event: str
    result: str
    severity: str
    actor: str
    id: str
    stream: EventStream = "people"
    at_ms: int = 0
    person: str = ""
    client: str = ""
    address: str = ""
    agent: str = ""
    typed: str = ""
    detail: str = ""
    request_id: str = ""
    count: int = 1
    by: str = ""
    recorded: tuple[tuple[str, str], ...] = ()
    entry: str = field(default="", compare=False)

    def packed(self) -> str:
        """The event in its stored form, at most some 800 bytes: JSON without time, stream and empty fields."""
        values = ((name, getattr(self, name)) for name in _PACKED)
        return orjson.dumps({name: value for name, value in values if value not in ("", 0)}).decode()

    def shown(self) -> dict[str, str | int]:
        """The fields except the time, by their public names, in the order of docs/operations.md."""
        return {
            "event": self.event,
            "result": self.result,
            "severity": self.severity,
            "actor": self.actor,
            "by": self.by,
            "person": self.person,
            "client_id": self.client,
            "address": self.address,
            "agent": self.agent,
            "typed": self.typed,
            "detail": self.detail,
            "count": self.count,
            "request_id": self.request_id,
        }


_UNPACKED = ("stream", "at_ms", "recorded", "entry")
_PACKED: Final = tuple(one.name for one in fields(AuditEvent) if one.name not in _UNPACKED)


def unpacked(stream: EventStream, at: bytes, packed: bytes, entry: str = "") -> AuditEvent | None:
    """An event from the store; None if a later release packed it differently. Unknown fields are dropped."""
    try:
        found = orjson.loads(packed)
        known = {name: found[name] for name in _PACKED if name in found}
        return AuditEvent(**known, stream=stream, at_ms=int(at), entry=entry)
    except (TypeError, ValueError):
        return None


def clean(text: str, most: int = 64) -> str:
    """The text, truncated, without characters that could control a terminal or end a line."""
    cut = text[:most]
    return cut if cut.isprintable() else "".join(char if char.isprintable() else "?" for char in cut)
