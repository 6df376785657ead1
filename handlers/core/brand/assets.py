"""/brand: the logo, the icon and the stylesheets of the server's brand."""

from __future__ import annotations

from handlers.core.base import BaseHandler
from store.refused import Refused

KEEP_SECONDS = 365 * 86400


class BrandHandler(BaseHandler):
    """A file of the brand. Its address has a digest of the content, so caches may keep it."""

    def set_default_headers(self) -> None:
        """A logo opened by itself is a document of this origin, so nothing in it may run or load."""
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
        self.set_header("Content-Security-Policy", policy)

    def get(self, name: str) -> None:
        """Answers with the file; 404 if the brand has another now."""
        asset = self.site.brand.asset(name) or self.site.brand_before.asset(name)
        if asset is None:
            raise Refused("not_found")
        headers = {"Content-Type": asset.kind, "Cache-Control": f"public, max-age={KEEP_SECONDS}, immutable"}
        self.write_whole(asset.content, headers)
