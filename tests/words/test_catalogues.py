"""The catalogues in the tree are what the sources say, and the check notices what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.words import catalogue, loose
from dev.words.sources import Found, NoMessage, check_calls, everything, from_templates
from handlers.core.words.languages import FOLDER
from handlers.core.words.table import ENGLISH, LANGUAGES, LanguageRow
from tests.support.lists.offenders import each

GERMAN = LanguageRow("de", "de", "Deutsch", "de", "de")
GO = Found("Go to <b>%(name)s</b>".replace("b>", "strong>"), "", "a.html", True)
BYTES = Found("%(count)s byte", "%(count)s bytes", "a.py", False)


@pytest.mark.slow
def test_the_catalogues_are_sound() -> None:
    """`make lint` asks the same."""
    assert list(catalogue.wrong(everything())) == []


def test_no_template_has_text_of_its_own() -> None:
    assert list(loose.texts()) == []


def written(folder: Path, *messages: Found, row: LanguageRow = GERMAN) -> Path:
    catalogue.write(list(messages), folder, (row,))
    return catalogue.po_path(row, folder)


def test_a_renewal_keeps_translations_and_drops_what_is_gone(tmp_path: Path) -> None:
    po = written(tmp_path, GO, BYTES)
    po.write_text(po.read_text().replace('msgstr ""\n\n#: a.py', 'msgstr "<strong>%(name)s</strong>!"\n\n#: a.py', 1))
    assert "translated" not in po.read_text()
    written(tmp_path, GO)
    text = po.read_text()
    assert "<strong>%(name)s</strong>!" in text
    assert "%(count)s byte" not in text
    assert list(catalogue.wrong([GO], tmp_path, (GERMAN,))) == []


def test_a_renewal_changes_nothing_where_nothing_changed(tmp_path: Path) -> None:
    po = written(tmp_path, GO, BYTES)
    before = po.read_bytes(), catalogue.mo_path(GERMAN, tmp_path).read_bytes()
    written(tmp_path, GO, BYTES)
    assert (po.read_bytes(), catalogue.mo_path(GERMAN, tmp_path).read_bytes()) == before


def test_a_catalogue_that_is_not_what_the_sources_say_is_noticed(tmp_path: Path) -> None:
    written(tmp_path, GO)
    (complaint,) = catalogue.wrong([GO, BYTES], tmp_path, (GERMAN,))
    assert "not what the sources say" in complaint


def test_a_compiled_catalogue_that_is_not_its_own_is_noticed(tmp_path: Path) -> None:
    po = written(tmp_path, GO)
    head, _, rest = po.read_text().rpartition('msgstr ""')
    po.write_text(f'{head}msgstr "<strong>%(name)s</strong>"{rest}')
    (complaint,) = catalogue.wrong([GO], tmp_path, (GERMAN,))
    assert complaint.endswith("latchkey.mo: not its .po: run `make words`")


def test_a_folder_without_a_row_is_noticed(tmp_path: Path) -> None:
    written(tmp_path, GO)
    (tmp_path / "xx").mkdir()
    assert any("no row in the table" in one for one in catalogue.wrong([GO], tmp_path, (GERMAN,)))


@each(
    ("translation", "complaint"),
    [
        ("Zu <strong>%(nahme)s</strong>", "other placeholders"),
        ("Zu %(name)s", "other tags"),
        ("<strong>%(name)s</strong> & Co", "an &"),
        ("<strong>%(name)s</strong> 100%", "a % that"),
        ('<strong>%(name)s</strong> \\"da\\"', "outside a tag"),
        ("</strong>%(name)s<strong>", "do not match"),
        ("<strong>%(name)s</strong> ", "blanks around"),
    ],
)
def test_a_translation_that_would_break_a_page_is_noticed(tmp_path: Path, translation: str, complaint: str) -> None:
    folder = tmp_path / translation.encode().hex()
    po = written(folder, GO)
    head, _, rest = po.read_text().rpartition('msgstr ""')
    po.write_text(f'{head}msgstr "{translation}"{rest}')
    written(folder, GO)
    assert any(complaint in one for one in catalogue.wrong([GO], folder, (GERMAN,)))


@each(
    ("message", "complaint"),
    [
        (Found("Go <script>", "", "a.html", True), "the tags script"),
        (Found("Go <strong>there</strong>", "", "a.py", False), "not HTML"),
        (Found('Say "go"', "", "a.html", True), "outside a tag"),
    ],
)
def test_a_message_that_would_break_a_page_is_noticed(tmp_path: Path, message: Found, complaint: str) -> None:
    written(tmp_path, message)
    assert any(complaint in one for one in catalogue.wrong([message], tmp_path, (GERMAN,)))


@each("call", ["Phrase(f'a {x}')", "Phrase(x)", "words._('a' + x)", "plural('a', x, 1)"])
def test_a_message_that_nobody_could_extract_is_noticed(call: str) -> None:
    with pytest.raises(NoMessage, match=r"a\.py:1"):
        check_calls("a.py", call, {"_": (1,), "Phrase": (1,), "plural": (1, 2)})


def test_messages_of_templates_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "base.html").write_text('{{ _("From the base") }}{% block a %}{% end %}')
    (tmp_path / "page.html").write_text(
        '{% extends "base.html" %}\n{% block a %}{{ _("Over "\n "two lines", x="not this") }}'
        '{% if _n("one", "%(count)s", 2) %}{% end %}{% end %}'
    )
    assert set(from_templates(tmp_path)) == {
        Found("From the base", "", "templates/base.html", True),
        Found("Over two lines", "", "templates/page.html", True),
        Found("one", "%(count)s", "templates/page.html", True),
    }


@each(
    ("source", "texts"),
    [
        ("<p>Hello</p>", ["Hello"]),
        ('<p title="Hello">{{ _("Hello") }}</p>', ["Hello"]),
        ('<p class="hello" id="x">{{ name }} · {# Hello #}</p>', []),
        ('<p>Hello {{ _("there") }}</p>', ["Hello …"]),
        ('{{ "Sign in" if x else _("Sign out") }}', ["Sign in"]),
        ('{% set x = "Hello there" %}{% include "a.html" %}{% if x == "word" %}{% end %}', ["Hello there"]),
        ("<script>let hello;</script>", []),
        ("{{ _('Hello', x='a b') }}", []),
    ],
)
def test_text_outside_the_catalogue_is_found(source: str, texts: list[str]) -> None:
    assert list(loose.loose(source, html=True)) == texts


def test_text_of_a_mail_outside_the_catalogue_is_found() -> None:
    assert list(loose.loose('{{ _("Hello,") }}\n\nyour {{ thing }}\n', html=False)) == ["your …"]


def test_english_is_the_language_of_the_source() -> None:
    assert catalogue.translations(ENGLISH) == {}
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(row.code for row in LANGUAGES)
