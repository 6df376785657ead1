"""The tour of all pages in a language made for tests, of longer words from right to left.

Every text is in the catalogue, and every page has room for it, in both directions. LATCHKEY_TOUR names languages that
people speak, such as "de ja": the tour goes through them as well, and with LATCHKEY_SHOTS it writes pictures. See `make
screenshots`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.words.pseudo import BOTH, languages, plain
from dev.words.signed import Signed
from handlers.core.words.table import LANGUAGES, LanguageRow
from tests.support.browser.foreign import ForeignChromium, ForeignTour
from tests.support.browser.tour import walk
from tests.support.browser.tour_kit import Stand

ENGLISH = ("base/docs.html", "base/home.html branded", "demo ")
"""Pages in English: the docs, a brand's template, the demo app."""
OTHERS = re.compile(
    "Ada Lovelace|Elsa Herschel|Grace Hopper|Hedy Lamarr|Mary Shelley|Our company( mary)?|Latchkey Echo|"
    "(Eva|Sam|Ana|Ira|Noa) [AS][a-z]+|Ben|On leave|Back in January|Thanks|"
    "Weather Diary|The Daily Leaf|Old Reader|Pocket Notes|Tool Box|Überregionales .*meteorologinnen|Star Atlas|"
    "To try things out|Gift card, number 1007|Harbo is run by Harbo Works Ltd|Read the chapter on ferns again|to read|"
    r"Example Inc\.|GitHub|Google|Microsoft|Apple|https://(gone|elsewhere).example|https://github.com|"
    "Star Map|Rain planner|Example Works|openid|(apps|credits|data|orders|times):[a-z]+|"
    "(Cancel|Place|See your) (orders|timetable)|"
    r"What you ordered, when, and what it cost|It can order in your name, up to 100 \$ a day|"
    "Living Room TV|LivingRoomTV/7.1 .*|[B-Z]{4}-[B-Z]{4}|"
    "Mozilla/5.0 .*|(POST|Authorization:) .*|"
    "([A-Z2-7]{4} ){7}"  # the secret of an authenticator app
)
"""Names of people, apps and scopes, documents, and what operators write."""


SPOKEN = [row for row in LANGUAGES if row.code in os.environ.get("LATCHKEY_TOUR", "").split()]
SHOTS = os.environ.get("LATCHKEY_SHOTS")


@pytest.fixture(scope="module", params=[BOTH, *SPOKEN], ids=lambda row: row.code)
def tour(request: pytest.FixtureRequest) -> Iterator[ForeignTour]:
    """A tour that has seen everything in one of the languages."""
    row: LanguageRow = request.param
    spoken = Signed(row) if row in SPOKEN else None
    with (
        Stand(spoken.languages if spoken else languages(row)) as stand,
        ForeignChromium(spoken.english if spoken else plain) as browser,
    ):
        shots = Path(SHOTS) / row.code if SHOTS and spoken else None
        made = ForeignTour(stand, browser, shots, others=None if spoken else OTHERS, skipped=ENGLISH)
        walk(made)
        yield made


def test_every_text_is_in_the_catalogue(tour: ForeignTour) -> None:
    loose = sorted({text for seen in tour.seen for text in seen.loose})
    assert not loose, "\n".join(loose)


def test_every_page_has_room_for_its_words(tour: ForeignTour) -> None:
    burst = [one for seen in tour.seen for one in seen.burst]
    assert not burst, "\n".join(burst)
