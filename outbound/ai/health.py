"""How a model's server has done lately, in this process: whether it failed often, or asked for a pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from outbound.ai.failure import Elsewhere, UpstreamFailed

MAX_REST = 300.0
"""Seconds that a server's `Retry-After` counts at most: a wrong one must not end a server's use for a day."""
MAX_EJECTIONS = 10
"""The longest ejection, in multiples of the first."""


@dataclass(frozen=True, slots=True)
class Ejection:
    """After `failures` failed attempts in a row (0: never), a server is asked last for `seconds`. Each ejection without
    a success in between lasts `seconds` longer."""

    failures: int = 5
    seconds: float = 30.0


class Health:
    """The state of one server. `clock` counts seconds."""

    def __init__(self, rule: Ejection | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rule = rule or Ejection()
        self._clock = clock
        self._failures = self._ejections = 0
        self._ejected_until = self._rests_until = float("-inf")

    @property
    def ejected(self) -> bool:
        """Whether it failed so often that others are asked first."""
        return self._clock() < self._ejected_until

    @property
    def rests_for(self) -> float:
        """The seconds for which it wants no call; 0 if it may be asked now."""
        return max(0.0, self._rests_until - self._clock())

    def succeed(self) -> None:
        """Notes an answer."""
        self._failures = self._ejections = 0

    def fail(self, error: UpstreamFailed) -> bool:
        """Notes a failed attempt. Returns whether it ejects the server. The app's mistakes don't count."""
        if error.retry_after is not None:
            # The server works, and has said when to come back.
            self._rests_until = max(self._rests_until, self._clock() + min(error.retry_after, MAX_REST))
            return False
        if not isinstance(error, Elsewhere) and error.code != "upstream_timeout":
            return False
        self._failures += 1
        # After an ejection, one more failure is enough.
        if not self.rule.failures or self.ejected or self._failures < self.rule.failures:
            return False
        self._ejections = min(self._ejections + 1, MAX_EJECTIONS)
        self._ejected_until = self._clock() + self.rule.seconds * self._ejections
        return True
