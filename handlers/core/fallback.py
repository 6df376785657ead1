"""What answers where no route does, and static files."""

from __future__ import annotations

import logging
import os
from mimetypes import guess_type
from pathlib import Path
from typing import Any, cast

from tornado.web import HTTPError, StaticFileHandler

from handlers.core.base import EXPOSED, log_failure
from handlers.core.page import PageHandler
from handlers.core.policy import Policy
from handlers.core.server_state import ServerState
from observability.tracing import CURRENT, over, request_id
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
    """Stylesheets, scripts and icons: cached by their versioned address, never a 304. A file that lies here with `.gz`
    behind its name has an address without it, and is sent as it lies, to everybody: what asks for it is browsers.

    A file is found by its name in `files_in`, so the address of a stranger never reaches the file system."""

    # What is counted of a request.
    policy = Policy(route="static")
    aside, counted_app = False, ""

    def set_default_headers(self) -> None:
        """Nothing sniffs at them."""
        self.set_header("Server", "Latchkey")
        self.set_header("X-Content-Type-Options", "nosniff")
        # For whoever opens the file itself; a page that loads it has a policy of its own.
        self.set_header(
            "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        )
        site = cast(ServerState, self.application).site
        self.set_header("X-Request-Id", request_id(self.request, trusted=site.trusts(self.request.remote_ip)))
        if site.hsts:
            self.set_header("Strict-Transport-Security", site.hsts)

    async def _execute(self, *args: Any, **kwargs: Any) -> None:
        """Tornado's, in a task of its own."""
        CURRENT.set(self.request)
        await super()._execute(*args, **kwargs)

    def on_finish(self) -> None:
        """It is answered."""
        over(self.request)

    def parse_url_path(self, url_path: str) -> str:
        """The name, if it is that of a file. Taking apart a path of 32,000 segments would take a quarter of a
        second."""
        if url_path not in cast(ServerState, self.application).files:
            raise HTTPError(404)
        return url_path

    @classmethod
    def get_absolute_path(cls, root: str, path: str) -> str:
        """Where a file lies: under its name, or compressed."""
        plain = super().get_absolute_path(root, path)
        # Of a name that is too long for the file system, `Path.exists` would raise.
        return f"{plain}.gz" if not os.path.exists(plain) and os.path.isfile(f"{plain}.gz") else plain

    @classmethod
    def make_static_url(cls, settings: dict[str, Any], path: str, include_version: bool = True) -> str:
        """Tornado's, made once: every page names the same few files, and none changes while the server runs."""
        known: dict[tuple[str, bool], str] = settings.setdefault("static_urls", {})
        named = path, include_version
        if named not in known:
            known[named] = super().make_static_url(settings, path, include_version)
        return known[named]

    @property
    def packed(self) -> bool:
        """Whether the file lies here compressed."""
        return str(self.absolute_path).endswith(".gz") and not self.path.endswith(".gz")

    def get_content_type(self) -> str:
        """By the name in the address."""
        kind = guess_type(self.path)[0] if self.packed else None
        return kind or super().get_content_type()

    def set_extra_headers(self, path: str) -> None:
        """How the content is packed."""
        if self.packed:
            self.set_header("Content-Encoding", "gzip")

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


def files_in(folder: Path) -> frozenset[str]:
    """The names under which files in a folder are served, with `/` between their parts."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return frozenset(found | {name.removesuffix(".gz") for name in found})


def quote_nothing(record: logging.LogRecord) -> bool:
    """A filter for Tornado's log, which quotes what is malformed in a request: that may be a token."""
    if str(record.msg).startswith("Malformed HTTP message") and isinstance(record.args, tuple):
        record.msg, record.args = "Malformed HTTP message from %s", record.args[:1]
    return True
