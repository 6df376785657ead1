"""Pages that stay open and show what changes: one look at the store each second for all pages of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from handlers.core.concurrency import ConcurrencyLimit
from store.errors import StoreUnavailable
from store.refused import SignedOut

LOOK_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""Between two looks while the store is away."""
Looking = Callable[[Any], Awaitable[Any]]
"""Asks the store; takes what it answered before, or None."""
MOST_LOOKS = 100
"""Sessions of a process that look once a second. If there are more, all look less often: a look at many apps takes the
store up to half a millisecond."""
MOST, EACH = 512, 6
"""Open pages of a process, and of one person in it."""


class Weighty(Protocol):
    """What pages see."""

    @property
    def weight(self) -> float:
        """How many times longer than others two looks are apart, because each takes so much longer."""


class PageWatch:
    """What the pages of one session see: the newest state, the same object until something changes."""

    def __init__(self, look: Looking, state: Weighty) -> None:
        self._look = look
        self.state: Any = state
        self.ended = False
        self.pages: set[asyncio.Event] = set()
        self._task: asyncio.Future[None] | None = None

    def follow(self, pause: Callable[[], float]) -> None:
        """Looks at the store from now on. `pause`: seconds between two looks of weight 1."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._follow(pause))

    async def _follow(self, pause: Callable[[], float]) -> None:
        try:
            # A driver may swallow the cancellation, so the loop looks for itself.
            while not self.ended:
                await asyncio.sleep(pause() * self.state.weight)
                try:
                    state = await self._look(self.state)
                except SignedOut:
                    break
                except StoreUnavailable:
                    await asyncio.sleep(AWAY_SECONDS)
                    continue
                if state != self.state:
                    self.state = state
                    self._stir()
        finally:
            # Also after a defect: no page shows old figures for new ones.
            self.end()

    def end(self) -> None:
        """No page sees anything more."""
        self.ended = True
        self._stir()

    def stop(self) -> None:
        """Nobody looks any more."""
        self.ended = True
        if self._task is not None:
            self._task.cancel()

    def _stir(self) -> None:
        for page in self.pages:
            page.set()


class Watches:
    """The watches of a process by session."""

    def __init__(self, seconds: float = LOOK_SECONDS, most: int = MOST, each: int = EACH) -> None:
        self._seconds = seconds
        self._watches: dict[str, PageWatch] = {}
        self.places = ConcurrencyLimit(most, each)
        self._closed = False

    @contextmanager
    def page(self, session: str, stirred: asyncio.Event, look: Looking, state: Weighty) -> Iterator[PageWatch]:
        """The watch of a session, for a page that has just looked itself and saw `state`. `stirred` is set with each
        change, and at the end."""
        watch = self._watches.get(session)
        if watch is None or watch.ended:
            watch = self._watches[session] = PageWatch(look, state)
        watch.pages.add(stirred)
        if self._closed:
            watch.end()
        else:
            watch.follow(self.pause)
        try:
            yield watch
        finally:
            watch.pages.discard(stirred)
            if not watch.pages:
                watch.stop()
                if self._watches.get(session) is watch:
                    del self._watches[session]

    def pause(self) -> float:
        """Seconds between two looks of a session."""
        return self._seconds * max(1.0, len(self._watches) / MOST_LOOKS)

    def close(self) -> None:
        """Ends all pages: the process stops."""
        self._closed = True
        for watch in tuple(self._watches.values()):
            watch.end()
