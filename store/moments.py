"""Moments in time, in the store's form and in the form of interfaces."""

from __future__ import annotations

from datetime import UTC, datetime


def at(milliseconds: int) -> datetime:
    """The moment, in UTC, of a time in the store (epoch milliseconds)."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def epoch_ms(seconds: int, micros: int) -> int:
    """The answer of the command TIME, in epoch milliseconds."""
    return int(seconds) * 1000 + int(micros) // 1000


def timestamp(moment: datetime) -> str:
    """A moment in UTC as RFC 3339 text with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
