"""What answers where no route does, and static files."""

from __future__ import annotations

import logging
from typing import Any

from tornado.web import HTTPError, StaticFileHandler

from handlers.base import EXPOSED, log_failure, request_id
from handlers.page import PageHandler
from store.refused import Refused


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

    def set_default_headers(self) -> None:
        """Nothing sniffs at them."""
        self.set_header("Server", "Latchkey")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Request-Id", request_id(self.request))

    def parse_url_path(self, url_path: str) -> str:
        """A name that no file can have is not found, where the file system would raise."""
        if "\0" in url_path:
            raise HTTPError(404)
        return super().parse_url_path(url_path)

    def check_xsrf_cookie(self) -> None:
        """Nothing here changes anything."""

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """As `log_failure`."""
        log_failure(self.request, (typ, value, tb))

    def should_return_304(self) -> bool:
        """No conditional GET in v1 (SPEC 9)."""
        return False

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Plain text: nobody reads these but a browser."""
        self.set_header("Content-Type", "text/plain")
        if status_code == 405:
            self.set_header("Allow", "GET, HEAD")
        self.finish(f"{status_code}\n")


def quote_nothing(record: logging.LogRecord) -> bool:
    """A filter for Tornado's log, which quotes what is malformed in a request: that may be a token."""
    if str(record.msg).startswith("Malformed HTTP message") and isinstance(record.args, tuple):
        record.msg, record.args = "Malformed HTTP message from %s", record.args[:1]
    return True
