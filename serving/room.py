"""A look at the store's memory now and then: figures for the metrics, and a line in the log when it fills up."""

from __future__ import annotations

import asyncio
import logging

from store.errors import StoreError
from store.opened import Store
from store.room import Room

log = logging.getLogger("latchkey.store")

LOOK_SECONDS = 10.0
NEARLY = 0.85
"""From this part on an operator should make room."""
EASED = 0.8
"""Below this part it is well again: the log does not tell of each step over one line."""


class RoomWatch:
    """The room in the store as it was last seen. Of all workers one watches, so that the log has one line."""

    def __init__(self) -> None:
        self.seen = Room(0, 0)
        self._state = "well"

    async def watch(self, store: Store) -> None:
        """Looks again and again until it is cancelled."""
        while True:
            try:
                room = await store.room()
            except StoreError:
                room = self.seen  # that it is away, others say
            if room is None:
                return  # a store that does not say
            self.note(room)
            await asyncio.sleep(LOOK_SECONDS)

    def note(self, room: Room) -> None:
        """Takes up what was seen; logs where it is another state than before."""
        self.seen = room
        state = "full" if room.part >= 1 else "nearly full" if room.part >= NEARLY else self._state
        if room.part < EASED:
            state = "well"
        elif state == "full" and room.part < 1:
            state = "nearly full"
        if state == self._state:
            return
        self._state = state
        level = {"full": logging.ERROR, "nearly full": logging.WARNING}.get(state, logging.INFO)
        log.log(level, "the store is %s: %d of %d MiB%s", state, room.used >> 20, room.limit >> 20, _MEANS[state])


_MEANS = {
    "full": "; what adds to it is answered 503. Make room, or raise store_memory or the maxmemory of the store",
    "nearly full": "; make room, or raise store_memory or the maxmemory of the store",
    "well": "",
}
