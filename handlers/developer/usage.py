"""The figures of an app by day, as charts and as a CSV file."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.charts.chart import Chart, Series, chart_of
from handlers.charts.csv_file import csv_of
from handlers.charts.scale import CALLS, MONEY, Measure, dollars
from handlers.core.words.wording import Wording
from handlers.credits.usage import USED, used_cells
from store.app_stats import AppFigures, Day
from store.credits.used import of_app
from store.phrases import Phrase

RANGES = (7, 30)
DAYS = 30
_HEADER = ("day", "calls", "refused_as_too_many", "dollars", "connected", "disconnected")
_MODELS_HEADER = ("day", *USED)


@dataclass(frozen=True, slots=True)
class UsageChart:
    """A chart of an app's page, with the id of its heading."""

    chart_id: str
    title: str
    chart: Chart


def days_asked(text: str | None) -> int:
    """The days of a query's `days`. What is no range of the page counts as none given."""
    return next((days for days in RANGES if text == str(days)), DAYS)


def usage_charts(shown: tuple[Day, ...], wording: Wording) -> list[UsageChart]:
    """The charts of what is not zero on all of these days."""
    wanted: tuple[tuple[str, str, Measure, list[Series]], ...] = (
        (
            "calls",
            Phrase("Calls by day"),
            CALLS,
            [
                Series(wording.say(Phrase("Answered")), tuple(day.calls - day.limited for day in shown)),
                Series(wording.say(Phrase("Over the rate limit")), tuple(day.limited for day in shown)),
            ],
        ),
        (
            "spent",
            Phrase("Spent by day"),
            MONEY,
            [Series(wording.say(Phrase("Spent by people")), tuple(day.spent for day in shown))],
        ),
    )
    charts = []
    for chart_id, title, measure, series in wanted:
        if chart := chart_of([day.day for day in shown], [one for one in series if one.total], measure, wording):
            charts.append(UsageChart(chart_id, title, chart))
    return charts


def usage_file(figures: AppFigures) -> bytes:
    """A row a day, the oldest first. Sums are in dollars."""
    return csv_of(
        _HEADER,
        [
            (
                day.day.isoformat(),
                str(day.calls),
                str(day.limited),
                dollars(day.spent),
                str(day.connected),
                str(day.disconnected),
            )
            for day in figures.days
        ],
    )


def models_file(figures: AppFigures) -> bytes:
    """A row for each day and model with calls, the oldest day first."""
    return csv_of(_MODELS_HEADER, [(row.day.isoformat(), *used_cells(row)) for row in of_app("", figures)])
