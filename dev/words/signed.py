"""A shipped language for tests: invisible signs in its messages name the English message of each.

The signs are Unicode's tag characters: they have no width, and lines break as without them. So pages look as readers of
the language see them, and a test written in English words can walk through them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from gettext import GNUTranslations
from io import BytesIO

from babel.messages import Catalog

from dev.words.catalogue import forms_of, mo_of, po_path, read, texts_of
from handlers.core.words.languages import Language, Languages, together
from handlers.core.words.table import LanguageRow

_TAGS = 0xE0000
_SIGN = re.compile("\U000e003c([\U000e0020-\U000e003b\U000e003d\U000e003f-\U000e007e]*)\U000e003d|\U000e003e")
_PIECE = re.compile(r"(<[^>]*>|%\([a-z_]+\)s)")
_TAG = re.compile(r"<(/?)([a-z]+)[^>]*>")
_VALUE = re.compile(r"%\(([a-z_]+)\)s")


def _tags(text: str) -> str:
    return "".join(chr(_TAGS + ord(one)) for one in text)


def _signed(name: str, text: str) -> str:
    return f"{_tags(f'<{name}=')}{text}{_tags('>')}"


def signed(number: int, text: str) -> str:
    """A translation with the signs of its message: around the whole, around each value that is seen, and within each
    element."""
    out, counted = "", dict[str, int]()
    for piece in _PIECE.split(text):
        if value := _VALUE.fullmatch(piece):
            out += _signed(value[1], piece)
        elif not (tag := _TAG.fullmatch(piece)):
            out += piece
        elif tag[1]:
            out += _tags(">") + piece
        else:
            counted[tag[2]] = counted.get(tag[2], -1) + 1
            if tag[2] == "br":
                out += piece
                continue
            out += piece + _tags(f"<{number}.{tag[2]}.{counted[tag[2]]}=")
    return _signed(str(number), out)


@dataclass
class _Open:
    """A signed part that is being read: its sign, its text so far, and the values in it."""

    sign: str
    text: str = ""
    values: dict[str, str] = field(default_factory=dict)


class Signed:
    """A language with signs, and the way back to English."""

    def __init__(self, row: LanguageRow) -> None:
        catalogue = read(po_path(row))
        self._english: dict[str, tuple[str, str]] = {}
        for number, message in enumerate(one for one in catalogue if one.id):
            one, many = texts_of(message)
            self._english[str(number)] = (one, many or one)
            new = tuple(signed(number, together(form)) for form in forms_of(message))
            message.string = new if many else new[0]
        self.languages = Languages([Language(row, _loaded(catalogue))])

    def english(self, text: str) -> str:
        """A text of a page in this language, in English again. Dates and numbers stay as they are."""
        parts, at = [_Open("")], 0
        for sign in _SIGN.finditer(text):
            parts[-1].text += text[at : sign.start()]
            at = sign.end()
            if sign[0] != _tags(">"):
                parts.append(_Open("".join(chr(ord(one) - _TAGS) for one in sign[1])))
            elif len(parts) > 1:
                self._close(parts)
        parts[-1].text += text[at:]
        while len(parts) > 1:  # a text that was cut
            self._close(parts)
        return parts[0].text

    def _close(self, parts: list[_Open]) -> None:
        done = parts.pop()
        around = parts[-1]
        if not done.sign[0].isdigit():
            around.values[done.sign] = done.text
            around.text += done.text
            return
        number, _, element = done.sign.partition(".")
        one, many = self._english[number]
        around.values |= done.values if element and around.sign else {}
        around.text += _filled(one if done.values.get("count") == "1" else many, element, done.values)


def _loaded(catalogue: Catalog) -> GNUTranslations:
    return GNUTranslations(BytesIO(mo_of(catalogue)))


def _filled(english: str, element: str, values: Mapping[str, str]) -> str:
    """The message, or the text of one element of it such as `a.0`, without tags and with its values."""
    if element:
        name, _, place = element.partition(".")
        inner = re.findall(rf"<{name}\b[^>]*>(.*?)</{name}>", english, re.DOTALL)
        english = inner[int(place)] if int(place) < len(inner) else english
    text = re.sub("<br[^>]*>", "\n", english)
    text = _TAG.sub("", text)
    return _VALUE.sub(lambda value: values.get(value[1], ""), text).replace("%%", "%")
