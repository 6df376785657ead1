"""A caller's window, taken from the store in portions, so that no call waits for it."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from store import keys
from store.clock import wall
from store.engine.scripts import Scripts
from store.lifetimes import Group
from store.refused import Refused
from store.results import Window

PORTION = 100
"""A portion is the limit divided by this."""
MOST_CALLERS = 10_000


@dataclass(slots=True)
class Allotment:
    """What this process holds of a caller's window, which has this `limit`. `left`: calls that it may still admit,
    below zero if it admitted some on credit; `remaining` and `reset` as the store last said, `remaining` None before
    its first answer. `ends` and `closed` are times of the steady clock: when the portion has left the window, and until
    when the window is full."""

    limit: int = 0
    left: int = 0
    remaining: int | None = None
    reset: int = 0
    ends: float = 0.0
    closed: float = 0.0
    taking: asyncio.Task[None] | None = None


class Portions:
    """Admits calls of callers. While a window has room, a process admits calls from its portion and takes the next one
    in the background; its first calls are on credit. So a window can admit one portion more for each process. When the
    store has no more room, calls wait for its answer, and are refused."""

    def __init__(self, scripts: Scripts, group: Group, clock: Callable[[], float] = monotonic) -> None:
        self._scripts = scripts
        self.group = group
        self._clock = clock
        self.allotments: OrderedDict[str, Allotment] = OrderedDict()

    async def take(self, caller: str, limit: int = 0) -> Window:
        """Admits a call. `limit`: of this caller's window, 0 for the usual one. Raises Refused("rate_limited"),
        StoreUnavailable."""
        own = self._of(caller, limit or self.group.limit)
        while own.left <= 0 and not self._has_credit(own):
            if self._clock() < own.closed:
                raise self._refusal(own)
            await asyncio.shield(self._taking(caller, own))
        own.left -= 1
        if own.left < _portion(own) // 2:
            self._taking(caller, own)
        remaining = (own.limit if own.remaining is None else own.remaining) + own.left
        return Window(own.limit, max(0, min(remaining, own.limit)), own.reset)

    def _of(self, caller: str, limit: int) -> Allotment:
        own = self.allotments.get(caller)
        if own is None:
            own = self.allotments[caller] = Allotment(reset=int(wall.time() * 1000) + self.group.period)
            while len(self.allotments) > MOST_CALLERS:
                self.allotments.popitem(last=False)
        elif own.left > 0 and self._clock() >= own.ends:
            # The window no longer counts these calls, so nobody may make them.
            own.left = 0
        if own.limit != limit:
            # What was taken of another limit is given up, and the store says what is left of this one.
            own.limit, own.left, own.remaining, own.closed = limit, min(own.left, 0), None, 0.0
        return own

    def _has_credit(self, own: Allotment) -> bool:
        """Whether the store has room as far as this process knows, and few calls were admitted on credit."""
        return own.remaining != 0 and -own.left < _portion(own)

    def _taking(self, caller: str, own: Allotment) -> asyncio.Task[None]:
        if own.taking is None:
            own.taking = asyncio.ensure_future(self._take(caller, own))
            own.taking.add_done_callback(lambda task: task.cancelled() or task.exception())  # marks it as retrieved
        return own.taking

    async def _take(self, caller: str, own: Allotment) -> None:
        """Takes a portion, and what was admitted on credit."""
        began = self._clock()
        try:
            reply = await self._scripts.run(
                "take_portion",
                {"window": keys.window(self.group.name, caller)},
                limit=own.limit,
                period=self.group.period,
                wanted=_portion(own) - own.left,
            )
            own.reset = reply.number("reset")
            if reply.word == "rate_limited":
                own.remaining, own.closed = 0, began + reply.number("retry")
                return
            own.remaining = reply.number("remaining")
            own.left += reply.number("taken")
            own.ends = began + self.group.period / 1000
        finally:
            own.taking = None

    def _refusal(self, own: Allotment) -> Refused:
        return Refused(
            "rate_limited",
            "Too many requests. Try again later.",
            window=Window(own.limit, 0, own.reset),
            retry_after=max(1, math.ceil(own.closed - self._clock())),
        )


def _portion(own: Allotment) -> int:
    return max(1, own.limit // PORTION)
