"""Languages: loaded strictly, chosen from what anybody may send, and complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest

from dev.words import catalogue
from dev.words.pseudo import BACKWARDS, LONGER, backwards, languages, longer
from handlers.core.words.choosing import LONGEST, MOST, accepted, listed, ui_locales
from handlers.core.words.languages import FOLDER, BadCatalogue, Language, Languages, load, read, shipped, together
from handlers.core.words.table import ENGLISH, LANGUAGES, LanguageRow
from handlers.core.words.wording import Wording
from store.phrases import Phrase, plural
from tests.support.lists.offenders import each

ROOT = Path(__file__).resolve().parent.parent.parent
COUNTED = re.compile(
    r"%\((\w+)\)s(?:</\w+>)? "
    r"(?:days?|hours?|minutes?|seconds?|ms|s|[KMG]iB|bytes?|apps?|calls?|people|characters|events|parts)\b"
)
"""A placeholder before a unit."""


@pytest.fixture(scope="module")
def made() -> Languages:
    return languages()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"not a catalogue", id="something else"),
        pytest.param(b"\xde\x12\x04\x95" + b"\xff" * 40, id="broken"),
    ],
)
def test_a_catalogue_that_does_not_load_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "en" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "latchkey.mo").write_bytes(content)
    with pytest.raises(BadCatalogue, match=r"en/LC_MESSAGES/latchkey\.mo does not load"):
        load(tmp_path)


def test_a_server_with_a_catalogue_that_does_not_load_does_not_start(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, server; from handlers.core.words import languages; "
        f"languages.FOLDER = pathlib.Path({str(tmp_path)!r}); "
        "sys.exit(server.main(['--port', '0', '--redis-url', 'memory', '--demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert f"the catalogue {tmp_path}/en/LC_MESSAGES/latchkey.mo does not load" in done.stderr
    assert "Traceback" not in done.stderr


def test_people_get_no_language_that_was_made_for_tests() -> None:
    assert {row.code for row in LANGUAGES}.isdisjoint({LONGER.code, BACKWARDS.code})
    assert [one.code for one in shipped().all] == [row.code for row in LANGUAGES]


@each(
    ("header", "tags"),
    [
        ("", []),
        ("de", ["de"]),
        ("de-AT, en;q=0.5, fr;q=0.9", ["de-AT", "fr", "en"]),
        ("en;q=0, de", ["de"]),
        ("*, de", ["de"]),
        ("de;q=nan, fr;q=1e3, en ;q= 0.1", ["en"]),
        ("-, de--AT, x" + "y" * 9, []),
        (", ".join(["xx"] * MOST + ["de"]), ["xx"] * MOST),
        ("de," + " " * LONGEST, []),
    ],
)
def test_accept_language(header: str, tags: list[str]) -> None:
    assert accepted(header) == tags


def test_reading_what_a_stranger_asks_for_is_cheap() -> None:
    begun = process_time()
    for text in ("," * 1_000_000, "a-" * 500, "a;q=" + "0" * 990, " " * 1000, "de;" * 333, "a" * 1_000_000):
        accepted(text)
        listed(text)
        ui_locales("/oauth/authorize?ui_locales=" + text)
    assert process_time() - begun < 0.5


@each(
    ("address", "tags"),
    [
        ("/oauth/authorize?ui_locales=pt-BR%20en&state=1", ["pt-BR", "en"]),
        ("/oauth/authorize?state=ui_locales", []),
        ("/oauth/authorize?ui_locales=de&ui_locales=en", []),
        ("/oauth/authorize?" + "a=1&" * 200 + "ui_locales=de", []),
        ("/account?ui_locales=de", []),
        ("", []),
    ],
)
def test_ui_locales(address: str, tags: list[str]) -> None:
    assert ui_locales(address) == tags


@each(
    ("tags", "code"),
    [
        (["de", "ar-XB"], "ar_XB"),
        (["AR_xb-u-nu-latn"], "ar_XB"),
        (["ar"], None),
        (["de", "fr"], None),
        ([""], None),
        (["en-XA", "ar-XB"], "en_XA"),
    ],
)
def test_the_closest_language(made: Languages, tags: list[str], code: str | None) -> None:
    found = made.closest(tags)
    assert (found and found.code) == code


def test_a_language_is_found_by_fewer_subtags() -> None:
    portuguese = LanguageRow("pt", "pt-BR", "Português", "pt_BR", "pt_BR")
    english = shipped().default
    catalogue = read(FOLDER / ENGLISH.code / "LC_MESSAGES" / "latchkey.mo")
    found = Languages([english, Language(portuguese, catalogue)])
    assert [found.closest([tag]) for tag in ("pt-PT", "pt-BR", "pt")] == [found.by_code["pt"]] * 3
    assert found.closest(["en-AU"]) == english


def test_messages_are_said_in_a_language(made: Languages) -> None:
    one = made.by_code[LONGER.code]
    assert one.say("just now") == "just now", "a text that is no message stays"
    assert one.say(Phrase("just now")) == longer("just now")
    assert one.say(Phrase("never written here")) == "never written here"
    assert one.say(plural("%(count)s byte", "%(count)s bytes", 1200)) == longer("%(count)s bytes") % {"count": "1,200"}
    assert one.say(Phrase("")) == "", "gettext keeps its head under the empty text"


def test_values_are_isolated_in_a_text_from_right_to_left(made: Languages) -> None:
    one = made.by_code[BACKWARDS.code]
    assert one.rtl
    assert one.direction == "rtl"
    said = one.say(Phrase("%(name)s <script>", name="Ada"))
    assert said == "\N{FIRST STRONG ISOLATE}Ada\N{POP DIRECTIONAL ISOLATE} <script>"


def test_made_languages_keep_tags_and_placeholders() -> None:
    text = 'Go to <a href="%(link)s">%(name)s</a> now'
    for said in (longer(text), backwards(text)):
        assert all(part in said for part in ('<a href="%(link)s">', "%(name)s", "</a>"))
        assert "now" not in said
    assert len(longer("x" * 100)) >= 140


@each("dates", [row.dates for row in (ENGLISH, BACKWARDS)] + ["de", "es", "hi", "ja", "pl", "pt_BR", "ru"])
def test_lists_are_written_in_every_language(dates: str) -> None:
    language = Language(LanguageRow("xx", "xx", "", dates, "en_US"), read(FOLDER / "en/LC_MESSAGES/latchkey.mo"))
    said = Wording(language).listing(["one", "two", Phrase("three"), "four"])
    assert all(word in said for word in ("one", "two", "three", "four"))
    assert Wording(shipped().default).listing(["one", "two", "three"]) == "one, two and three"


def test_pages_break_no_short_part_off_a_word_or_a_number_and_mails_have_plain_hyphens() -> None:
    german, french, portuguese = (shipped().by_code[code] for code in ("de", "fr", "pt"))
    said = german.html("E-mail address")
    assert said == "E-\N{WORD JOINER}Mail-Adresse"
    assert german.plain("E-mail address") == "E-Mail-Adresse"
    said = french.html("ci-dessous, ci-dessus, supprimez-les, <code>ci-dessus</code>")
    assert said.replace("\N{WORD JOINER}", "|") == "ci-|dessous, ci-|dessus, supprimez-|les, <code>ci-dessus</code>"
    tags = (
        'o <a href="a-o 5 b">e-mail</a> <code>a-o 5 b</code> usá-lo, auto-o-x, MiB 5 MiB, 20 × 30, '
        "<b>%(days)s</b> dias, RFC 9"
    )
    shown = tags.replace("e-m", "e-|m").replace("á-", "á-|").replace("auto-", "auto-|")
    shown = shown.replace("5 M", "5~M").replace(" × ", "~×~").replace("</b> d", "</b>~d").replace("RFC ", "RFC~")
    assert portuguese.html(tags).replace("\N{WORD JOINER}", "|").replace("\xa0", "~") == shown
    assert german.plain_n("%(count)s day", "%(count)s days", 30) == "30 Tage"


@each("row", LANGUAGES)
def test_a_number_stays_in_one_line_with_its_unit(row: LanguageRow) -> None:
    """In every message that has a placeholder before a unit, whatever the placeholder's name."""
    loose: list[str] = []
    tried = 0
    for message in catalogue.read(catalogue.po_path(row)):
        for name in set(COUNTED.findall(" ".join(catalogue.texts_of(message)))):
            said = [one for one in catalogue.forms_of(message) if one] or catalogue.texts_of(message)
            found = [one for one in said if re.search(rf"%\({name}\)s(</\w+>)? \w{{1,12}}(?![\w-])", together(one))]
            loose, tried = loose + found, tried + 1
    assert tried > 50
    assert not loose


def test_a_line_in_japanese_ends_at_no_counter_or_particle_and_no_blank_is_between_its_sentences() -> None:
    japanese = shipped().by_code["ja"]
    said = japanese.html("%(count)s 件、3 日間、<bdi>%(app)s</bdi> の API を OAuth 2 認可", count=2, app="Diary")
    assert said.replace("\xa0", "~") == "2~件、3~日間、<bdi>Diary</bdi>~の API~を OAuth~2~認可"
    joined = japanese.html("アプリ ID と 1〜%(most)s 文字をもう一度、<code>もう一度</code>問い合わせログアウト", most=9)
    assert joined.replace("\xa0", "~").replace("\u2060", "|") == (
        "アプリ~ID~と 1〜|9~文字をもう|一度、<code>もう一度</code>問い|合わせログアウト"
    )
    typed = "<pre>古い。 新\u2060\u2060 しい。</pre>"
    page = f"{japanese.html('終わりました。')}\n  {japanese.html('続けますか。')}{typed}"
    assert japanese.closed_up(page.encode()).decode() == f"終わりました。続けますか。{typed}"
    markup = '<p class="words small"><code>latchkey keys rotate</code>'
    assert japanese.html(markup) == markup
    assert japanese.plain("3 日間。") == "3 日間。"


def test_zero_takes_the_plural_in_portuguese() -> None:
    portuguese = shipped().by_code["pt"]
    assert [portuguese.plain_n("%(count)s person", "%(count)s people", count) for count in (0, 1, 2)] == [
        *("0 pessoas", "1 pessoa", "2 pessoas")
    ]


def test_the_two_navigations_of_an_account_page_have_names_of_their_own() -> None:
    assert not [one.code for one in shipped().all if one.gettext("Account") == one.gettext("Your account")]
