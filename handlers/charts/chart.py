"""A chart by day: stacked columns with axis and grid as the template draws them, and the same numbers as a table.

Positions are percentages of the drawing area. So the picture is as wide as its place on the page, and its text keeps
the size of the page's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from handlers.charts.scale import Measure, grid
from handlers.core.words import formats
from handlers.core.words.wording import NBSP, Wording

COLOURS = ("first", "second", "third", "fourth", "other")
"""The colours of series, by their names in the stylesheet. The last is for what has no series of its own."""
RANGES = (7, 30, 90)
"""Days that a reader can choose to see."""
GAP = 0.24
"""The free part of a column's width."""
VISIBLE = 0.8
"""The height of the smallest part, in percent, so that it can be seen."""
_UNBROKEN = str.maketrans({" ": NBSP, "年": "年\N{WORD JOINER}", "月": "月\N{WORD JOINER}"})
"""No line of a summary ends within its day. A Japanese day has no blanks."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values by day, none negative, the oldest first."""

    name: str
    values: tuple[int, ...]

    @property
    def total(self) -> int:
        """The sum of all days."""
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a column: its upper edge and its height."""

    top: str
    height: str
    colour: str


@dataclass(frozen=True, slots=True)
class Column:
    """A day. `day`: its name in the table. `text`: what it shows, in a line. `cells`: the values for the table, in the
    order of the series."""

    on: date
    day: str
    left: str
    width: str
    parts: tuple[Part, ...]
    text: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GridLine:
    """A line across the chart, and what it stands for."""

    top: str
    label: str


@dataclass(frozen=True, slots=True)
class DayLabel:
    """A day below the chart. `anchor` is SVG's `text-anchor`. `extra`: a narrow chart has no room for it."""

    left: str
    anchor: str
    text: str
    extra: bool


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A series: its colour, name and sum."""

    colour: str
    name: str
    total: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All that the template draws. `total`: the sum of all values, written for people."""

    columns: tuple[Column, ...]
    lines: tuple[GridLine, ...]
    days: tuple[DayLabel, ...]
    legend: tuple[LegendEntry, ...]
    total: str
    summary: str


def days_until(today: date, days: int) -> tuple[date, ...]:
    """The last `days` days up to `today`, the oldest first."""
    return tuple(today - timedelta(days=ago) for ago in range(days - 1, -1, -1))


def ranked(series: Sequence[Series], others: str) -> tuple[Series, ...]:
    """The series with the greatest sums, one a colour. What is left shares a last one, named `others`."""
    by_size = sorted((one for one in series if one.total), key=lambda one: (-one.total, one.name))
    own = len(COLOURS) - 1
    rest = by_size[own:]
    if not rest:
        return tuple(by_size)
    together = tuple(sum(values) for values in zip(*(one.values for one in rest), strict=True))
    return (*by_size[:own], Series(others, together))


def chart_of(
    days: Sequence[date], series: Sequence[Series], measure: Measure, wording: Wording, *, summed: bool = True
) -> Chart | None:
    """The chart of some series over the same days, for who reads like this; None if all values are zero. A series
    without a colour of its own has the last one. `summed`: the days add up; people who come every day do not."""
    sums = [sum(values) for values in zip(*(one.values for one in series), strict=True)]
    if not any(sums):
        return None
    values = grid(max(sums))
    top, room = values[-1], 100 / len(days)
    best = max(range(len(days)), key=lambda place: (sums[place], place))
    total, most = measure.text(wording, sum(sums)), measure.text(wording, sums[best])
    highest = in_words(wording, days[best]).translate(_UNBROKEN)
    summary = _summary(total, len(days), highest, most, wording)
    return Chart(
        tuple(_column(place, on, series, measure, wording, top, room) for place, on in enumerate(days)),
        tuple(
            GridLine(_percent(100 - 100 * value / top), label)
            for value, label in zip(values, measure.ticks(wording, values), strict=True)
        ),
        tuple(_day_labels(days, room, wording)),
        tuple(
            LegendEntry(_colour(place), wording.language.say(one.name), measure.text(wording, one.total))
            for place, one in enumerate(series)
        ),
        total,
        summary if summed else _highest(len(days), highest, most, wording),
    )


def in_words(wording: Wording, on: date) -> str:
    """A day in the words of the pages."""
    return formats.day(wording.language.row.dates, on)


def _summary(total: str, days: int, best: str, most: str, wording: Wording) -> str:
    _n = wording.language.plain_n
    return _n(
        "%(total)s in %(count)s day, most on %(best)s: %(most)s.",
        "%(total)s in %(count)s days, most on %(best)s: %(most)s.",
        days,
        total=total,
        best=best,
        most=most,
    )


def _highest(days: int, best: str, most: str, wording: Wording) -> str:
    _n = wording.language.plain_n
    return _n(
        "Up to %(most)s a day in %(count)s day, most on %(best)s.",
        "Up to %(most)s a day in %(count)s days, most on %(best)s.",
        days,
        best=best,
        most=most,
    )


def _column(
    place: int, on: date, series: Sequence[Series], measure: Measure, wording: Wording, top: int, room: float
) -> Column:
    parts, base = [], 100.0
    for number, one in enumerate(series):
        if value := one.values[place]:
            height = min(max(VISIBLE, 100 * value / top), base)
            base -= height
            parts.append(Part(_percent(base), _percent(height), _colour(number)))
    shown = [(one.name, one.values[place]) for one in series if one.values[place]]
    _, total = wording.language.plain, measure.text(wording, sum(one.values[place] for one in series))
    text = _("%(day)s: %(value)s", day=in_words(wording, on), value=total)
    if len(series) > 1 and shown:
        each = [_("%(series)s %(value)s", series=name, value=measure.text(wording, value)) for name, value in shown]
        text = _("%(text)s (%(each)s)", text=text, each=", ".join(each))
    return Column(
        on,
        formats.table_day(wording.language.row.dates, on),
        _percent((place + GAP / 2) * room),
        _percent(room * (1 - GAP)),
        tuple(parts),
        text,
        tuple(measure.cell(wording, one.values[place]) for one in series),
    )


def _day_labels(days: Sequence[date], room: float, wording: Wording) -> list[DayLabel]:
    """The first day, the last, and those that divide the time between them into quarters."""
    last = len(days) - 1
    places = [round(last * part / 4) for part in range(5)] if last >= 6 else [0, last]
    labels = []
    for number, place in enumerate(dict.fromkeys(places)):
        anchor = "start" if place == 0 else "end" if place == last else "middle"
        left = 0.0 if place == 0 else 100.0 if place == last else (place + 0.5) * room
        said, extra = formats.short_day(wording.language.row.dates, days[place]), len(places) > 2 and number % 2 == 1
        labels.append(DayLabel(_percent(left), anchor, said, extra))
    return labels


def _colour(place: int) -> str:
    return COLOURS[min(place, len(COLOURS) - 1)]


def _percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"
