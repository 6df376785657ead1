"""When an event that was not taken is posted again."""

from __future__ import annotations

import random

PAUSES = (5, 30, 120, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 86_400)
"""Seconds before each attempt after the first: three days in all."""
ATTEMPTS = len(PAUSES) + 1
JITTER = 0.2
MOST_ASKED = 86_400.0
"""Seconds. A receiver that asks for more gets no more."""


def pause_after(attempt: int, retry_after: float | None) -> float | None:
    """The seconds before the next attempt, where `attempt` (from 1) failed; None where that was the last one.

    A receiver's Retry-After makes it later, never earlier: the attempts would be used up before it is back. Jitter lets
    what failed together not come back together.
    """
    if attempt > len(PAUSES):
        return None
    pause = PAUSES[attempt - 1] * (1 + JITTER * (random.getrandbits(20) / 2**19 - 1))
    return max(pause, min(retry_after, MOST_ASKED)) if retry_after is not None else pause
