"""Charts by day: scale, columns, legend, the table beneath, and the CSV file."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from handlers.admin.console.figures import charts_of
from handlers.charts.chart import COLOURS, RANGES, VISIBLE, Series, chart_of, days_until, ranked
from handlers.charts.csv_file import csv_of
from handlers.charts.scale import CALLS, MONEY, MOST_LINES, dollars, grid
from handlers.core.format import MINUS, money_places
from handlers.core.words.languages import shipped
from handlers.core.words.wording import Wording
from store.accounts.audit.activity_figures import DayFigures
from tests.support.browser.english import SPOKEN

TODAY = date(2026, 3, 1)
WEEK = days_until(TODAY, 7)


def number(percent: str) -> float:
    return float(percent.removesuffix("%"))


@pytest.mark.parametrize(
    ("most", "lines"),
    [
        (1, (0, 1)),
        (3, (0, 1, 2, 3)),
        (7, (0, 2, 4, 6, 8)),
        (99, (0, 50, 100)),
        (4_990_000, (0, 2_000_000, 4_000_000, 6_000_000)),
    ],
)
def test_grid_lines_are_round_numbers_that_reach_the_greatest_value(most: int, lines: tuple[int, ...]) -> None:
    assert grid(most) == lines


@pytest.mark.parametrize("most", [*range(1, 300), 10**12 + 1])
def test_a_grid_has_few_even_lines_and_wastes_less_than_one(most: int) -> None:
    lines = grid(most)
    steps = {high - low for low, high in pairwise(lines)}
    assert len(steps) == 1
    assert 2 <= len(lines) <= MOST_LINES + 1
    assert lines[-2] < most <= lines[-1]


def test_columns_stand_on_the_base_line_and_never_leave_the_drawing() -> None:
    series = [Series(f"App {place}", tuple(10 ** (2 * place) * (day % 3) for day in range(7))) for place in range(7)]
    chart = chart_of(WEEK, ranked(series, "Others"), MONEY, SPOKEN)
    assert chart is not None
    assert len(chart.columns) == 7
    for column in chart.columns:
        edges = [(number(part.top), number(part.height)) for part in column.parts]
        if edges:
            assert sum(edges[0]) == pytest.approx(100, abs=0.02)
        assert all(top >= 0 and height >= min(VISIBLE, 100 - top) - 0.02 for top, height in edges)
        for (below, _), (top, height) in pairwise(edges):
            assert top + height == pytest.approx(below, abs=0.02)
        assert 0 <= number(column.left) < number(column.left) + number(column.width) <= 100


def test_the_greatest_series_have_colours_of_their_own_and_the_rest_share_the_last() -> None:
    series = [Series(f"App {place}", (0, place)) for place in range(8)]
    chart = chart_of(WEEK[:2], ranked(series, "Others"), CALLS, SPOKEN)
    assert chart is not None
    shown = [(entry.name, entry.total, entry.colour) for entry in chart.legend]
    assert shown == [
        ("App 7", "7 calls", "first"),
        ("App 6", "6 calls", "second"),
        ("App 5", "5 calls", "third"),
        ("App 4", "4 calls", "fourth"),
        ("Others", "6 calls", COLOURS[-1]),
    ]
    assert chart.columns[1].cells == ("7", "6", "5", "4", "6")
    assert chart.columns[1].text.startswith("24 February 2026: 28 calls (App 7 7 calls, ")


def test_the_summary_names_the_sum_and_the_day_with_most() -> None:
    chart = chart_of(WEEK, [Series("App", (0, 0, 7_000, 0, 21_000, 0, 0))], MONEY, SPOKEN)
    assert chart is not None
    assert chart.summary == "$0.02 in 7 days, most on 27\u00a0February\u00a02026: $0.02."
    assert [line.label for line in chart.lines] == ["$0.00", "$0.01", "$0.02", "$0.03"]


def test_no_line_ends_within_the_day_with_most_in_japanese() -> None:
    japanese = Wording(shipped().by_code["ja"], SPOKEN.zone)
    chart = chart_of(WEEK, [Series("App", (0, 0, 0, 0, 21_000, 0, 0))], MONEY, japanese)
    assert chart is not None
    assert "2026年\u20602月\u206027日" in chart.summary


def test_days_that_do_not_add_up_have_no_sum() -> None:
    """Who is active on two days is one person."""
    figures = [DayFigures(on, sign_ins=1, active=3) for on in WEEK]
    shown = {one.id: one.chart.summary for one in charts_of(figures, SPOKEN) if one.chart}
    assert shown == {
        "sign-ins": "7 in 7 days, most on 1\u00a0March\u00a02026: 1.",
        "active": "Up to 3 a day in 7 days, most on 1\u00a0March\u00a02026.",
    }


def test_without_values_there_is_no_chart() -> None:
    assert chart_of(WEEK, [], CALLS, SPOKEN) is None
    assert chart_of(WEEK, [Series("App", (0,) * 7)], CALLS, SPOKEN) is None


def test_the_days_below_name_the_first_and_the_last() -> None:
    chart = chart_of(days_until(TODAY, 90), [Series("App", (1,) * 90)], CALLS, SPOKEN)
    assert chart is not None
    assert [label.text for label in chart.days] == ["2 Dec", "24 Dec", "15 Jan", "7 Feb", "1 Mar"]
    assert [label.anchor for label in chart.days] == ["start", "middle", "middle", "middle", "end"]


def test_a_narrow_chart_names_the_first_day_the_middle_and_the_last() -> None:
    for length in RANGES:
        chart = chart_of(days_until(TODAY, length), [Series("App", (1,) * length)], CALLS, SPOKEN)
        assert chart is not None
        kept = [number(label.left) for label in chart.days if not label.extra]
        assert kept == [0, pytest.approx(50, abs=2), 100], length


def test_a_spreadsheet_reads_no_name_of_an_app_as_a_formula() -> None:
    rows = [["=HYPERLINK(1)", "-0.5"], ["+1", "@x"], ["-cmd", "plain, with comma"]]
    assert csv_of(("a", "b"), rows).decode().split("\r\n") == [
        "a,b",
        "'=HYPERLINK(1),-0.5",
        "'+1,'@x",
        '\'-cmd,"plain, with comma"',
        "",
    ]


@pytest.mark.parametrize(
    ("micro", "text"), [(0, "0.00"), (-1_500_000, "-1.50"), (150, "0.00015"), (10**13, "10000000.00")]
)
def test_amounts_for_programs_are_exact_dollars(micro: int, text: str) -> None:
    assert dollars(micro) == text


def test_amounts_in_a_column_have_the_same_number_of_places() -> None:
    amounts = [-226_000, 4_990_000, -150]
    assert [SPOKEN.money(amount, money_places(amounts)) for amount in amounts] == [
        f"{MINUS}$0.22600",
        "$4.99000",
        f"{MINUS}$0.00015",
    ]
    assert money_places([]) == 2
    assert SPOKEN.cents(17_449_999) == "$17.44"
