"""The order in which waiting mails are sent: no kind and no payer holds up the others."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

AT_ONCE, NOTICES_AT_ONCE = 4, 3
LATER_AT_ONCE = 1
"""Retries of one rank that run at once. There are three ranks, so one of the four places is always for first tries: a
relay that refuses slowly can't keep new mail waiting behind retries."""


class Rank(IntEnum):
    """The importance of a mail at shutdown. The lowest number is sent first."""

    UNDO = 0
    LINK = 1
    NOTICE = 2


class Payer(NamedTuple):
    """The network and the account that a mail counts for."""

    network: str
    account: str


@dataclass(eq=False, slots=True)
class _Turn:
    """A mail's turn. `number`: its place in the order of arrival."""

    payer: Payer
    number: int
    admitted: asyncio.Event = field(default_factory=asyncio.Event)


class _Queue:
    """The turns of one rank, for first tries or for retries. Networks take turns, and so do the accounts of each: the
    second turn of one comes when every other had one. `served`: in the count over all queues, the number of this
    queue's latest turn."""

    def __init__(self) -> None:
        self.served = 0
        # Only those that wait. The first key is the next to have a turn, and then goes to the end.
        self._networks: dict[str, dict[str, deque[_Turn]]] = {}

    def __bool__(self) -> bool:
        return bool(self._networks)

    @property
    def first(self) -> _Turn:
        """The next turn."""
        accounts = next(iter(self._networks.values()))
        return next(iter(accounts.values()))[0]

    def add(self, turn: _Turn) -> None:
        """Adds a turn after the others of its account."""
        accounts = self._networks.setdefault(turn.payer.network, {})
        accounts.setdefault(turn.payer.account, deque()).append(turn)

    def next(self, served: int) -> _Turn:
        """Removes and returns the next turn."""
        self.served, turn = served, self.first
        network, account = turn.payer
        accounts = self._networks[network] = self._networks.pop(network)
        accounts[account] = accounts.pop(account)
        self.drop(turn)
        return turn

    def drop(self, turn: _Turn) -> None:
        """Removes a turn."""
        network, account = turn.payer
        accounts = self._networks[network]
        accounts[account].remove(turn)
        if not accounts[account]:
            del accounts[account]
        if not accounts:
            del self._networks[network]


class Line:
    """Assigns the places for sending. The ranks take turns, and so do the networks of a rank and the accounts of a
    network; at shutdown, the most important rank comes first."""

    def __init__(self) -> None:
        self._numbers, self._served = itertools.count(), itertools.count(1)
        self._waiting: dict[tuple[Rank, bool], _Queue] = defaultdict(_Queue)
        self._sending: list[tuple[Rank, bool]] = []
        self._ends = {rank: asyncio.Event() for rank in Rank}
        self.closing = False

    def close(self) -> None:
        """From now on the rank decides the order, and retries no longer wait for their time."""
        self.closing = True
        # They wake in this order, so a free place goes to the most important mail.
        for end in self._ends.values():
            end.set()

    async def pause(self, rank: Rank, seconds: float) -> None:
        """Waits `seconds`, or until the server stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ends[rank].wait(), seconds)

    @asynccontextmanager
    async def place(self, rank: Rank, payer: Payer, *, later: bool) -> AsyncIterator[None]:
        """Holds a place for sending. `later`: this is a retry."""
        kind = rank, later
        turn = _Turn(payer, next(self._numbers))
        self._waiting[kind].add(turn)
        try:
            self._admit()
            await turn.admitted.wait()
            yield
        finally:
            if turn.admitted.is_set():
                self._sending.remove(kind)
            else:
                self._waiting[kind].drop(turn)
            self._admit()

    def _admit(self) -> None:
        while kinds := [kind for kind, queue in self._waiting.items() if queue and self._may_send(*kind)]:
            kind = min(kinds, key=self._order)
            self._sending.append(kind)
            self._waiting[kind].next(next(self._served)).admitted.set()

    def _order(self, kind: tuple[Rank, bool]) -> tuple[int, int]:
        queue = self._waiting[kind]
        return (kind[0] if self.closing else queue.served), queue.first.number

    def _may_send(self, rank: Rank, later: bool) -> bool:
        alike = [other_later for other, other_later in self._sending if other is rank]
        if len(self._sending) >= AT_ONCE or (rank is Rank.NOTICE and len(alike) >= NOTICES_AT_ONCE):
            return False
        return self.closing or not later or sum(alike) < LATER_AT_ONCE
