"""GET /docs: the HTTP interface for people. A viewer in `static/vendor` shows /openapi.json."""

from __future__ import annotations

from handlers.core.page import PageHandler


class DocsHandler(PageHandler):
    """The page. It is the same for everybody and needs no store."""

    uses_scripts = True

    def get(self) -> None:
        """Shows the page."""
        self.render(
            "base/docs.html",
            title="The HTTP interface",
            base_url=self.site.base_url,
            session_here=self.session() is not None,
        )
