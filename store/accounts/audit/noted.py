"""An event in a note of the script that recorded it."""

from __future__ import annotations

from typing import NamedTuple

from store import parsed_keys
from store.accounts.audit.logged_event import AuditEvent, clean
from store.events.declared_event import Declared


class NotedEvent(NamedTuple):
    """An event that a script noted in the shard of its person, under the id `note`."""

    shard: str
    note: str
    at_ms: int
    trail: str
    event: str
    client: str
    address: str
    agent: str
    actor: str
    request_id: str
    by: str
    detail: str = ""

    @property
    def writer(self) -> str:
        """The process that called the script."""
        return self.note[:8]

    def as_logged(self, declared: Declared) -> AuditEvent:
        """The event for the security log."""
        return AuditEvent(
            declared.name,
            declared.result,
            declared.severity,
            self.actor or declared.actor,
            self.note,
            "operator" if self.actor else declared.stream,
            person=parsed_keys.owner(self.trail),
            client=clean(self.client),
            address=clean(self.address),
            agent=clean(self.agent, 100),
            detail=clean(self.detail, 200),
            request_id=clean(self.request_id),
            by=clean(self.by, 150),
            recorded=((self.shard, self.note),),
        )
