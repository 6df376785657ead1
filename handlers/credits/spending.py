"""The spending of apps by day, as a chart and as a CSV file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import date

from handlers.charts.chart import RANGES, Chart, Series, chart_of, days_until, ranked
from handlers.charts.csv_file import csv_of
from handlers.charts.scale import MONEY, dollars
from handlers.core.words.wording import Wording
from store.credits.credits import Spending
from store.phrases import Phrase

DAYS = 30
"""The days that the page shows first."""
_OTHERS = Phrase("Other apps")
_HEADER = ("day", "client_id", "app", "dollars")


def days_asked(text: str | None) -> int:
    """The days of a query's `days`. What is no range of the page counts as none given."""
    return next((days for days in RANGES if text == str(days)), DAYS)


def chart_of_spending(spending: Spending, names: Mapping[str, str], days: int, wording: Wording) -> Chart | None:
    """The chart, with a colour for each of the apps with the greatest sums; None if nothing was spent on these days.
    `names` has the names of apps by client id."""
    shown = days_until(spending.today, days)
    by_client: defaultdict[str, defaultdict[date, int]] = defaultdict(lambda: defaultdict(int))
    for on, client, amount in spending.charged:
        by_client[client][on] += amount
    series = [Series(names[client], tuple(spent[on] for on in shown)) for client, spent in sorted(by_client.items())]
    return chart_of(shown, ranked(series, _OTHERS), MONEY, wording)


def spending_file(spending: Spending, names: Mapping[str, str]) -> bytes:
    """A row for each day and app with charges, the oldest day first. Sums are in dollars."""
    rows = sorted(row for row in spending.charged if row[2])
    return csv_of(_HEADER, [(on.isoformat(), client, names[client], dollars(amount)) for on, client, amount in rows])
