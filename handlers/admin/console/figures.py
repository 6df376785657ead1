"""How many people sign in, by day: the charts of the overview, and the same numbers as a CSV file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple

from handlers.admin.console.base import ConsolePage
from handlers.charts.chart import Chart, Series, chart_of
from handlers.charts.csv_file import MEDIA_TYPE, csv_of
from handlers.charts.scale import NUMBER
from handlers.core.page import DownloadPage
from handlers.core.words.wording import Wording
from store.accounts.audit.activity_figures import DayFigures
from store.phrases import Phrase

DAYS: Final = 30
"""Days of the charts."""
FILE_DAYS: Final = 90
"""Days of the file."""
_HEADER: Final = ("day", "sign_ins", "refusals", "sign_ups", "active_people")
ACTIVE: Final = "active"
"""The chart whose days do not add up: who is active on two days is one person."""
_CHARTS: Final = (
    ("sign-ins", Phrase("Sign-ins"), ((Phrase("Succeeded"), "sign_ins"), (Phrase("Refused"), "refusals"))),
    (ACTIVE, Phrase("Active people"), ((Phrase("Active people"), "active"),)),
    ("sign-ups", Phrase("Sign-ups"), ((Phrase("Sign-ups"), "sign_ups"),)),
)


class FigureChart(NamedTuple):
    """A chart of the overview. `id`: of its heading. `chart` is None if all days are zero."""

    id: str
    title: str
    chart: Chart | None


def charts_of(figures: Sequence[DayFigures], wording: Wording) -> list[FigureChart]:
    """The charts of these days."""
    days = [one.on for one in figures]
    return [
        FigureChart(
            name,
            title,
            chart_of(
                days,
                [Series(label, tuple(getattr(one, field) for one in figures)) for label, field in series],
                NUMBER,
                wording,
                summed=name != ACTIVE,
            ),
        )
        for name, title, series in _CHARTS
    ]


class ConsoleFiguresFileHandler(ConsolePage, DownloadPage):
    """The file."""

    async def get(self) -> None:
        """Sends a row for each day, the oldest first."""
        figures = await self.store.activity_figures.days(FILE_DAYS)

        async def pieces() -> AsyncGenerator[bytes, None]:
            rows = ((one.sign_ins, one.refusals, one.sign_ups, one.active) for one in figures)
            yield csv_of(
                _HEADER, [(day.on.isoformat(), *map(str, row)) for day, row in zip(figures, rows, strict=True)]
            )

        await self.send_file(f"sign-ins-{figures[-1].on}.csv", MEDIA_TYPE, pieces())
