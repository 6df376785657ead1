"""Checks the store's memory regularly: for refusals, for metrics, and for the log when the store fills up."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from store.engine.memory import DOCUMENTS_PART, Room
from store.errors import StoreError
from store.wiring import Store

log = logging.getLogger("latchkey.store")

LOOK_SECONDS = 10.0
LEAST_SECONDS = 0.1
"""Between two checks, however much is written."""
NEARLY = 0.7
"""The share of the limit from which an operator should make room."""
EASED = 0.05
"""A state ends this far below the share where it began, so that small changes don't fill the log."""


class RoomWatch:
    """The room in the store. Every process checks, for its own refusals. Only one worker `tells`, so that the log has
    one line and the metrics count the store once. `seen` is the last result of that worker."""

    def __init__(self, *, tells: bool = True) -> None:
        self.seen = Room(0, 0)
        self._tells = tells
        self._state = _WELL

    async def watch(self, store: Store) -> None:
        """Checks until it is cancelled: every 10 seconds, and after many writes of this process."""
        while True:
            # Clear the flag before the check: writes during the check ask for another one.
            store.headroom.wanted.clear()
            with contextlib.suppress(StoreError):  # other code reports that the store is away
                room = await store.room()
                if room is None:
                    return  # a store that does not report its memory
                store.headroom.note(room)
                if self._tells:
                    self.note(room)
            await asyncio.sleep(LEAST_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(store.headroom.wanted.wait(), LOOK_SECONDS)

    def note(self, room: Room) -> None:
        """Keeps the figures; logs a change of state."""
        self.seen = room
        state = _state(room.part, self._state)
        if state == self._state:
            return
        self._state = state
        level, means = _MEANS[state]
        log.log(level, "the store is %s: %d of %d MiB%s", state, room.used >> 20, room.limit >> 20, means)


_WELL, _NEARLY, _CLOSED, _FULL = "well", "nearly full", "too full for documents", "full"
_LINES = ((_FULL, 1.0, 0.0), (_CLOSED, DOCUMENTS_PART, EASED), (_NEARLY, NEARLY, EASED))
_MAKE_ROOM = "Make room, or raise store_memory or the maxmemory of the store"
_MEANS = {
    _FULL: (logging.ERROR, f"; what adds to it is answered 503. {_MAKE_ROOM}"),
    _CLOSED: (logging.ERROR, f"; documents, pictures and new apps are refused. {_MAKE_ROOM}"),
    _NEARLY: (logging.WARNING, "; make room, or raise store_memory or the maxmemory of the store"),
    _WELL: (logging.INFO, ""),
}


def _state(part: float, before: str) -> str:
    for state, least, eased in _LINES:
        if part >= least - (eased if state == before else 0):
            return state
    return _WELL
