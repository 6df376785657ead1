"""Reads the file of a brand, and checks all of it: a server starts with a brand that works, or not at all."""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from handlers.core.brand import images
from handlers.core.brand.brand import CSS, PRODUCT, Asset, Brand
from handlers.core.brand.colours import (
    COMFORTABLE,
    DARK,
    LIGHT,
    OUR_COLOURS,
    Colour,
    Palette,
    Scheme,
    check,
    palette,
    parse,
    readable,
)
from handlers.core.brand.overrides import WrongTemplates, check_private, read_overrides, templates_of

T = TypeVar("T")
MOST_FILE = 64 * 1024
MOST_CSS = 128 * 1024
MOST_NAME, MOST_FOOTER, MOST_ADDRESS = 60, 300, 2000
"""Those of static/latchkey.css."""
_WEB = re.compile(r"https?://[!#-;=?-\[\]-~]+")
_HERE = re.compile(r"/(?!/)[!#-;=?-\[\]-~]*")
_SCHEMES = ":root {%s}\n@media screen and (prefers-color-scheme: dark) { :root {%s} }\n"
_MAIL = re.compile(r"mailto:[^\s\"<>@\\]+@[^\s\"<>@\\]+")


class BrandError(ValueError):
    """A file of a brand that cannot be used. The message is one line, and names the file and the key."""


def load_brand(file: Path | None) -> Brand:
    """The brand of this TOML file, or our own without one. Raises BrandError."""
    return _File(file).brand() if file else Brand()


class _File:
    """The table in a file of a brand, and how its values are read."""

    def __init__(self, path: Path) -> None:
        self._path, self._folder = path, path.parent
        content = self._read("brand", path, MOST_FILE)
        try:
            self._table = tomllib.loads(content.decode())
        except UnicodeDecodeError:
            raise BrandError(f"brand is not UTF-8: {path}") from None
        except (ValueError, RecursionError) as error:
            raise BrandError(f"brand is not TOML: {path}: {error}") from None
        for key in self._table:
            if key not in KEYS:
                near = difflib.get_close_matches(key, KEYS, 1)
                raise BrandError(f"{key!r} is no key of a brand{f', {near[0]} is' if near else ''} (from {path})")

    def brand(self) -> Brand:
        """The brand. Raises BrandError."""
        own_name = self._text("name", _name)
        name = own_name or PRODUCT
        light, dark, styles = self._colours()
        logo, icon = self._image("logo", images.logo_of), self._image("favicon", images.icon_of)
        logo_dark = self._image("logo_dark", images.logo_of)
        if logo_dark and not logo:
            raise BrandError(f"logo_dark must come with logo (from {self._path})")
        if (own_name or logo or icon) and not (logo and icon):
            # Our own mark is never next to another.
            mark = images.mark_of(name, light, dark)
            logo, icon = logo or icon or mark, icon or mark
        if css := self._path_of("css"):
            styles = *styles, Asset.of(CSS, self._checked("css", lambda: _stylesheet(self._read("css", css, MOST_CSS))))
        return Brand(
            name,
            self._text("mail_from_name", _name) or name,
            logo,
            logo_dark,
            icon,
            styles,
            self._text("terms", _address),
            self._text("privacy", _address),
            self._text("help", _address_or_mail),
            self._text("footer", _footer),
            self._templates(),
            (light, dark),
        )

    def _colours(self) -> tuple[Palette, Palette, tuple[Asset, ...]]:
        """The palettes of both schemes, and the stylesheet with them if the brand has colours."""
        ours = tuple(map(parse, OUR_COLOURS))
        light, dark = self._colour("color", LIGHT), self._colour("color_dark", DARK)
        if dark and not light:
            raise BrandError(f"color_dark must come with color (from {self._path})")
        if light and not dark:
            dark = readable(light, DARK, COMFORTABLE)
        palettes = palette(light or ours[0], LIGHT), palette(dark or ours[1], DARK)
        return *palettes, (Asset.of(CSS, stylesheet(*palettes)),) if light else ()

    def _colour(self, key: str, scheme: Scheme) -> Colour | None:
        def accept(text: str) -> Colour:
            colour = parse(text)
            check(colour, scheme)
            return colour

        return self._checked(key, lambda: accept(self._string(key))) if key in self._table else None

    def _templates(self) -> dict[str, str]:
        folder = self._path_of("templates")
        if folder is None:
            return {}

        def read(folder: Path) -> dict[str, str]:
            # Whoever can write this file can name another folder.
            check_private(self._path)
            found = read_overrides(folder)
            templates_of(found).check()
            return found

        try:
            return read(folder)
        except WrongTemplates as error:
            raise self._wrong("templates", error) from None
        except OSError as error:
            raise BrandError(
                f"templates cannot be read: {error.filename}: {error.strerror} (from {self._path})"
            ) from None

    def _image(self, key: str, made: Callable[[bytes], Asset]) -> Asset | None:
        path = self._path_of(key)
        if path is None:
            return None
        return self._checked(key, lambda: made(self._read(key, path, images.MOST_FILE)))

    def _text(self, key: str, parsed: Callable[[str], str]) -> str:
        return self._checked(key, lambda: parsed(self._string(key))) if key in self._table else ""

    def _path_of(self, key: str) -> Path | None:
        if key not in self._table:
            return None
        text = self._string(key)
        if not text or "\0" in text:
            raise BrandError(f"{key} must be a path, relative to the file (from {self._path})")
        return self._folder / text

    def _string(self, key: str) -> str:
        value: Any = self._table[key]
        if not isinstance(value, str):
            raise BrandError(f"{key} must be a text in quotes (from {self._path})")
        return value

    def _read(self, key: str, path: Path, most: int) -> bytes:
        """The bytes of a file. Raises BrandError for one that is larger, and for a device or a pipe, which might never
        end."""
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise BrandError(f"{key} must be a file: {path} is none (from {self._path})")
            with path.open("rb") as file:
                content = file.read(most + 1)
        except OSError as error:
            raise BrandError(f"{key} cannot be read: {path}: {error.strerror} (from {self._path})") from None
        if len(content) > most:
            raise BrandError(f"{key} must be a file of at most {most} bytes: {path} is larger (from {self._path})")
        return content

    def _checked(self, key: str, parsed: Callable[[], T]) -> T:
        try:
            return parsed()
        except BrandError:
            raise
        except ValueError as error:
            raise self._wrong(key, error) from None

    def _wrong(self, key: str, error: Exception) -> BrandError:
        value = str(self._table[key])
        shown = value if len(value) <= 80 else value[:80] + "..."
        return BrandError(f"{key} must be {error} ({shown!r} from {self._path})")


def stylesheet(light: Palette, dark: Palette) -> bytes:
    """The variables of static/latchkey.css that are a brand's."""
    return (_SCHEMES % (_variables(light), _variables(dark))).encode()


def _variables(one: Palette) -> str:
    named = {"": one.accent, "-strong": one.strong, "-wash": one.wash}
    return "".join(f" --accent{name}: {value};" for name, value in named.items()) + f" --on-accent: {one.on_accent}; "


def _name(text: str) -> str:
    return _line(text, MOST_NAME)


def _footer(text: str) -> str:
    return _line(text, MOST_FOOTER)


def _line(text: str, most: int) -> str:
    # Line breaks and marks of direction are not printable.
    if not 1 <= len(text) <= most or not text.isprintable() or text != text.strip():
        raise ValueError(f"1 to {most} characters that can be printed, without blanks at the ends")
    return text


def _address(text: str) -> str:
    if len(text) > MOST_ADDRESS or not (_WEB.fullmatch(text) or _HERE.fullmatch(text)):
        raise ValueError("an https:// address, or a path of this host such as /terms, in ASCII")
    return text


def _address_or_mail(text: str) -> str:
    return text if len(text) <= MOST_ADDRESS and _MAIL.fullmatch(text) else _address(text)


def _stylesheet(content: bytes) -> bytes:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("a stylesheet in UTF-8") from None
    if "\0" in text:
        raise ValueError("a stylesheet: this file has zero bytes")
    return text.encode()


KEYS = (
    *("name", "logo", "logo_dark", "favicon", "color", "color_dark", "terms", "privacy", "help", "footer"),
    *("mail_from_name", "css", "templates"),
)
