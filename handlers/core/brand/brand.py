"""The name and the dress of a server: what `--brand` changes. Without it, they are our own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from handlers.core.brand.colours import OUR_PALETTES, Palette

PRODUCT = "Latchkey"
PREFIX = "/brand/"
SVG, PNG, WEBP, CSS = "image/svg+xml", "image/png", "image/webp", "text/css; charset=UTF-8"
_ENDINGS = {SVG: "svg", PNG: "png", WEBP: "webp", CSS: "css"}
LOGO = 192, 32
"""Width and height of a logo on pages, at most."""
WIDE = 2
"""A logo that is more than this many times as wide as high is a word mark, which has the name in it."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load. `kind`: its media type; `name`: the last part of its address, which has a digest of the
    content; `width` and `height`: those of a picture, in pixels."""

    kind: str
    content: bytes
    name: str
    width: int = 0
    height: int = 0

    @classmethod
    def of(cls, kind: str, content: bytes, width: int = 0, height: int = 0) -> Asset:
        """The asset of this content."""
        return cls(kind, content, f"{hashlib.sha256(content).hexdigest()[:32]}.{_ENDINGS[kind]}", width, height)

    @property
    def address(self) -> str:
        """The path at which it is served."""
        return PREFIX + self.name

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height of a logo on pages, in CSS pixels."""
        share = min(LOGO[0] / self.width, LOGO[1] / self.height)
        return max(1, round(self.width * share)), max(1, round(self.height * share))

    @property
    def wide(self) -> bool:
        """Whether it is a word mark."""
        return self.width > WIDE * self.height


@dataclass(frozen=True, slots=True)
class Brand:
    """A brand. `styles`: stylesheets that pages load after ours; `terms`, `privacy`, `help`: addresses that the foot of
    every page links to; `footer`: its text; `palettes`: the colours of both schemes, for mails; `sender`: the name that
    mails come from; `templates`: the sources of
    templates that replace ours, or that those include, by their paths."""

    name: str = PRODUCT
    sender: str = PRODUCT
    logo: Asset | None = None
    logo_dark: Asset | None = None
    favicon: Asset | None = None
    styles: tuple[Asset, ...] = ()
    terms: str = ""
    privacy: str = ""
    help: str = ""
    footer: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)
    palettes: tuple[Palette, Palette] = OUR_PALETTES

    def asset(self, name: str) -> Asset | None:
        """The asset whose address ends in this name, or None."""
        return next((one for one in self._assets() if one.name == name), None)

    def _assets(self) -> tuple[Asset, ...]:
        return (*self.styles, *filter(None, (self.logo, self.logo_dark, self.favicon)))
