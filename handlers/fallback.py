"""What answers where no route does, static files, and the access log."""

from __future__ import annotations

import logging
from typing import Any

from tornado.web import RequestHandler, StaticFileHandler

from handlers.base import EXPOSED, request_id, shown
from handlers.page import PageHandler
from store.refused import Refused

log = logging.getLogger("latchkey.access")


class FallbackHandler(PageHandler):
    """404: as JSON with CORS below /api/, else as a page."""

    def set_default_headers(self) -> None:
        """CORS on errors of the API too."""
        super().set_default_headers()
        if self.request.path.startswith("/api/"):
            self.set_header("Access-Control-Allow-Origin", "*")
            self.set_header("Access-Control-Expose-Headers", EXPOSED)

    def prepare(self) -> None:
        """Raises Refused("not_found")."""
        raise Refused("not_found")

    def wants_json(self) -> bool:
        """Below /api/ always."""
        return self.request.path.startswith("/api/") or super().wants_json()


class StaticHandler(StaticFileHandler):
    """The stylesheet and the icons: cached by their versioned address, never a 304."""

    def set_extra_headers(self, path: str) -> None:
        """Nothing sniffs at them."""
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Request-Id", request_id(self.request))

    def should_return_304(self) -> bool:
        """No conditional GET in v1 (SPEC 9)."""
        return False

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Plain text: nobody reads these but a browser."""
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}\n")


def log_request(handler: RequestHandler) -> None:
    """One line a request: method, path without its query, status, time in ms, id. Nothing in it is secret."""
    status = handler.get_status()
    level = logging.WARNING if status >= 500 else logging.INFO
    request = handler.request
    log.log(
        level,
        "%s %s %d %.1fms [%s]",
        request.method,
        shown(request.path),
        status,
        1000 * request.request_time(),
        request_id(request),
    )
