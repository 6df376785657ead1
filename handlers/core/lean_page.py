"""A page without Tornado's parsing, for an address that mostly redirects."""

from __future__ import annotations

from typing import Any

from tornado.httputil import HTTPServerRequest

from handlers.core.page import PageHandler
from handlers.core.server_state import ServerState
from runtime.http.tornado_private import LeanHandler, make_ui


class LeanPage(LeanHandler, PageHandler):
    """A page that reads its own parameters. Nothing checks an XSRF token, so its POST must need none."""

    lean = True

    def __init__(self, application: ServerState, request: HTTPServerRequest, **facts: Any) -> None:
        self.begin_request(application, request)  # in place of Tornado's own
        self.initialize(**facts)

    def get_template_namespace(self) -> dict[str, Any]:
        """As every page; most answers render nothing."""
        make_ui(self)
        return super().get_template_namespace()
