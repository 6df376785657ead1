"""Logos and icons of a brand.

A raster file is decoded and encoded again, like every picture. An SVG goes out as it is, so it may have nothing that
runs or loads. The operator chose the file, but perhaps did not draw it.
"""

from __future__ import annotations

import re
from html import escape
from io import BytesIO
from xml.parsers import expat

from PIL import Image

from handlers.core.brand.brand import PNG, SVG, WEBP, Asset
from handlers.core.brand.colours import Palette
from handlers.core.format import initial
from handlers.core.pictures.image_upload import decoded
from store.refused import Refused

MOST_FILE = 1024 * 1024
MOST_SVG = 64 * 1024
MOST_ENCODED = 256 * 1024
LOGO = 640, 160
"""Width and height of a logo in pixels, at most. It is shown at a fifth of that, or less."""
ICON = 128
_NAMESPACE = "http://www.w3.org/2000/svg"
_RUNS = frozenset(
    ("script", "foreignobject", "iframe", "object", "embed", "audio", "video", "handler", "listener", "a", "set")
)
_LOADS = re.compile(
    r"url\(\s*+['\"]?+\s*+(?!#|data:image/(?:png|jpeg|webp|gif)[;,])|@import|javascript:", re.IGNORECASE
)
_NUMBER = r"\s*([0-9]{1,6}(?:\.[0-9]{1,9})?)"
_LENGTH = re.compile(rf"{_NUMBER}(?:px)?\s*")
_VIEW_BOX = re.compile(rf"\s*-?[0-9.]{{1,16}}[\s,]+-?[0-9.]{{1,16}}[\s,]+{_NUMBER}[\s,]+{_NUMBER}\s*")


_MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><style>'
    "rect{fill:%s}text{fill:%s}@media(prefers-color-scheme:dark){rect{fill:%s}text{fill:%s}}</style>"
    '<rect width="32" height="32" rx="9"/><text x="16" y="16" dy=".36em" text-anchor="middle" '
    'font-family="system-ui,sans-serif" font-size="19" font-weight="700">%s</text></svg>'
)


class WrongImage(ValueError):
    """A file that is no logo. The message completes "must be ..."."""


def logo_of(file: bytes) -> Asset:
    """The logo in this file. Raises WrongImage."""
    if _is_svg(file):
        return _vector(file)
    image = _raster(file, LOGO)
    lossless = _saved(image, "WEBP", lossless=True)
    content = lossless if len(lossless) <= MOST_ENCODED else _saved(image, "WEBP", quality=90)
    return Asset.of(WEBP, content, *image.size)


def icon_of(file: bytes) -> Asset:
    """The icon in this file, square. Raises WrongImage."""
    if _is_svg(file):
        return _vector(file)
    image = _raster(file, (ICON, ICON)).convert("RGBA")
    side = max(image.size)
    square = Image.new("RGBA", (side, side))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return Asset.of(PNG, _saved(square, "PNG", optimize=True), side, side)


def mark_of(name: str, light: Palette, dark: Palette) -> Asset:
    """A logo and icon for a brand that has none: the first letter of its name, on its colour."""
    colours = light.accent, light.on_accent, dark.accent, dark.on_accent
    content = _MARK % (*colours, escape(initial(name)))
    return Asset.of(SVG, content.encode(), 32, 32)


def _is_svg(file: bytes) -> bool:
    return file.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"


def _raster(file: bytes, box: tuple[int, int]) -> Image.Image:
    try:
        return decoded(file, box)
    except Refused as refused:
        raise WrongImage(f"a PNG, JPEG, WebP, GIF or SVG file: {refused.description}") from None


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def _vector(file: bytes) -> Asset:
    if len(file) > MOST_SVG:
        raise WrongImage(f"an SVG of at most {MOST_SVG} bytes")
    reading = _Reading()
    try:
        reading.read(file)
    except (expat.ExpatError, UnicodeError, LookupError) as error:
        raise WrongImage(f"an SVG that is well-formed: {error}") from None
    return Asset.of(SVG, file, *reading.size)


class _Reading:
    """Reads an SVG, and refuses what could run, load, or grow."""

    def __init__(self) -> None:
        self.size = 0, 0
        self._depth = 0
        self._style: list[str] | None = None

    def read(self, file: bytes) -> None:
        """Raises WrongImage, ExpatError."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _no_doctype
        parser.ProcessingInstructionHandler = _no_instruction
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.Parse(file, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, name = tag.rpartition(" ")
        name = name.lower()
        if not self._depth:
            if (namespace, name) != (_NAMESPACE, "svg"):
                raise WrongImage(f"an SVG: its outermost element is svg, in the namespace {_NAMESPACE}")
            self.size = _size(attributes)
        self._depth += 1
        if name in _RUNS:
            raise WrongImage(f"an SVG that runs and loads nothing: it has an element <{name}>")
        for full, value in attributes.items():
            attribute = full.rpartition(" ")[2].lower()
            elsewhere = attribute in ("href", "src") and not value.startswith(("#", "data:image/"))
            inner = attribute in ("href", "src") and value.lower().startswith("data:image/svg")
            # An animation could set the attribute later.
            named = attribute == "attributename" and value.lower().rpartition(":")[2] in ("href", "src", "style")
            hides = attribute == "style" and "\\" in value
            if attribute.startswith("on") or elsewhere or inner or named or hides or _LOADS.search(value):
                raise WrongImage(f"an SVG that runs and loads nothing: <{name}> has {attribute}={value[:60]!r}")
        self._style = [] if name == "style" else self._style

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._style is not None:
            if "\\" in (text := "".join(self._style)) or _LOADS.search(text):
                raise WrongImage("an SVG that runs and loads nothing: its <style> loads something, or has escapes")
            self._style = None

    def _text(self, text: str) -> None:
        if self._style is not None:
            self._style.append(text)


def _no_doctype(*_: object) -> None:
    raise WrongImage("an SVG without a DOCTYPE: remove that line")


def _no_instruction(target: str, _: str) -> None:
    raise WrongImage(f"an SVG that runs and loads nothing: it has a processing instruction {target!r}")


def _size(attributes: dict[str, str]) -> tuple[int, int]:
    """The width and height of an SVG, in thousandths: only their ratio counts."""
    box = _VIEW_BOX.fullmatch(attributes.get("viewBox", ""))
    width, height = (_LENGTH.fullmatch(attributes.get(name, "")) for name in ("width", "height"))
    texts = box.groups() if box else (width[1], height[1]) if width and height else ("0", "0")
    wide, high = (round(1000 * float(text)) for text in texts)
    if wide <= 0 or high <= 0:
        raise WrongImage('an SVG with a size: give its element svg a viewBox such as "0 0 120 40"')
    return wide, high
