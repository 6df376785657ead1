"""GET /healthz and /readyz."""

from __future__ import annotations

from handlers.base import BaseHandler


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
        """200, or 503 when the store cannot be reached."""
        await self.store.ping()
        self.write_json({"status": "ok"})
