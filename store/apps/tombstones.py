"""Tombstones: rows that replace the registration of a deleted app until its people's documents have ended.

While the tombstone exists, nobody can register the client id, people see the app's name, and the app's webhook gets
the events about the end of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgpack

from store.apps.registration import Registration
from store.lifetimes import DAY, GRACE
from store.webhooks.event_types import EVERY

LASTS = GRACE + DAY
"""The lifetime of a tombstone after the last grant ended, in ms; the extra day allows for clocks that differ."""
BY_OWNER, BY_OPERATOR, BY_IDLE = "by_owner", "by_operator", "by_idle"
ENDED = {BY_OWNER: "app_ended_by_owner", BY_OPERATOR: "app_ended_by_operator", BY_IDLE: "app_ended_idle"}
"""The event in the activity of each person, by who or what deleted the app."""


@dataclass(frozen=True, slots=True)
class Remains:
    """The remains of a deleted app: some hundred bytes, whatever it had registered. The webhook stays only if the app
    was active. Sealed secrets are newest first; of two, the older signs for a day after `webhook_rotated_at` (epoch
    ms). `sector` is that of a pairwise app. `row` leaves out the `owner`, because the tombstone has it."""

    client_id: str
    name: str
    webhook_url: str = ""
    webhook_secrets: tuple[bytes, ...] = ()
    webhook_rotated_at: int = 0
    owner: str = ""
    sector: str = ""
    webhook_events: tuple[str, ...] = EVERY

    @classmethod
    def of(cls, app: Registration) -> Remains:
        """The remains of an app that is deleted now."""
        kept = cls(app.client_id, app.name, owner=app.owner, sector=app.sector)
        if not (app.active and app.webhook_url):
            return kept
        secrets, rotated_at = app.webhook_secrets, app.webhook_rotated_at
        return replace(
            kept,
            webhook_url=app.webhook_url,
            webhook_secrets=secrets,
            webhook_rotated_at=rotated_at,
            webhook_events=app.webhook_events,
        )

    def row(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "client_id": self.client_id,
            "name": self.name,
            "webhookUrl": self.webhook_url,
            "webhookSecrets": list(self.webhook_secrets),
            "webhookRotatedAt": self.webhook_rotated_at,
            **({"sector": self.sector} if self.sector else {}),
            **({"webhookEvents": list(self.webhook_events)} if self.webhook_events != EVERY else {}),
        }

    @classmethod
    def of_row(cls, row: dict[str, Any], owner: str) -> Remains:
        """The inverse of `row`."""
        return cls(
            row["client_id"],
            row["name"],
            row["webhookUrl"],
            tuple(row["webhookSecrets"]),
            row["webhookRotatedAt"],
            owner,
            row.get("sector", ""),
            tuple(row.get("webhookEvents", EVERY)),
        )


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A deleted app. `app` is None for an app that the previous release deleted or that was never written. `deleted_at`
    and `until` are epoch ms; `until` is 0 while the deletion is in progress."""

    owner: str
    app: Remains | None = None
    deleted_at: int = 0
    by: str = BY_OWNER
    until: int = 0

    @classmethod
    def of(cls, app: Registration, deleted_at: int, by: str) -> Tombstone:
        """The tombstone of an app that is deleted now."""
        return cls(app.owner, Remains.of(app), deleted_at, by)

    def pack(self) -> bytes:
        """The stored bytes."""
        row = {"owner": self.owner, "deletedAt": self.deleted_at, "by": self.by, "until": self.until}
        packed: bytes = msgpack.packb({"tombstone": {**row, "app": self.app.row() if self.app else None}})
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> Tombstone | None:
        """The inverse of `pack`; None for anything but a tombstone. Earlier releases kept only the owner."""
        row = msgpack.unpackb(packed) if packed else None
        if isinstance(row, str):
            return cls(row)
        if not isinstance(row, dict) or "tombstone" not in row:
            return None
        kept = row["tombstone"]
        app = Remains.of_row(kept["app"], kept["owner"]) if kept["app"] else None
        return cls(kept["owner"], app, kept["deletedAt"], kept["by"], kept["until"])
