"""GET /healthz and /readyz."""

from __future__ import annotations

from handlers.core.base import BaseHandler
from handlers.core.concurrency import later
from store.refused import Refused


class HealthHandler(BaseHandler):
    """Whether the process answers."""

    vital = True

    def get(self) -> None:
        """200 while the event loop runs."""
        self.write_json({"status": "ok"})


class ReadyHandler(BaseHandler):
    """Whether the process and its store answer."""

    vital = True

    async def get(self) -> None:
        """200, or 503 while the store is unreachable and once the server is stopping, so that load balancers send no
        more requests."""
        if self.application.draining:
            raise Refused("temporarily_unavailable", "The server is about to stop.", retry_after=later())
        await self.store.ping()
        self.write_json({"status": "ok"})
