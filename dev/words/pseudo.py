"""Languages for tests, made from the English catalogue: one of longer words, one from right to left, and one that is
both.

A reader of English can read both. Every message is in brackets, so a text without them was not in the catalogue. The
letters change one for one, so a part of an English message is found by changing that part alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from gettext import GNUTranslations
from io import BytesIO

from dev.words.catalogue import catalogue_of, mo_of, po_path, read, texts_of
from dev.words.sources import Found
from handlers.core.words.languages import Language, Languages
from handlers.core.words.table import ENGLISH, LanguageRow

LONGER = LanguageRow("en_XA", "en-XA", "Longer words", "en_GB", "en_US")
"""Letters with marks, and messages that are two fifths longer, as German ones may be."""
BACKWARDS = LanguageRow("ar_XB", "ar-XB", "Right to left", "he", "he")
"""The same letters, in a script from right to left."""
BOTH = LanguageRow("ar_XC", "ar-XC", "Longer words from right to left", "he", "he")
"""The longer words, in a script from right to left."""
OPENING, CLOSING = "⟦", "⟧"

_LETTERS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "ÅƁÇÐÉƑĜĤÎĴĶĻṀÑÖÞǪŔŠŢÛṼŴẊÝŽåƀçđéƒĝĥîĵķļɱñöþǫŕšţûṽŵẋýž"
)
_MARKS = re.compile(f"[{OPENING}{CLOSING}\u2066-\u2069\u202a-\u202e]")
_FILLER = "löñĝ ŵöŕđš åŕé ĥéŕé "
_KEPT = re.compile(r"(<[^>]*>|%\([a-z_]+\)s)")
# Letters between these two are written from right to left, whatever their script (UAX 9).
_BACK = {mark: letter for letter, mark in _LETTERS.items()}
_MESSAGE = re.compile(f"{OPENING}[^{OPENING}{CLOSING}]*{CLOSING}")
_FROM_RIGHT, _AGAIN = "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{POP DIRECTIONAL FORMATTING}"


def accented(text: str) -> str:
    """The text with marks on its letters; tags and placeholders stay."""
    return "".join(part if _KEPT.fullmatch(part) else part.translate(_LETTERS) for part in _KEPT.split(text))


def plain(text: str) -> str:
    """A text of a page in one of these languages, with its messages in English again."""
    return _MARKS.sub("", text).translate(_BACK)


def bare(text: str) -> str:
    """What of a page's text no message has, not even as a value."""
    while (shorter := _MESSAGE.sub("", text)) != text:
        text = shorter
    return _MARKS.sub("", text)


def longer(text: str) -> str:
    """A message in the language of longer words."""
    return f"{OPENING}{accented(text)} {_filler(text)}{CLOSING}"


def backwards(text: str) -> str:
    """A message in the language from right to left."""
    return f"{OPENING}{_turned(text)}{CLOSING}"


def longer_backwards(text: str) -> str:
    """A message in the language of longer words from right to left."""
    return f"{OPENING}{_turned(f'{text} {_filler(text)}')}{CLOSING}"


def _filler(text: str) -> str:
    size = len(_KEPT.sub("", text)) * 2 // 5
    return (_FILLER * (size // len(_FILLER) + 1))[:size].strip()


def _turned(text: str) -> str:
    return "".join(
        part if _KEPT.fullmatch(part) or not part else f"{_FROM_RIGHT}{part.translate(_LETTERS)}{_AGAIN}"
        for part in _KEPT.split(text)
    )


@cache
def language(row: LanguageRow, say: Callable[[str], str]) -> Language:
    """A language whose messages are what `say` makes of the English ones."""
    catalogue = catalogue_of(_messages(), row)
    for message in catalogue:
        if message.id:
            one, many = texts_of(message)
            forms = catalogue.num_plurals
            message.string = (say(one), *[say(many)] * (forms - 1)) if many else say(one)
    return Language(row, GNUTranslations(BytesIO(mo_of(catalogue))))


def languages(*rows: LanguageRow) -> Languages:
    """Languages for a server in a test: by default the first two, after none."""
    made = {LONGER: longer, BACKWARDS: backwards, BOTH: longer_backwards}
    return Languages(language(row, made[row]) for row in rows or (LONGER, BACKWARDS))


def _messages() -> Iterator[Found]:
    for message in read(po_path(ENGLISH)):
        if message.id:
            yield Found(*texts_of(message), "", False)
