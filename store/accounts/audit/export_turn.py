"""Whose turn it is to export the security log, and how far the export has come.

One process exports at a time, for all servers of a store. Its turn ends unless it renews it in time, so after a crash
another process continues from the last noted position.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from store import keys
from store.accounts.audit.security_reading import SOURCES, TrailPosition
from store.crypto.seal import new_id
from store.engine.scripts import Scripts

LEASE_MS: Final = 20_000
"""How long a turn lasts unless its process renews it: longer than one request to the collector."""


class Exported(NamedTuple):
    """How far an export has come: the position of a reader that follows the log, and the time in ms of the store before
    which all entries have left; 0 if unknown."""

    position: TrailPosition
    at: int


class ExportTurn(NamedTuple):
    """The answer to a process that asks for the turn. `position` is None before the first export, `at` as in
    `Exported`, `now` the time of the store in ms. `busy`: another process has the turn, or had it since this one noted
    something."""

    busy: bool
    position: TrailPosition | None
    at: int
    now: int


class ExportTurns:
    """The turns of one process. Methods raise StoreUnavailable."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._process = new_id()

    async def hold(self, done: Exported | None = None, lease: int = LEASE_MS) -> ExportTurn:
        """Takes the turn or keeps it, and notes how far the export has come; 0 ms end the turn. Nothing is noted while
        another process has the turn."""
        reply = await self._scripts.run(
            "hold_audit_export",
            keys.AUDIT_EXPORT,
            process=self._process,
            lease=lease,
            position=" ".join(done.position) if done else "",
            at=done.at if done else 0,
        )
        at, now = reply.number("at"), reply.number("now")
        if reply.word == "busy":
            return ExportTurn(True, None, at, now)
        return ExportTurn(False, _position(reply.text("position")), at, now)


def _position(noted: str) -> TrailPosition | None:
    """The noted position. One with another number of sources counts as the beginning of the log: sending events twice
    is better than leaving some out."""
    if not noted:
        return None
    found = tuple(noted.split(" "))
    return found if len(found) == SOURCES else ("0-0",) * SOURCES
