"""The order in which waiting mails are sent: no kind and no payer holds up the others."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
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


@dataclass(order=True, slots=True)
class _Turn:
    """Turns compare by round, and then by arrival."""

    round: int
    number: int
    payer: str = field(compare=False)
    admitted: asyncio.Event = field(default_factory=asyncio.Event, compare=False)


class _Turns:
    """Turns of payers. The second turn of a payer comes when every other payer had one."""

    def __init__(self) -> None:
        self.turns: list[_Turn] = []
        self._round = 0
        self._last: dict[str, int] = {}  # the round of the newest turn of each waiting payer

    def add(self, number: int, payer: str) -> _Turn:
        """Adds a turn after the payer's other turns."""
        self._last[payer] = max(self._round, self._last.get(payer, 0)) + 1
        turn = _Turn(self._last[payer], number, payer)
        heappush(self.turns, turn)
        return turn

    def next(self) -> _Turn:
        """Removes and returns the first turn."""
        turn = heappop(self.turns)
        self._round = turn.round
        if self._last[turn.payer] == turn.round:
            del self._last[turn.payer]
        return turn

    def drop(self, turn: _Turn) -> None:
        """Removes a turn that no longer waits."""
        self.turns.remove(turn)
        heapify(self.turns)
        if left := [other.round for other in self.turns if other.payer == turn.payer]:
            self._last[turn.payer] = max(left)
        else:
            del self._last[turn.payer]

    def drop_newest(self, payer: str) -> None:
        """Removes the payer's last turn."""
        self.drop(max(turn for turn in self.turns if turn.payer == payer))


class _Queue:
    """The turns of one rank, for first tries or for retries. Networks take turns, and so do the accounts of each.
    `served`: in the count over all queues, the number of this queue's latest turn."""

    def __init__(self) -> None:
        self.served = 0
        self._networks = _Turns()
        self._accounts: dict[str, _Turns] = {}  # of each network that waits

    def __len__(self) -> int:
        return len(self._networks.turns)

    @property
    def first(self) -> int:
        """The number of the mail that is next."""
        return self._accounts[self._networks.turns[0].payer].turns[0].number

    def add(self, number: int, payer: Payer) -> _Turn:
        """Adds a turn after the others of the network and of the account."""
        self._networks.add(number, payer.network)
        return self._accounts.setdefault(payer.network, _Turns()).add(number, payer.account)

    def next(self, served: int) -> _Turn:
        """Removes and returns the first turn."""
        self.served = served
        network = self._networks.next().payer
        turn = self._accounts[network].next()
        self._tidy(network)
        return turn

    def drop(self, turn: _Turn, network: str) -> None:
        """Removes a turn that no longer waits. The network loses its last one."""
        self._networks.drop_newest(network)
        self._accounts[network].drop(turn)
        self._tidy(network)

    def _tidy(self, network: str) -> None:
        if not self._accounts[network].turns:
            del self._accounts[network]


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
        turn = self._waiting[kind].add(next(self._numbers), payer)
        try:
            self._admit()
            await turn.admitted.wait()
            yield
        finally:
            if turn.admitted.is_set():
                self._sending.remove(kind)
            else:
                self._waiting[kind].drop(turn, payer.network)
            self._admit()

    def _admit(self) -> None:
        while kinds := [kind for kind, queue in self._waiting.items() if queue and self._may_send(*kind)]:
            kind = min(kinds, key=self._order)
            self._sending.append(kind)
            self._waiting[kind].next(next(self._served)).admitted.set()

    def _order(self, kind: tuple[Rank, bool]) -> tuple[int, int]:
        queue = self._waiting[kind]
        return (kind[0] if self.closing else queue.served), queue.first

    def _may_send(self, rank: Rank, later: bool) -> bool:
        alike = [other_later for other, other_later in self._sending if other is rank]
        if len(self._sending) >= AT_ONCE or (rank is Rank.NOTICE and len(alike) >= NOTICES_AT_ONCE):
            return False
        return self.closing or not later or sum(alike) < LATER_AT_ONCE
