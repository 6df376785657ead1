"""/admin/credits: ledger search, and the report on everybody's credits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import date
from urllib.parse import urlencode

from handlers.admin.base import valid
from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.admin.console.person import KINDS
from handlers.admin.credits import FILTERS, NAMES, days_of, filter_of
from handlers.charts.chart import Chart, Series, chart_of, days_until
from handlers.charts.csv_file import MEDIA_TYPE, csv_of
from handlers.charts.scale import MONEY, dollars
from handlers.core.page import DownloadPage
from observability.spans import continued
from store.clock import wall
from store.credits.credits import LedgerEntry
from store.operations import person_named
from store.operators.jobs import OperatorJob
from store.operators.ledger_search import FOREVER
from store.phrases import Phrase
from store.refused import Refused

CREDITS = "/admin/credits"
PAGE = 50
DAYS = 30
"""The days of the chart."""
SERIES = {
    "charged": Phrase("Charged"),
    "bought": Phrase("Bought"),
    "granted": Phrase("Granted"),
    "refunded": Phrase("Refunded"),
}
"""The sums of a day that the chart shows, by their public names."""
NOTICES = {"begun": Phrase("The report is being made."), "busy": Phrase("Another report is already being made.")}


class CreditsDesk(ConsolePage):
    """Shared by these pages."""

    def came_back_to(self) -> str:
        """The page."""
        return CREDITS

    async def show(self, error: str = "") -> None:
        """Shows what a person's ledger has, or else the report."""
        params = self.asked()
        chosen = {name: (params.get(name) or "").strip()[:254] for name in ("person", *FILTERS)}
        email, entries, onward, cursor = "", list[LedgerEntry](), "", params.get("cursor") or ""
        try:
            with valid():
                wanted = filter_of(params, Phrase("Since"), Phrase("Until"))
                if chosen["person"] and not error:
                    person = await self.store.operator.find(person_named(chosen["person"]), 0)
                    found = await self.store.ledgers.page(person.user, wanted, PAGE, cursor)
                    email, entries, onward = person.email, [*found.entries], found.cursor
                    chosen["person"] = person.user
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "not_found") or self.wants_json():
                raise
            error = refusal.description
        if error:
            self.set_status(400)
        job = None if email else await self.store.credit_reports.last()
        shown = job.report.get("found", [])[:PAGE] if job else []
        named = [*shown, *(job.report.get("differences", []) if job else [])]
        kept = {name: value for name, value in chosen.items() if value}
        self.show_page(
            "admin/credits.html",
            CREDITS,
            Phrase("Credits"),
            scripts=True,
            chosen=chosen,
            error=error,
            email=email,
            entries=entries,
            kinds=KINDS,
            chips=chips_of(CREDITS, chosen, kind=KINDS),
            job=job,
            asked=asked_of(job),
            report=job.report if job else {},
            chart=self._chart(job) if job else None,
            csv=f"{CREDITS}/days",
            found=shown,
            people=await self.addresses_of(one["person"] for one in named),
            names=await self.names_of([one.client for one in entries] + [one["client_id"] for one in shown]),
            first=f"?{urlencode(kept)}" if cursor else "",
            onward=f"?{urlencode({**kept, 'cursor': onward})}" if onward else "",
            notice=self.notice(NOTICES),
        )

    def _chart(self, job: OperatorJob) -> Chart | None:
        sums = days_of(job)
        days = days_until(_last_day(job, sums), DAYS)
        series = [Series(name, tuple(sums.get(day, {}).get(key, 0) for day in days)) for key, name in SERIES.items()]
        return chart_of(days, series, MONEY, self.wording(self.person.preferences))


def _last_day(job: OperatorJob, sums: dict[date, dict[str, int]]) -> date:
    """The last day of the chart: today, or the last one with sums in a report on earlier days."""
    return max(sums) if sums and job.order["until"] != FOREVER else wall.utc().date()


def asked_of(job: OperatorJob | None) -> list[str]:
    """What a report looked for: the ids, and the kind as people know it."""
    looked = [job.order[name] for name in ("app", "kind", "transaction") if job.order[name]] if job else []
    return [KINDS.get(one, one) for one in looked]


class ConsoleCreditsDeskHandler(CreditsDesk):
    """The page."""

    async def get(self) -> None:
        """Shows it."""
        await self.show()


class ConsoleCreditDaysHandler(CreditsDesk, DownloadPage):
    """…/days."""

    async def get(self) -> None:
        """Sends the sums by day as CSV, in dollars."""
        job = await self.store.credit_reports.last()
        names = [*NAMES.values()]
        rows = [
            (day.isoformat(), *(dollars(sums.get(name, 0)) for name in names))
            for day, sums in (days_of(job) if job else {}).items()
        ]

        async def pieces() -> AsyncGenerator[bytes, None]:
            yield csv_of(("day", *names), rows)

        await self.send_file("credits-by-day.csv", MEDIA_TYPE, pieces())


class ConsoleCreditReportHandler(CreditsDesk):
    """…/report."""

    async def post(self) -> None:
        """Begins a new report in the background."""
        params = self.body()
        try:
            with valid():
                wanted = filter_of(params, Phrase("Since"), Phrase("Until"))
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show(refusal.description)
        reports = self.store.credit_reports
        job = await reports.begin(self.actor, wanted)
        if job:
            self.site.in_background(continued(self.request, "report on credits", reports.run(job)))
        self.see_done(f"{CREDITS}?{'begun' if job else 'busy'}")
