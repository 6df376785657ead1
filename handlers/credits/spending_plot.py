"""The spending of apps in the last days, as stacked bars and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from handlers.core.format import day, money
from store.credits.credits import Spending

DAYS = 30
PLACES = ("first", "second", "third", "fourth", "other")
"""The colours, by their names in the stylesheet."""
COLOURS = len(PLACES) - 1
"""Apps with a colour of their own. The others share the last colour."""
WIDTH, HEIGHT = 720, 150
_STEP = WIDTH // DAYS
_GAP = 4
_OTHERS = "Other apps"


@dataclass(frozen=True, slots=True)
class BarPiece:
    """A part of a bar, in the units of the plot. `colour` is a place in the legend."""

    x: int
    y: int
    width: int
    height: int
    colour: int


@dataclass(frozen=True, slots=True)
class Plot:
    """`legend`: name and sum by place. `rows`: day, app and sum, the newest day first. Sums are in micro-dollars."""

    bars: tuple[BarPiece, ...]
    legend: tuple[tuple[str, int], ...]
    rows: tuple[tuple[date, str, int], ...]
    summary: str
    first: str
    highest: int
    whole: bool


def plot_of(spending: Spending, names: Mapping[str, str]) -> Plot | None:
    """The plot; None if nothing was spent on these days. `names` has the names of apps by client id."""
    charged = [row for row in spending.charged if row[2] > 0]
    if not charged:
        return None
    by_client: defaultdict[str, int] = defaultdict(int)
    by_day: defaultdict[date, int] = defaultdict(int)
    for on, client, amount in charged:
        by_client[client] += amount
        by_day[on] += amount
    ranked = sorted(by_client, key=lambda client: (-by_client[client], client))
    place = {client: min(number, COLOURS) for number, client in enumerate(ranked)}
    legend = [(names[client], by_client[client]) for client in ranked[:COLOURS]]
    if ranked[COLOURS:]:
        legend.append((_OTHERS, sum(by_client[client] for client in ranked[COLOURS:])))
    first = spending.today - timedelta(days=DAYS - 1)
    highest = max(by_day.values())
    best = max(by_day, key=lambda on: (by_day[on], on))
    summary = f"{money(sum(by_day.values()))} in the last {DAYS} days, most of it on {in_words(best)}"
    newest = sorted(charged, key=lambda row: row[0], reverse=True)
    return Plot(
        tuple(_bars(charged, place, first, highest)),
        tuple(legend),
        tuple((on, names[client], amount) for on, client, amount in newest),
        f"{summary}: {money(by_day[best])}.",
        in_words(first),
        highest,
        spending.whole,
    )


def in_words(on: date) -> str:
    """A day in the words of the pages."""
    return day(datetime(on.year, on.month, on.day, tzinfo=UTC))


def _bars(charged: list[tuple[date, str, int]], place: Mapping[str, int], first: date, highest: int) -> list[BarPiece]:
    """The parts from the bottom up, in the order of the legend. Even the smallest sum stays visible."""
    sums: defaultdict[tuple[date, int], int] = defaultdict(int)
    for on, client, amount in charged:
        sums[on, place[client]] += amount
    bars: list[BarPiece] = []
    tops: defaultdict[date, int] = defaultdict(int)
    for (on, colour), amount in sorted(sums.items()):
        height = max(1, amount * (HEIGHT - COLOURS) // highest)
        tops[on] += height
        x = (on - first).days * _STEP + _GAP // 2
        bars.append(BarPiece(x, HEIGHT - tops[on], _STEP - _GAP, height, colour))
    return bars
