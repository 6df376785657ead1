"""The rules of a language beyond its catalogue: terms, the form of address, and how long a translation may be.

`dev/words/glossaries/CODE.toml` has them. English has none: it is the language of the source.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from babel.messages.catalog import Catalog

from dev.words.catalogue import forms_of, po_path, texts_of
from dev.words.markup import PLACEHOLDER, TAG
from handlers.core.words.languages import FOLDER
from handlers.core.words.table import ENGLISH, LanguageRow

GLOSSARIES = Path(__file__).resolve().parent / "glossaries"
LONGER = 1.6
"""A translation has at most this many times the characters of its English text."""
SPARE = 12
"""Characters that any translation may have on top: the shortest words grow most."""
_COPIED = 4
"""Words of an English text from which a translation that equals it was forgotten."""
_END = ".!?:…。\N{FULLWIDTH EXCLAMATION MARK}\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH COLON}"

_CODE = re.compile(r"<code>.*?</code>|https://\S+|com\.example\.app\S*|“latchkey [^”]*”")
"""Parts of a text that are the same in each language."""


class Term(NamedTuple):
    """A term of the glossary. `english`: how messages have it; `says`: its translation; `stems`: texts of which a
    translation of such a message has one, in any case; `but`: English texts in which the word means something else."""

    english: str
    says: str
    stems: tuple[str, ...]
    but: tuple[str, ...] = ()

    def missing(self, text: str, form: str) -> bool:
        """Whether an English text has the term and its translation has none of the stems."""
        if text in self.but or not _word(self.english).search(_bare(_CODE.sub("", text))):
            return False
        said = _bare(form).casefold()
        return not any(stem.casefold() in said for stem in self.stems)


class Glossary(NamedTuple):
    """The rules of a language. `address`: how it addresses the reader; `never`: patterns of other forms of address and
    of wrong typography; `long`: English texts whose longer translations somebody looked at on their page; `same`: those
    whose translation is the English text; `apart`: those whose translation differs from one of almost the same text on
    purpose."""

    address: str
    never: tuple[re.Pattern[str], ...]
    terms: tuple[Term, ...]
    long: frozenset[str]
    same: frozenset[str]
    apart: frozenset[str]


class BadGlossary(Exception):
    """A glossary that cannot be read; the message says which and why."""


@cache
def _word(english: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(english)}(?:e?s)?(?![\w-])", re.IGNORECASE)


def glossary(code: str, folder: Path = GLOSSARIES) -> Glossary:
    """The rules of a language. Raises BadGlossary."""
    path = folder / f"{code}.toml"
    try:
        told: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))
        return Glossary(
            told["address"],
            tuple(re.compile(one) for one in told["never"]),
            tuple(
                Term(one["english"], one["says"], tuple(one.get("stems", [one["says"]])), tuple(one.get("but", ())))
                for one in told["term"]
            ),
            *(frozenset(told.get(name, ())) for name in ("long", "same", "apart")),
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, re.error) as error:
        raise BadGlossary(f"{path}: {error!r}") from error


def wrong(row: LanguageRow, catalogue: Catalog, folder: Path = FOLDER, rules: Glossary | None = None) -> Iterator[str]:
    """Complaints about a language's translations, a line each. Raises BadGlossary."""
    if row == ENGLISH:
        return
    rules, po = rules or glossary(row.code), po_path(row, folder)
    known: dict[str, tuple[str, str]] = {}
    texts = set()
    for message in catalogue:
        if not message.id:
            continue
        one, many = texts_of(message)
        texts.add(one)
        forms = forms_of(message)
        if not forms or not all(forms):
            yield f"{po}: {one!r} is not translated: write its msgstr and run `make words` again"
            continue
        yield from (f"{po}: {one!r}: {what}" for what in _complaints(one, many, forms, rules))
        if not many and one not in rules.apart:
            before = known.setdefault(_core(one), (one, forms[0]))
            if _core(before[1]) != _core(forms[0]):
                yield f"{po}: {one!r} and {before[0]!r} have translations that differ"
    for listed in sorted(
        (rules.long | rules.same | rules.apart | {b for term in rules.terms for b in term.but}) - texts
    ):
        yield f"{GLOSSARIES / row.code}.toml: {listed!r} is no message"


def _complaints(one: str, many: str, forms: Sequence[str], rules: Glossary) -> Iterator[str]:
    for form in forms:
        for pattern in rules.never:
            if found := pattern.search(form):
                yield f"{found[0]!r} must not be in a translation (form of address: {rules.address})"
        for term in rules.terms:
            if term.missing(one, form):
                yield f"{term.english!r} is {term.says!r}: {form!r}"
        if _size(form) > LONGER * max(_size(one), _size(many)) + SPARE and one not in rules.long:
            yield f"longer than {LONGER} times its English text: {form!r}"
        if form == one and one not in rules.same and len(_bare(one).split()) >= _COPIED:
            yield "its translation is the English text"


def _bare(text: str) -> str:
    return PLACEHOLDER.sub("", TAG.sub("", text))


def _size(text: str) -> int:
    return len(_bare(text))


def _core(text: str) -> str:
    return text.lstrip("¿¡").rstrip(_END + " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")
