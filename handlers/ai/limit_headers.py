"""The figures of a window under the names that AI SDKs know."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from store.clock import wall
from store.lifetimes import MINUTE, SECOND
from store.moments import timestamp
from store.results import Window

NAMES = (
    *(f"X-RateLimit-{figure}-Requests" for figure in ("Limit", "Remaining", "Reset")),
    *(f"Anthropic-RateLimit-Requests-{figure}" for figure in ("Limit", "Remaining", "Reset")),
)
"""The header fields of the OpenAI API and of the Messages API."""


def limit_headers(window: Window) -> dict[str, str]:
    """The fields for a window. The OpenAI API says in how much time a window is empty, the Messages API says when."""
    left = max(0, window.reset - round(wall.time() * SECOND))
    limit, remaining = str(window.limit), str(window.remaining)
    return {
        "X-Ratelimit-Limit-Requests": limit,
        "X-Ratelimit-Remaining-Requests": remaining,
        "X-Ratelimit-Reset-Requests": duration(left),
        "Anthropic-Ratelimit-Requests-Limit": limit,
        "Anthropic-Ratelimit-Requests-Remaining": remaining,
        "Anthropic-Ratelimit-Requests-Reset": _moment(window.reset // SECOND),
    }


@lru_cache(maxsize=1024)
def _moment(seconds: int) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def duration(ms: int) -> str:
    """A time as that API writes it: 12ms, 7.25s, 1m0s."""
    if ms < SECOND:
        return f"{ms}ms"
    minutes, rest = divmod(ms, MINUTE)
    return f"{minutes}m{rest / SECOND:g}s" if minutes else f"{rest / SECOND:g}s"
