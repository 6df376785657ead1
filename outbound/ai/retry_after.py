"""Reads `Retry-After` of a model's server. RFC 9110 10.2.3."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from store.clock import wall

_SECONDS = re.compile(r"[0-9]{1,9}")
MAX_LENGTH = 64


def retry_after(value: str | None) -> float | None:
    """The seconds in a header's value, a number or a date; None without a header, and if it can't be read."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if len(text) > MAX_LENGTH:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - wall.time())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
