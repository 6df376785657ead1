"""GET /healthz and /readyz."""

from __future__ import annotations

from handlers.core.base import BaseHandler
from handlers.core.concurrency import later
from store.refused import Refused


class HealthHandler(BaseHandler):
    """The process answers."""

    vital = True

    def get(self) -> None:
        """200 as long as the event loop turns."""
        self.write_json({"status": "ok"})


class ReadyHandler(BaseHandler):
    """The process and its store answer."""

    vital = True

    async def get(self) -> None:
        """200, or 503 when the store cannot be reached, and from the moment on when the server is told to stop, so that
        balancers send nobody here any more."""
        if self.application.draining:
            raise Refused("temporarily_unavailable", "The server is about to stop.", retry_after=later())
        await self.store.ping()
        self.write_json({"status": "ok"})
