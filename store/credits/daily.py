"""Daily limits on AI calls (UTC): of a person over all apps, and of an app over all people."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic

from store import keys
from store.engine.scripts import Scripts
from store.keyed_semaphore import KeyedSemaphore
from store.lifetimes import SPENDING

SLICES = 100
"""A slice is the app's limit divided by this, at least `LEAST_SLICE`."""
LEAST_SLICE = 1_000_000
PAUSE = 5.0
"""Seconds in which a process doesn't ask again for slices of a limit that is used up."""
MOST_PAUSED = 10_000


async def _no_own(client: str) -> int:
    return 0


@dataclass(slots=True)
class DailyLimits:
    """What may be spent in a day, in micro-dollars; 0: no limit. A reload of the settings changes them in place. `own`:
    the limit that an app has by its registration, in place of `per_app`; 0 for none."""

    per_person: int = 0
    per_app: int = 0
    own: Callable[[str], Awaitable[int]] = _no_own

    async def of_app(self, client: str) -> int:
        """The limit of an app; 0: no limit. No I/O while the registration is cached. Raises StoreUnavailable."""
        return await self.own(client) or self.per_app


class Leases:
    """Slices of apps' daily limits, for the shards that need them. A slice that is lost, because its process died
    before it reached the shard, counts as spent: a limit may refuse early, but is never exceeded."""

    def __init__(self, scripts: Scripts, clock: Callable[[], float] = monotonic) -> None:
        self._scripts = scripts
        self._clock = clock
        self._turns = KeyedSemaphore()
        self._taking: Counter[str] = Counter()
        self._used_up: dict[str, tuple[int, int, float]] = {}

    @asynccontextmanager
    async def turn(self, user: str, client: str) -> AsyncIterator[bool]:
        """Waits until no other call of this process takes a slice for the same shard, and keeps the others waiting.
        Yields whether it had to wait, so that the lease may be larger by now."""
        lease = keys.lease(user, client)["lease"]
        waited = lease in self._taking
        self._taking[lease] += 1
        try:
            async with self._turns.place(lease, user):
                yield waited
        finally:
            self._taking[lease] -= 1
            if not self._taking[lease]:
                del self._taking[lease]

    def used_up(self, client: str, limit: int) -> int:
        """The day (days since 1970) for which the app's limit had no slice left a moment ago; 0 for none."""
        day, known, until = self._used_up.get(client, (0, 0, 0.0))
        return day if known == limit and self._clock() < until else 0

    async def take(self, client: str, day: int, missing: int, limit: int) -> int:
        """A slice of the app's limit for `day` (days since 1970), in micro-dollars: at least `missing` if that much is
        left, 0 if nothing is. Raises StoreUnavailable."""
        reply = await self._scripts.run(
            "lease_spending",
            {"spending": keys.lease("", client)["spending"]},
            day=day,
            limit=limit,
            slice=slice_of(limit),
            missing=missing,
            keep=SPENDING,
        )
        if reply.word == "ok":
            return reply.number("given")
        while len(self._used_up) >= MOST_PAUSED:
            self._used_up.pop(next(iter(self._used_up)))
        self._used_up[client] = (day, limit, self._clock() + PAUSE)
        return 0


def slice_of(limit: int) -> int:
    """The part of an app's limit that a shard takes at once."""
    return max(limit // SLICES, LEAST_SLICE)
