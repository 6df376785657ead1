"""Mails in the dress of the brand: HTML that is made of the text, and pictures that travel with it.

A mail loads nothing from anywhere, so nobody learns that or where it was opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple

from PIL import Image

from handlers.core.brand.brand import SVG, Asset, Brand
from handlers.core.brand.overrides import Templates
from handlers.core.format import initial
from handlers.core.words.languages import Language
from handlers.core.words.wording import Wording, names_of
from outbound.mail.mail import HtmlBody, InlineImage, Mail
from outbound.mail.message import BULLET
from store.errors import StoreUnavailable

LAYOUT = "mail/layout.html"
BRAND, APP = "brand@latchkey", "app@latchkey"
"""The ids of the pictures in a mail."""
ROOM = 8192
"""Bytes. The longest mail that anybody may ask for takes half of that."""
FACE = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
APP_SIDE = 96
"""Width and height of an app's logo in a mail, in pixels; shown at half of that."""

ReadLogo = Callable[[str, str], Awaitable[bytes]]


class MailPart(NamedTuple):
    """A paragraph. `kind`: "text", "list" or "address"; `lines`: its lines, the items of the list, or the address."""

    kind: str
    lines: tuple[str, ...]


def parts_of(text: str, base_url: str) -> list[MailPart]:
    """The paragraphs of a mail. Only a line that is an address of this server becomes a button, so no value in a text
    can make one."""
    found = []
    for paragraph in text.strip("\n").split("\n\n"):
        lines = tuple(paragraph.split("\n"))
        if len(lines) == 1 and lines[0].startswith(f"{base_url}/") and not any(map(str.isspace, lines[0])):
            found.append(MailPart("address", lines))
        elif all(line.startswith(BULLET) for line in lines):
            found.append(MailPart("list", tuple(line.removeprefix(BULLET) for line in lines)))
        else:
            found.append(MailPart("text", lines))
    return found


@dataclass(frozen=True, slots=True)
class MailDress:
    """Makes mails of one server and language. `read_logo` reads the logo of an app."""

    templates: Templates
    brand: Brand
    base_url: str
    language: Language
    read_logo: ReadLogo

    async def body(self, mail: Mail) -> HtmlBody:
        """The mail as HTML. Raises the errors of the brand's templates."""
        brand, images = self.brand, []
        if brand.logo and brand.logo.kind != SVG:  # mail programs show no SVG
            images.append(InlineImage(BRAND, "png", brand_png(brand.logo)))
        if mail.logo and (logo := await self._app_logo(*mail.logo)):
            images.append(InlineImage(APP, "png", logo))
        there = {image.cid for image in images}
        names: dict[str, Any] = {
            **names_of(Wording(self.language)),
            "subject": mail.subject,
            "parts": parts_of(mail.text, self.base_url),
            # A mail with a link of its own asks for what its subject says.
            "label": mail.subject if mail.link and not mail.undo else "",
            "our_brand": brand,
            "product": brand.name,
            "letter": initial(brand.name),
            "base_url": self.base_url,
            "brand_cid": BRAND if BRAND in there else "",
            "app_cid": APP if APP in there else "",
            "light": brand.palettes[0],
            "dark": brand.palettes[1],
            "face": FACE,
            "absolute": self._absolute,
        }
        page = self.templates.pages.load(LAYOUT).generate(**names).decode()
        if mail.network:
            # Anybody may ask for these, and mail servers take longer for more: the size would tell which one it is.
            bare = self.templates.pages.load(LAYOUT).generate(**names | {"subject": "", "parts": []}).decode()
            page = padded(page, on_the_wire(bare))
        return HtmlBody(page, tuple(images))

    def _absolute(self, address: str) -> str:
        """An address of the brand's. It may be a path of this host."""
        return f"{self.base_url}{address}" if address.startswith("/") else address

    async def _app_logo(self, client_id: str, logo: str) -> bytes:
        """The app's logo as PNG; empty if it is gone, or if the store is away."""
        image = b""
        with suppress(StoreUnavailable):
            image = await self.read_logo(client_id, logo)
        return await asyncio.to_thread(_png, image, APP_SIDE) if image else b""


def padded(page: str, bare: int) -> str:
    """The page with blank space, so that it takes as much as its layout (`bare`, in bytes) and a multiple of ROOM."""
    lines, rest = divmod((bare - on_the_wire(page)) % ROOM, 80)
    return page + lines * (78 * " " + "\n") + rest * " "


def on_the_wire(page: str) -> int:
    """The bytes of a page in a mail, where a line ends with two."""
    return len(page.encode()) + page.count("\n")


@lru_cache(maxsize=4)
def brand_png(logo: Asset) -> bytes:
    """The logo of a brand as PNG, which every mail program shows."""
    return _png(logo.content, max(logo.width, logo.height))


def _png(content: bytes, most: int) -> bytes:
    with Image.open(BytesIO(content), formats=("WEBP", "PNG")) as image:
        image.thumbnail((most, most))
        out = BytesIO()
        image.save(out, "PNG", optimize=True)
    return out.getvalue()
