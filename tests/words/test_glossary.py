"""The rules of a language: what the check of its translations notices, and that each language has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dev.words import catalogue, glossary
from dev.words.glossary import BadGlossary, Glossary, Term
from dev.words.sources import Found
from handlers.core.words.table import ENGLISH, LANGUAGES, LanguageRow
from settings.offers import LANGUAGES as CODES
from tests.support.lists.offenders import each

GERMAN = LanguageRow("de", "de", "Deutsch", "de", "de")
RULES = Glossary(
    "Sie",
    (re.compile(r"\b[Dd]u\b"),),
    (Term("app", "App", ("App",), ("Whatever app means here.",)), Term("sign in", "anmelden", ("anmeld",))),
    long=frozenset(),
    same=frozenset(),
    apart=frozenset(),
)


def complaints(tmp_path: Path, rules: Glossary = RULES, *, texts: dict[Any, Any]) -> list[str]:
    """What is wrong with these translations, by their English texts (a pair where it has a plural)."""
    pairs = [one if isinstance(one, tuple) else (one, "") for one in texts]
    found = [Found(one, many, "a.py", False) for one, many in pairs]
    known = {one[0] if isinstance(one, tuple) else one: said for one, said in texts.items() if said}
    made = catalogue.catalogue_of(found, GERMAN, known)
    return [line.partition(": ")[2] for line in glossary.wrong(GERMAN, made, tmp_path, rules)]


@each(
    ("text", "translation", "complaint"),
    [
        ("Apps", "Apps", None),
        ("Two apps", "Zwei Programme", "'app' is 'App': 'Zwei Programme'"),
        ("Whatever app means here.", "Egal", None),
        ("Happy apples", "Frohe Äpfel", None),
        ("Please sign in", "Bitte melde dich an", "'sign in' is 'anmelden'"),
        ("Please sign in", "Du musst dich anmelden", "'Du' must not be in a translation (form of address: Sie)"),
        ("Yes", "", "is not translated: write its msgstr and run `make words` again"),
        ("Yes", "Ja" * 9, "longer than 1.6 times"),
        ("Choose a language and zone", "Choose a language and zone", "its translation is the English text"),
        ("OAuth", "OAuth", None),
    ],
)
def test_translations_against_a_glossary(tmp_path: Path, text: str, translation: str, complaint: str | None) -> None:
    found = complaints(tmp_path, texts={text: translation, "Whatever app means here.": "Egal"})
    assert [complaint in one for one in found] == [True] if complaint else found == []


def test_each_form_of_a_plural_is_checked(tmp_path: Path) -> None:
    texts = {
        ("%(count)s app", "%(count)s apps"): ("%(count)s App", "%(count)s Programme"),
        "Whatever app means here.": "x",
    }
    assert complaints(tmp_path, texts=texts) == ["'%(count)s app': 'app' is 'App': '%(count)s Programme'"]
    texts = {("%(count)s byte", "%(count)s bytes"): ("%(count)s Byte", ""), "Whatever app means here.": "x"}
    assert complaints(tmp_path, texts=texts) == [
        "'%(count)s byte' is not translated: write its msgstr and run `make words` again"
    ]


def test_texts_that_differ_by_their_last_stop_have_one_translation(tmp_path: Path) -> None:
    texts = {"Saved": "Gesichert", "Saved.": "Gespeichert.", "Whatever app means here.": "x"}
    assert complaints(tmp_path, texts=texts) == ["'Saved.' and 'Saved' have translations that differ"]
    assert complaints(tmp_path, RULES._replace(apart=frozenset({"Saved."})), texts=texts) == []


def test_an_exception_for_no_message_is_noticed(tmp_path: Path) -> None:
    found = complaints(tmp_path, RULES._replace(same=frozenset({"gone"})), texts={"Whatever app means here.": "x"})
    assert [one.endswith("'gone' is no message") for one in found] == [True]


@each("text", ["address = 'Sie'", "never = ['(']\naddress = ''\nterm = []", "\x00"])
def test_a_glossary_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "de.toml").write_text(text)
    with pytest.raises(BadGlossary, match=r"de\.toml"):
        glossary.glossary("de", tmp_path)


def test_each_language_has_a_glossary_of_forty_terms() -> None:
    for row in LANGUAGES:
        if row != ENGLISH:
            rules = glossary.glossary(row.code)
            assert len({term.english for term in rules.terms}) >= 40, row.code
            assert rules.address, row.code


def test_the_setting_has_the_languages_of_the_table() -> None:
    assert tuple(row.code for row in LANGUAGES) == CODES
