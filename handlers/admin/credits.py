"""/api/admin/v1/credits: ledger search, and the report on everybody's credits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from handlers.admin.base import AdminHandler, Record, valid
from handlers.admin.trails import moment_of
from handlers.core.params import Params
from observability.spans import continued
from store.credits.credits import CURRENCY, SCALE
from store.credits.records import entry_record
from store.moments import at, timestamp
from store.operations import person_named
from store.operators.credit_report import check_known
from store.operators.jobs import OperatorJob
from store.operators.ledger_search import FOREVER, LedgerFilter
from store.refused import Refused

FILTERS = ("app", "kind", "transaction", "since", "until")
NAMES = {
    **{"grant": "granted", "taken": "taken", "purchase": "bought", "charge": "charged"},
    **{"reversal": "refunded", "returned": "returned"},
}
"""The sums of a day, by the names that the script gives."""


class AdminLedgerHandler(AdminHandler):
    """A person's ledger."""

    async def get(self) -> None:
        """A page of entries, newest first: of an app, of a kind, with an id, since and until a time."""
        params = self.query("person", *FILTERS, "limit", "cursor")
        limit, cursor = self.page(params)
        with valid():
            who = person_named(params.require("person"))
            wanted = filter_of(params)
        person = await self.store.operator.find(who, 0)
        found = await self.store.ledgers.page(person.user, wanted, limit, cursor)
        items = [{"person": person.user, "id": one.entry_id, **entry_record(one)} for one in found.entries]
        self.write_page(items, found.cursor)


class AdminCreditReportHandler(AdminHandler):
    """The report on everybody."""

    async def get(self) -> None:
        """The last report, or how far it is."""
        self.query()
        self.write_json(report_record(check_known(await self.store.credit_reports.last())))

    async def post(self) -> None:
        """Begins a new report in the background."""
        with valid():
            wanted = filter_of(self.fields(*FILTERS))
        await self.answer_once(lambda: self._begin(wanted))

    async def _begin(self, wanted: LedgerFilter) -> Record:
        reports = self.store.credit_reports
        job = await reports.begin(self.actor, wanted)
        if job is None:
            raise Refused("invalid_request", "A report is being made. GET this address to see how far it is.")
        self.site.in_background(continued(self.request, "report on credits", reports.run(job)))
        return report_record(check_known(await reports.last()))


def filter_of(params: Params, since_name: str = "since", until_name: str = "until") -> LedgerFilter:
    """The filter in a query or a form. Errors name its ends by `since_name` and `until_name`. Raises ValueError,
    Refused("invalid_request")."""
    app, kind, transaction, since, until = ((params.get(name) or "").strip() for name in FILTERS)
    begin = moment_of(since, since_name) if since else 0
    end = moment_of(until, until_name) if until else FOREVER
    return LedgerFilter(app, kind, transaction, begin, end).checked()


def days_of(job: OperatorJob) -> dict[date, dict[str, int]]:
    """The sums of a report by day, the oldest first: each by its public name."""
    days: dict[int, dict[str, int]] = {}
    for key, amount in job.report.get("days", {}).items():
        day, _, kind = key.partition(" ")
        if kind in NAMES:
            days.setdefault(int(day), {})[NAMES[kind]] = amount
    start = datetime.fromtimestamp(0, UTC).date()
    return {start + timedelta(days=day): sums for day, sums in sorted(days.items())}


def report_record(job: OperatorJob) -> Record:
    """The report as JSON."""
    report, order = job.report, LedgerFilter(**job.order)
    nothing = dict.fromkeys(NAMES.values(), 0)
    return {
        **{"state": job.state, "done": job.done, "total": job.total, "at": timestamp(at(job.at)) if job.at else None},
        **{"currency": CURRENCY, "scale": SCALE, "app": order.app, "kind": order.kind},
        "transaction": order.transaction,
        "days": [{"day": day.isoformat(), **nothing, **sums} for day, sums in days_of(job).items()],
        "reconciliation": {
            **{name: report.get(name, 0) for name in ("people", "paid", "ledger", "different")},
            "differences": report.get("differences", []),
        },
        **{"items": report.get("found", []), "more": report.get("more", False)},
    }
