"""Moments, as the store has them and as interfaces write them."""

from __future__ import annotations

from datetime import UTC, datetime


def at(milliseconds: int) -> datetime:
    """A time of the store, which is in epoch milliseconds, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def epoch_ms(seconds: int, micros: int) -> int:
    """What the command TIME answers, in epoch milliseconds."""
    return int(seconds) * 1000 + int(micros) // 1000


def timestamp(moment: datetime) -> str:
    """RFC 3339, with milliseconds, of a moment in UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
