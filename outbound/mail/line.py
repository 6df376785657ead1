"""Which of the waiting mails is sent next: a few are sent at once, and no kind of them holds every place."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum

AT_ONCE, NOTICES_AT_ONCE = 4, 3
LATER_AT_ONCE = 1
"""Second and later tries of one rank that are made at once. There are three ranks, so one of the four places is always
for first tries: a relay that refuses slowly keeps no new mail waiting behind the tries that it refuses."""


class Rank(IntEnum):
    """What a mail is worth when the server ends; the lowest number is sent first."""

    UNDO = 0
    LINK = 1
    NOTICE = 2


@dataclass(eq=False, slots=True)
class _Turn:
    number: int
    rank: Rank
    later: bool
    admitted: asyncio.Event = field(default_factory=asyncio.Event)


class Line:
    """Gives out the sending places in the order of arrival; at the end of the server, in the order of ranks."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[tuple[Rank, bool], deque[_Turn]] = defaultdict(deque)
        self._sending: list[_Turn] = []
        self._ends = {rank: asyncio.Event() for rank in Rank}
        self.closing = False

    def close(self) -> None:
        """From now on the rank decides, and nothing waits for the time of its next try."""
        self.closing = True
        # They wake in this order, so a free place goes to the most important mail.
        for end in self._ends.values():
            end.set()

    async def pause(self, rank: Rank, seconds: float) -> None:
        """Waits so many seconds, or until the server ends."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ends[rank].wait(), seconds)

    @asynccontextmanager
    async def place(self, rank: Rank, *, later: bool) -> AsyncIterator[None]:
        """A place to send from; `later`: this is not the first try."""
        turn = _Turn(next(self._numbers), rank, later)
        self._waiting[rank, later].append(turn)
        try:
            self._admit()
            await turn.admitted.wait()
            yield
        finally:
            if turn.admitted.is_set():
                self._sending.remove(turn)
            else:
                self._waiting[rank, later].remove(turn)
            self._admit()

    def _admit(self) -> None:
        while first := [line[0] for kind, line in self._waiting.items() if line and self._may_send(*kind)]:
            turn = min(first, key=self._order)
            self._waiting[turn.rank, turn.later].popleft()
            self._sending.append(turn)
            turn.admitted.set()

    def _order(self, turn: _Turn) -> tuple[int, int]:
        return (turn.rank if self.closing else 0, turn.number)

    def _may_send(self, rank: Rank, later: bool) -> bool:
        alike = [other for other in self._sending if other.rank is rank]
        if len(self._sending) >= AT_ONCE or (rank is Rank.NOTICE and len(alike) >= NOTICES_AT_ONCE):
            return False
        return self.closing or not later or sum(other.later for other in alike) < LATER_AT_ONCE
