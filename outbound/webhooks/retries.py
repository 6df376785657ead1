"""When a failed delivery of an event is retried."""

from __future__ import annotations

import random

PAUSES = (5, 30, 120, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 86_400)
"""Seconds before each attempt after the first: three days in all."""
ATTEMPTS = len(PAUSES) + 1
JITTER = 0.2
LONGEST_RETRY_AFTER = 86_400.0
"""Seconds. A receiver can't ask for a longer pause."""


def pause_after(attempt: int, retry_after: float | None) -> float | None:
    """The seconds before the next attempt after `attempt` (from 1) failed; None if that was the last one.

    A receiver's Retry-After can only lengthen the pause: with a shorter one, the attempts would be used up before the
    receiver is back. Jitter spreads events that failed together.
    """
    if attempt > len(PAUSES):
        return None
    pause = PAUSES[attempt - 1] * (1 + JITTER * (random.getrandbits(20) / 2**19 - 1))
    return max(pause, min(retry_after, LONGEST_RETRY_AFTER)) if retry_after is not None else pause
