"""The coordinates of the spending plot."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from itertools import pairwise

from handlers.credits.spending_plot import COLOURS, DAYS, HEIGHT, WIDTH, plot_of
from store.credits.credits import Spending

TODAY = date(2026, 3, 1)
NAMES = defaultdict(lambda: "An app", {f"app-{number}": f"App {number}" for number in range(9)})


def test_without_spending_there_is_no_plot() -> None:
    assert plot_of(Spending(TODAY, True, ()), NAMES) is None
    assert plot_of(Spending(TODAY, True, ((TODAY, "app-1", 0),)), NAMES) is None


def test_the_top_spenders_come_first_and_the_rest_share_a_colour() -> None:
    charged = tuple((TODAY - timedelta(days=number), f"app-{number}", 1000 * (number + 1)) for number in range(7))
    plot = plot_of(Spending(TODAY, True, charged), NAMES)
    assert plot is not None
    assert [name for name, _ in plot.legend] == ["App 6", "App 5", "App 4", "App 3", "Other apps"]
    assert sum(spent for _, spent in plot.legend) == 28_000
    assert {bar.colour for bar in plot.bars} == set(range(COLOURS + 1))
    assert [row[0] for row in plot.rows] == sorted((row[0] for row in plot.rows), reverse=True)
    assert plot.summary == "$0.028 in the last 30 days, most of it on 23 February 2026: $0.007."
    assert plot.first == "31 January 2026"


def test_bars_are_stacked_inside_the_plot() -> None:
    first = TODAY - timedelta(days=DAYS - 1)
    charged = tuple((on, f"app-{number}", 10 ** (2 * number)) for on in (first, TODAY) for number in range(7))
    plot = plot_of(Spending(TODAY, False, charged), NAMES)
    assert plot is not None
    assert all(bar.height >= 1 and bar.y >= 0 and bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in plot.bars)
    for x in {bar.x for bar in plot.bars}:
        column = sorted((bar for bar in plot.bars if bar.x == x), key=lambda bar: -bar.y)
        assert column[0].y + column[0].height == HEIGHT
        assert all(above.y + above.height == below.y for below, above in pairwise(column))
