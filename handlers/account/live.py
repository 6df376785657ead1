"""/account/apps/live: what connected apps do and spend, as it happens (server-sent events)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import orjson
from tornado.iostream import StreamClosedError

from handlers.core.page import PageHandler
from handlers.core.words.budgets import FIELD, bar_share
from handlers.core.words.wording import Wording
from store.oauth.grants import Doings, Watched, WatchedApp
from store.phrases import Phrase, plural

EVENTS = "text/event-stream"
BREATH = 15.0
"""Seconds without news after which a proxy and the browser get a sign of life."""
SLOW = 30.0
"""Seconds that a reader may take for an event. Then the connection is cut; a page that still wants news returns."""
WatchedApps = Sequence[WatchedApp]


class LiveAppsHandler(PageHandler):
    """The stream of one page."""

    gone = False
    stirred: asyncio.Event | None = None

    def wants_json(self) -> bool:
        """True: a script reads the errors."""
        return True

    async def get(self) -> None:
        """Sends all apps, and from then on those that change, until the session ends or the page is left."""
        session = self.require_session()

        async def look(before: Watched | None) -> Watched:
            return await self.store.grants.watch(session, before)

        with self.site.watches.places.place(session.user):
            # Each page looks itself at first: a session that has ended sees nothing, whatever other pages still see.
            state = await look(None)
            self.set_header("Content-Type", EVENTS)
            self.set_header("Cache-Control", "no-store")
            self.set_header("X-Accel-Buffering", "no")
            if self.request.method == "HEAD":
                return
            self.stirred = asyncio.Event()
            self.step_aside()
            page = self.site.watches.page(session.session_id, self.stirred, look, state)
            with page as watch, suppress(StreamClosedError):
                wording, sent = self.wording(state.preferences), None
                while not (watch.ended or self.gone):
                    # The state keeps its identity while nothing changes.
                    if watch.state is not sent:
                        piece = event_of(watch.state.apps, sent.apps if sent else None, wording)
                        sent = watch.state
                    else:
                        piece = b": nothing new\n\n"
                    await self.send(piece)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.stirred.wait(), BREATH)
                    self.stirred.clear()
                if not self.gone:
                    await self.send(b"event: end\ndata: {}\n\n")

    async def send(self, piece: bytes) -> None:
        """Sends a piece. Raises StreamClosedError, also for a reader that is too slow."""
        self.write(piece)
        try:
            await asyncio.wait_for(asyncio.ensure_future(self.flush()), SLOW)
        except TimeoutError:
            cast(Any, self.request.connection).stream.close()
            raise StreamClosedError from None

    def on_connection_close(self) -> None:
        """The page was left."""
        super().on_connection_close()
        self.gone = True
        if self.stirred is not None:
            self.stirred.set()


def event_of(apps: WatchedApps, before: WatchedApps | None, wording: Wording) -> bytes:
    """An event: the apps that changed, in words, and the ids of all apps if these are others."""
    known = {app.client: app for app in before or ()}
    data: dict[str, Any] = {"apps": {app.client: shown(app, wording) for app in apps if known.get(app.client) != app}}
    every = [app.client for app in apps]
    if before is None or every != [app.client for app in before]:
        data["all"] = every
    return b"event: apps\ndata: " + orjson.dumps(data) + b"\n\n"


def shown(app: WatchedApp, wording: Wording) -> dict[str, Any]:
    """What the page shows of an app."""
    budgets = {}
    for budget in app.budgets:
        share = bar_share(budget.used, budget.limit)
        budgets[FIELD + budget.type] = {
            "used": wording.total(budget.used),
            "share": share,
            "label": wording.say(Phrase("%(share)s used", share=f"{share}%")),
        }
    spent, doing = wording.total(app.spent), words_of(app.doings, wording)
    return {"paused": app.paused, "spent": spent, "doing": doing, "budgets": budgets}


def words_of(doings: Doings, wording: Wording) -> str:
    """What an app does at the moment, in a line."""
    found = []
    if doings.running:
        found.append(plural("%(count)s AI call in progress", "%(count)s AI calls in progress", doings.running))
    if doings.calls:
        found.append(plural("%(count)s AI call today", "%(count)s AI calls today", doings.calls))
    if count := doings.reads:
        found.append(plural("%(count)s read in the last minute", "%(count)s reads in the last minute", count))
    if count := doings.writes:
        found.append(plural("%(count)s change in the last minute", "%(count)s changes in the last minute", count))
    if count := doings.others:
        others = plural("%(count)s other call in the last minute", "%(count)s other calls in the last minute", count)
        found.append(others)
    return " · ".join(map(wording.say, found or [Phrase("No calls right now")]))
