"""/picture: the person's picture for apps. Its address is secret, and needs no sign-in."""

from __future__ import annotations

import hashlib
from html import escape

from handlers.core.base import BaseHandler
from store.accounts.profiles import Picture
from store.refused import Refused

KEEP_SECONDS = 30 * 86400


class PictureHandler(BaseHandler):
    """An uploaded picture, as WebP, or one drawn from initials, as SVG."""

    def set_default_headers(self) -> None:
        """A picture opened by itself is a document of this origin, so nothing in it may run or load."""
        self.set_header("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")

    async def get(self, address: str) -> None:
        """Answers with the picture; 404 if it was replaced."""
        picture = await self.store.profiles.picture(address)
        if picture is None:
            raise Refused("not_found")
        headers = {
            "Content-Type": "image/webp" if picture.image else "image/svg+xml",
            # Another picture has another address, so caches may keep this one.
            "Cache-Control": f"public, max-age={KEEP_SECONDS}, immutable",
            # Apps show it on their own pages, some of which are isolated.
            "Cross-Origin-Resource-Policy": "cross-origin",
        }
        self.write_whole(picture.image or drawn(picture), headers)


def drawn(picture: Picture) -> bytes:
    """The letters on a colour that never changes for a person, and is dark enough for white text."""
    hue = int.from_bytes(hashlib.sha256(picture.user.encode()).digest()[:2]) % 360
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 256 256" width="256" height="256">'
        f'<rect width="256" height="256" fill="hsl({hue},45%,32%)"/>'
        '<text x="128" y="128" dy=".36em" text-anchor="middle" font-family="system-ui,sans-serif" font-size="104" '
        f'font-weight="600" fill="#fff">{escape(picture.letters)}</text></svg>'
    ).encode()
