"""The languages that pages and mails are written in: their catalogues, loaded once and strictly.

Tornado's own loader logs a catalogue that it cannot read, and goes on in English. Here the server does not start.
"""

from __future__ import annotations

import re
import secrets
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

from tornado.escape import xhtml_escape
from tornado.locale import GettextLocale

from handlers.core.words import formats
from handlers.core.words.html import Html
from handlers.core.words.table import LANGUAGES, LanguageRow
from store.errors import StartupError
from store.phrases import Phrase

FOLDER = Path(__file__).resolve().parent.parent.parent.parent / "templates" / "locale"
DOMAIN = "latchkey"
# A value in a text that is written the other way round could change the order of what is around it (UAX 9).
_MARKUP = re.compile(r"(<code>[^<]*</code>|<[^<>]*>|%\(\w+\)s)")
_JOINER = "\N{WORD JOINER}"
_SEAM = "".join(secrets.choice("\u2061\u2062\u2063\u2064") for _ in range(32))
"""Marks the end of a sentence in a language without spaces between sentences: the blanks that follow it in the template
are removed. The mark is random and never sent, so nobody can forge one."""
_SEAMS = re.compile(rf"{_SEAM}\s*".encode())
_SKIPPED = "<code>[^<]*</code>|<[^<>]*>"
_NUMBERS = "count|number|days|hours|minutes|seconds|least|most|total|done|keys"
# A tag, which stays as it is, or a number with what it counts: a word of at most 12 letters, or any of Japanese. Or a
# number and what it is multiplied by.
_COUNTED = re.compile(
    rf"{_SKIPPED}|(?:[0-9]|%\((?:{_NUMBERS})\)s(?:</\w+>)?|(?<=[0-9] )×)(?P<gap> )"
    r"(?=[^\W\d_][\w-]{0,11}(?![\w-])|[\u3040-\u9fff]|× ?[0-9]|(?<=× )[0-9])"
)
_ISOLATED = "\N{FIRST STRONG ISOLATE}%s\N{POP DIRECTIONAL ISOLATE}"


def together(text: str) -> str:
    """A text for a page in which no line ends between a number and what it counts: "30 days", "1 of 20"."""
    return _unbroken(_COUNTED, text)


def _unbroken(blanks: re.Pattern[str], text: str) -> str:
    """A text with no-break spaces in place of blanks: a match with a `gap` ends with its blank."""
    return blanks.sub(lambda found: found[0][:-1] + "\N{NO-BREAK SPACE}" if found["gap"] else found[0], text)


class BadCatalogue(StartupError):
    """A catalogue that does not load; the message says which and why."""


class Language(GettextLocale):
    """A language as Tornado knows it, with its row in the table."""

    def __init__(self, row: LanguageRow, catalogue: GNUTranslations) -> None:
        super().__init__(row.code, catalogue)
        self.row, self.tag, self.name, self.rtl = row, row.tag, row.name, row.rtl
        self._hyphens = re.compile(row.hyphens) if row.hyphens else None
        self._soft = re.compile(row.soft) if row.soft else None
        self._blanks = re.compile(rf"{_SKIPPED}|(?P<gap>{row.blanks})")
        self._whole = re.compile(row.whole) if row.whole else None
        self._stopped = re.compile(rf"{row.stop}[^\w\s<>]*\Z") if row.stop else None
        self._unbroken = cache(self._without_breaks)

    @property
    def direction(self) -> str:
        """The value of the attribute `dir`."""
        return "rtl" if self.rtl else "ltr"

    def number(self, value: int) -> str:
        """A whole number: "12,000"."""
        return formats.number(self.row.numbers, value)

    def html(self, message: str, /, **values: Any) -> Html:
        """A message of a template. The message may have markup; its values are escaped, unless they are HTML of
        ours."""
        text = self._unbroken(self.gettext(message))
        return Html(text % {name: self._escaped(value) for name, value in values.items()} if values else text)

    def html_n(self, one: str, many: str, count: int, /, **values: Any) -> Html:
        """A message of a template that depends on a number, which it names `%(count)s`."""
        values["count"] = count
        text = self._unbroken(self.ngettext(one, many, count))
        return Html(text % {name: self._escaped(value) for name, value in values.items()})

    def plain(self, message: str, /, **values: Any) -> str:
        """A message in a text that is no HTML: a mail."""
        text = self.gettext(message)
        return text % {name: self._plain(value) for name, value in values.items()} if values else text

    def plain_n(self, one: str, many: str, count: int, /, **values: Any) -> str:
        """A message in a text that is no HTML, and that depends on a number."""
        values["count"] = count
        text = self.ngettext(one, many, count)
        return text % {name: self._plain(value) for name, value in values.items()}

    def say(self, text: str, *, on_page: bool = False) -> str:
        """A text for people in this language: a message is translated, and any other text stays. Empty text
        is no message: gettext keeps its head under that key."""
        if not isinstance(text, Phrase) or not text.text:
            return text
        many = text.many
        said = self.ngettext(text.text, many, text.number) if many else self.gettext(text.text)
        said = self._unbroken(said) if on_page else said
        values = {**text.values, "count": text.number} if many else text.values
        return said % {name: self._plain(value) for name, value in values.items()} if values else said

    def _without_breaks(self, text: str) -> str:
        """The text of a message for a page: no line ends between a number and what it counts, or within a word that
        is whole. A non-breaking hyphen would be another character, which nobody types to search a page."""
        text = _unbroken(self._blanks, together(text))
        if self._stopped and self._stopped.search(text):
            text += _SEAM
        parts = _MARKUP.split(text)
        for places, sign in ((self._hyphens, f"-{_JOINER}"), (self._soft, "\N{SOFT HYPHEN}"), (self._whole, _JOINER)):
            if places:
                parts[::2] = [places.sub(sign, part) for part in parts[::2]]
        return "".join(parts)

    def closed_up(self, page: bytes) -> bytes:
        """A page without the blanks that its template has between two sentences, in a language that writes none.
        What people wrote stays as it is."""
        return _SEAMS.sub(b"", page) if self._stopped else page

    def _plain(self, value: Any) -> str:
        if isinstance(value, str):
            said = self.say(value)
            return _ISOLATED % said if self.rtl else said
        return self.number(value) if type(value) is int else str(value)

    def _escaped(self, value: Any) -> str:
        if type(value) is Html:
            return value
        if isinstance(value, str):
            return xhtml_escape(self.say(value, on_page=True))
        return xhtml_escape(self.number(value) if type(value) is int else str(value))


class Languages:
    """The languages of a server. The first is for those who ask for none of them."""

    def __init__(self, languages: Iterable[Language]) -> None:
        self.all = tuple(languages)
        self.by_code: Mapping[str, Language] = {one.code: one for one in self.all}
        self._by_tag = {tag: one for one in reversed(self.all) for tag in (one.code.lower(), one.tag.lower())}

    @property
    def default(self) -> Language:
        """The language for those who ask for none of these."""
        return self.all[0]

    def only(self, codes: Iterable[str]) -> Languages:
        """Those of these codes, in their order. Raises KeyError for one that is not here."""
        return Languages(self.by_code[code] for code in codes)

    def closest(self, tags: Iterable[str]) -> Language | None:
        """The first language of these tags that is here, with fewer subtags where there is no exact one (RFC 4647
        3.4): `de-AT` finds German."""
        for tag in tags:
            parts = tag.lower().replace("_", "-").split("-")
            while parts:
                if found := self._by_tag.get("-".join(parts)):
                    return found
                parts.pop()
        return None


def read(path: Path) -> GNUTranslations:
    """A compiled catalogue. Raises BadCatalogue."""
    try:
        with path.open("rb") as file:
            return GNUTranslations(file)
    except (OSError, ValueError, LookupError, struct.error) as error:
        raise BadCatalogue(f"the catalogue {path} does not load: {error}") from error


def load(folder: Path, rows: Iterable[LanguageRow] = LANGUAGES) -> Languages:
    """The languages of these rows, with their catalogues. Raises BadCatalogue."""
    return Languages(Language(row, read(folder / row.code / "LC_MESSAGES" / f"{DOMAIN}.mo")) for row in rows)


@cache
def shipped() -> Languages:
    """The languages that come with the program. Raises BadCatalogue."""
    return load(FOLDER)
