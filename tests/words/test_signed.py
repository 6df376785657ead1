"""The signs in a language for tests: pages look the same, and read back as English."""

from __future__ import annotations

import re

import pytest

from dev.words.signed import Signed, signed
from handlers.core.words.table import LANGUAGES

GERMAN = next(row for row in LANGUAGES if row.code == "de")


@pytest.fixture(scope="module")
def german() -> Signed:
    return Signed(GERMAN)


def test_only_invisible_characters_are_added() -> None:
    text = 'Weiter zu <a href="%(link)s">%(app)s</a>'
    assert re.sub("[\U000e0000-\U000e007f]", "", signed(7, text)) == text
    assert '<a href="%(link)s">' in signed(7, text)


def test_a_page_reads_back_as_english_with_its_values(german: Signed) -> None:
    said = german.languages.default
    message = "Your %(provider)s account was connected"
    assert said.plain(message, provider="GitHub") != message % {"provider": "GitHub"}
    three = said.plain_n("%(count)s document", "%(count)s documents", 3)
    page = f"42 {said.plain(message, provider='GitHub')}, Ada\n{three}"
    assert german.english(page) == "42 Your GitHub account was connected, Ada\n3 documents"
    assert german.english(said.plain_n("%(count)s document", "%(count)s documents", 1)) == "1 document"


def test_a_link_within_a_message_has_its_own_words(german: Signed) -> None:
    message = 'New here? <a href="%(link)s">Create an account</a>'
    page = german.languages.default.html(message, link="/signup")
    link = re.search("<a [^>]*>(.*)</a>", page)
    assert link
    assert german.english(link[1]) == "Create an account"
    assert german.english(re.sub("<[^>]*>", "", page)) == "New here? Create an account"
