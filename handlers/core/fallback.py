"""Answers for unknown paths, and static files."""

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
from runtime.http.tornado_private import TaskHandler
from store.refused import Refused

FOR_PROGRAMS = ("/api/", "/.well-known/")
"""The beginnings of paths that programs ask for."""


class FallbackHandler(PageHandler):
    """Answers 404: JSON with CORS for paths of programs, a page elsewhere."""

    def set_default_headers(self) -> None:
        """Adds CORS to errors of the API too."""
        super().set_default_headers()
        if self.request.path.startswith(FOR_PROGRAMS):
            self.set_header("Access-Control-Allow-Origin", "*")
            self.set_header("Access-Control-Expose-Headers", EXPOSED)

    def prepare(self) -> None:
        """Raises Refused("not_found")."""
        raise Refused("not_found")

    def wants_json(self) -> bool:
        """Always, for paths of programs."""
        return self.request.path.startswith(FOR_PROGRAMS) or super().wants_json()


class StaticHandler(TaskHandler, StaticFileHandler):
    """Stylesheets, scripts and icons: cached by their versioned address, never a 304. A file that lies here with `.gz`
    behind its name has an address without it, and is sent as it lies, to everybody: what asks for it is browsers.

    A file is looked up by its name in `files_in`, so a path from outside never reaches the file system."""

    # Attributes that logging and metrics read.
    policy = Policy(route="static")
    aside, counted_app, counted_api = False, "", ""

    def set_default_headers(self) -> None:
        """Forbids content sniffing."""
        self.set_header("Server", "Latchkey")
        self.set_header("X-Content-Type-Options", "nosniff")
        # For people who open the file directly. A page that loads it has its own policy.
        self.set_header(
            "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        )
        site = cast(ServerState, self.application).site
        self.set_header("X-Request-Id", request_id(self.request, trusted=site.trusts(self.request.remote_ip)))
        if site.hsts:
            self.set_header("Strict-Transport-Security", site.hsts)

    def task_begins(self) -> None:
        """What is logged from here on belongs to this request."""
        CURRENT.set(self.request)

    def on_finish(self) -> None:
        """Ends the request for the drain."""
        over(self.request)

    def parse_url_path(self, url_path: str) -> str:
        """The name, if it is a file's. Splitting a path of 32,000 segments would take a quarter of a second."""
        if url_path not in cast(ServerState, self.application).files:
            raise HTTPError(404)
        return url_path

    @classmethod
    def get_absolute_path(cls, root: str, path: str) -> str:
        """The file's path: its name, or the name of its compressed form."""
        plain = super().get_absolute_path(root, path)
        # `Path.exists` would raise for a name that is too long for the file system.
        return f"{plain}.gz" if not os.path.exists(plain) and os.path.isfile(f"{plain}.gz") else plain

    @classmethod
    def make_static_url(cls, settings: dict[str, Any], path: str, include_version: bool = True) -> str:
        """Caches Tornado's result: every page names the same few files, and none changes while the server runs."""
        known: dict[tuple[str, bool], str] = settings.setdefault("static_urls", {})
        named = path, include_version
        if named not in known:
            known[named] = super().make_static_url(settings, path, include_version)
        return known[named]

    @property
    def packed(self) -> bool:
        """Whether the file is stored compressed."""
        return str(self.absolute_path).endswith(".gz") and not self.path.endswith(".gz")

    def get_content_type(self) -> str:
        """The type that belongs to the name in the address."""
        kind = guess_type(self.path)[0] if self.packed else None
        return kind or super().get_content_type()

    def set_extra_headers(self, path: str) -> None:
        """Names the content's compression."""
        if self.packed:
            self.set_header("Content-Encoding", "gzip")

    def check_xsrf_cookie(self) -> None:
        """Does nothing: these requests change nothing."""

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """See `log_failure`."""
        log_failure(self.request, (typ, value, tb))

    def should_return_304(self) -> bool:
        """No conditional GET in v1 (SPEC 9)."""
        return False

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Plain text: only browsers read these errors."""
        self.set_header("Content-Type", "text/plain")
        if status_code == 405:
            self.set_header("Allow", "GET, HEAD")
        self.finish(f"{status_code}\n")


def files_in(folder: Path) -> frozenset[str]:
    """The names of the files in the folder, with `/` between their parts."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return frozenset(found | {name.removesuffix(".gz") for name in found})


def quote_nothing(record: logging.LogRecord) -> bool:
    """Filters Tornado's log, which quotes malformed parts of a request: they may be tokens."""
    if str(record.msg).startswith("Malformed HTTP message") and isinstance(record.args, tuple):
        record.msg, record.args = "Malformed HTTP message from %s", record.args[:1]
    return True
