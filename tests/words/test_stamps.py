"""Times in records show the exact time, in the reader's zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from handlers.core.amounts import dollars
from handlers.core.words.formats import table_day
from handlers.core.words.html import parted, unbroken
from handlers.core.words.languages import shipped
from handlers.core.words.wording import Wording
from store.clock import wall
from tests.support.http.driver import Service

ENGLISH = shipped().default


def test_a_stamp_shows_the_exact_time_and_how_long_ago_it_was() -> None:
    now = wall.utc()
    said = Wording(ENGLISH, ZoneInfo("Europe/Berlin")).stamp(now - timedelta(hours=2))
    assert f"{now - timedelta(hours=2):%Y-%m-%d}" in said
    assert "UTC+" in said
    assert said.endswith('\u00a0· <span class="whole">2 hours ago</span></time>'), "how long ago breaks no line"
    long_ago = Wording(ENGLISH, UTC).stamp(datetime(2020, 3, 5, 14, 7, 9, tzinfo=UTC))
    assert '><span class="whole">5 March 2020</span>, 14:07:09\u00a0UTC</time>' in long_ago, "no line ends in a date"


@pytest.mark.gen_test
async def test_activity_shows_exact_times(service: Service) -> None:
    browser = await service.signed_in()
    page = (await browser.get("/account/security/activity")).body.decode()
    assert '\u00a0UTC\u00a0· <span class="whole">just now</span></time>' in page


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("en", ("0.225", "50%", "1.5 KiB", "64 MiB", "2 GiB", "2048 GiB", "26 Nov 2026")),
        ("de", ("0,225", "50 %", "1,5 KiB", "64 MiB", "2 GiB", "2048 GiB", "26.11.2026")),
        ("fr", ("0,225", "50 %", "1,5 Kio", "64 Mio", "2 Gio", "2048 Gio", "26 nov. 2026")),
    ],
)
def test_numbers_are_written_as_the_reader_writes_them(code: str, said: tuple[str, ...]) -> None:
    language = shipped().by_code[code]
    wording = Wording(language)
    sizes = (1536, 64 << 20, 2 << 30, 2 << 40)
    found = (wording.decimal(0.22549), wording.percent(50), *map(wording.size, sizes))
    day = table_day(language.row.dates, date(2026, 11, 26))
    assert tuple(" ".join(one.split()) for one in (*found, day)) == said


@pytest.mark.parametrize(
    ("code", "text", "said"),
    [("fr", "5.00", "5,00"), ("fr", "0.125", "0,125"), ("fr", "1.2340", "1,2340"), ("en", "5.00", "5.00")],
)
def test_a_field_has_the_decimal_sign_of_the_language(code: str, text: str, said: str) -> None:
    wording = Wording(shipped().by_code[code])
    assert wording.money_typed(text) == said
    assert dollars(said) == dollars(text), "the form takes back what it showed"
    for wrong in ("1.250", "much", ""):
        assert wording.money_typed(wrong) == wrong, "what a person typed stays"


def test_a_number_and_its_unit_stay_in_one_line() -> None:
    for size in (812, 1536, 64 << 20):
        assert Wording(ENGLISH).size(size).split(" ")[1:] == [], "an ordinary space ends lines"


def test_a_host_name_ends_no_line_at_its_hyphen() -> None:
    said = unbroken("weather-diary.example")
    assert said == 'weather<span class="whole">-d</span>iary.example'
    assert unbroken("xn--a-<b>") == 'xn<span class="whole">--a</span>-&lt;b&gt;'


def test_a_line_of_an_address_ends_before_a_slash() -> None:
    assert parted("https://id.example/oauth/?a&b") == "https://id<wbr>.example<wbr>/oauth<wbr>/?a<wbr>&amp;b"


def test_only_words_that_are_not_the_exact_time_have_it_as_their_title() -> None:
    """The stylesheet keeps what has a title in one line, and exact times are too long for that."""
    wording = Wording(ENGLISH)
    assert "title" in wording.when(wall.utc())
    exact = wording.when(wall.utc(), wording.exact)
    assert "title" not in exact
    assert '<span class="whole">' in exact, "its day does stay in one line"
