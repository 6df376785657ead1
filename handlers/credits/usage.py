"""What AI calls used: for apps as JSON, for people as a page and as a CSV file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from handlers.charts.chart import RANGES, Series, chart_of, days_until, in_words, ranked
from handlers.charts.csv_file import MEDIA_TYPE, csv_of
from handlers.charts.scale import MONEY, dollars
from handlers.core.api import ApiHandler
from handlers.core.lists.paging import ListPart, part_of
from handlers.core.params import once, parse_pairs
from handlers.credits.pages import CreditsPage
from handlers.credits.spending import days_asked
from store.credits.credits import CURRENCY, SCALE
from store.credits.prices import INPUT_KINDS
from store.credits.records import total_record
from store.credits.usage import UsageReport
from store.credits.used import Total, UsageRow, totals
from store.phrases import Phrase
from store.refused import Refused

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
GROUPS: dict[str, Callable[[UsageRow], str]] = {
    "day": lambda row: row.day.isoformat(),
    "model": lambda row: row.model,
    "app": lambda row: row.client,
}
"""The groups of a report, each with what its rows have in common."""
ROWS = 20
"""Rows of a list on the page."""
_NAMES = {"app": "client_id"}
_KINDS = ("output", *INPUT_KINDS)
USED = ("model", "calls", "dollars", *(f"{kind}_tokens" for kind in _KINDS), "web_searches")
"""The columns of a file for what a model's calls used."""
_HEADER = ("day", "client_id", "app", *USED)


class UsageReportHandler(ApiHandler):
    """What the app's calls for the person used."""

    async def get(self) -> None:
        """Answers with the sums of each day, model or app (`group`), from `from` to `to`. Raises Refused."""
        caller = await self.caller()
        sent = once(parse_pairs(self.request.query))
        group = sent.get("group") or "day"
        if group not in GROUPS:
            raise Refused("invalid_request", "group is day, model or app.")
        first, last = (_day(name, sent.get(name)) for name in ("from", "to"))
        usage, window = await self.store.usage.report(caller, self.needed, first, last)
        self.write_window(window)
        name = _NAMES.get(group, group)
        items = [{name: of, **total_record(total)} for of, total in usage.by(GROUPS[group]).items()]
        self.write_json({"items": items, "currency": CURRENCY, "scale": SCALE})


class UsagePageHandler(CreditsPage):
    """The person's usage, by model, app and day."""

    uses_scripts = True

    async def get(self) -> None:
        """Shows what calls used on the last days (`days`, 30)."""
        days = days_asked(once(parse_pairs(self.request.query)).get("days"))
        profile, usage = await self.store.usage.of(self.require_session(), days)
        names = await self.names_of({row.client for row in usage.rows})
        wording, shown = self.wording(profile.preferences), days_until(usage.last, days)
        by_day = usage.by(lambda row: row.day)

        def part(name: str, rows: list[tuple[str, Total]]) -> ListPart[tuple[str, Total]]:
            name, anchor = f"{name}_page", name
            return part_of(rows, ROWS, self.page_asked(name), f"/account/credits/usage?days={days}", name, anchor)

        self.render(
            "account/usage.html",
            title=Phrase("Usage"),
            signed_in=profile,
            chart=chart_of(shown, _by_model(usage, shown), MONEY, wording),
            by_model=part("models", ranked_totals(usage.rows, "model")),
            by_app=part("apps", ranked_totals(usage.rows, "app")),
            by_day=part("days", [(in_words(wording, on), by_day[on]) for on in sorted(by_day, reverse=True)]),
            names=names,
            range_here=days,
            ranges=[(choice, f"/account/credits/usage?days={choice}") for choice in RANGES],
            csv=f"/account/credits/usage.csv?days={days}",
        )


class UsageRowsHandler(CreditsPage):
    """The person's usage as a CSV file."""

    async def get(self) -> None:
        """Sends a row for each day, app and model of the last days (`days`, 30)."""
        days = days_asked(once(parse_pairs(self.request.query)).get("days"))
        _, usage = await self.store.usage.of(self.require_session(), days)
        names = await self.names_of({row.client for row in usage.rows})
        self.set_header("Content-Type", MEDIA_TYPE)
        self.set_header("Content-Disposition", f'attachment; filename="usage-{usage.last}-{days}-days.csv"')
        rows = [(row.day.isoformat(), row.client, names.get(row.client, ""), *used_cells(row)) for row in usage.rows]
        self.finish(csv_of(_HEADER, rows))


def _day(name: str, text: str | None) -> date | None:
    """A day of a query. Raises Refused("invalid_request")."""
    if not text:
        return None
    try:
        day = date.fromisoformat(text) if DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None or day.year < 1970:
        raise Refused("invalid_request", f"{name} is a day such as 2026-01-31.")
    return day


def used_cells(row: UsageRow) -> tuple[str, ...]:
    """The cells of the columns `USED`."""
    numbers = (*(getattr(row.tokens, kind) for kind in _KINDS), row.tokens.web_search)
    return (row.model, str(row.calls), dollars(row.charged), *map(str, numbers))


def ranked_totals(rows: Iterable[UsageRow], group: str) -> list[tuple[str, Total]]:
    """The sums of each model or app, the dearest first."""
    return sorted(totals(rows, GROUPS[group]).items(), key=lambda one: (-one[1].charged, one[0]))


def _by_model(usage: UsageReport, shown: Sequence[date]) -> tuple[Series, ...]:
    """The charges of each model by day."""
    sums = usage.by(lambda row: (row.model, row.day))
    series = [
        Series(model, tuple(sums[model, on].charged if (model, on) in sums else 0 for on in shown))
        for model in sorted({row.model for row in usage.rows})
    ]
    return ranked(series, Phrase("Other models"))
