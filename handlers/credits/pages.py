"""/account/credits: the person's credits, the holds of calls, and the ledger."""

from __future__ import annotations

from types import SimpleNamespace

from handlers.charts.chart import RANGES
from handlers.charts.csv_file import MEDIA_TYPE
from handlers.core.page import PageHandler
from handlers.core.params import once, parse_pairs
from handlers.credits.spending import DAYS, chart_of_spending, days_asked, spending_file
from store.credits.credits import Account, LedgerEntry, Spending
from store.phrases import Phrase

ENTRIES_ON_A_PAGE = 20
PAID = "paid"
NOTICES = {
    "mails": Phrase("Saved."),
    PAID: Phrase("Thank you! Your credits appear here when the payment is confirmed, usually within a minute."),
}


class CreditsPage(PageHandler):
    """A page about the person's credits."""

    async def names_of(self, clients: set[str]) -> dict[str, str]:
        """The names of apps, by client id. An app may have been deleted since."""
        apps = {client: await self.store.apps.remembered(client) for client in clients - {""}}
        return {client: app.name if app else "An app that no longer exists" for client, app in apps.items()}

    async def show_credits(self, before: str = "", days: int = DAYS, typed: str = "", error: str = "") -> None:
        """Shows the balance, the spending of the last `days`, the holds and the newest entries before `before`. `typed`
        and `error`: the amount that the person wants to buy, and why it is wrong."""
        profile, account = await self.store.credits.of(
            self.require_session(), before=before, most=ENTRIES_ON_A_PAGE + 1
        )
        spending = None if before else await self.store.credits.spending(self.require_session(), days)
        names = await self.names_of(clients_of(account, spending))
        entries = account.entries[:ENTRIES_ON_A_PAGE]
        older = len(account.entries) > len(entries)
        wording = self.wording(profile.preferences)
        if self.site.payments:
            self.allow_form_to_page(self.site.payments.page)
        self.render(
            "account/credits.html",
            title=Phrase("Credits"),
            signed_in=profile,
            account=account,
            mails=account.mails if self.site.mail.confirms else None,
            notice=self.notice(NOTICES),
            names=names,
            chart=chart_of_spending(spending, names, days, wording) if spending else None,
            whole=spending is None or spending.whole,
            range_here=days,
            ranges=[(choice, f"/account/credits?days={choice}") for choice in RANGES],
            csv=f"/account/credits/spending.csv?days={days}",
            entries=entries,
            by_app=by_app(entries),
            before=before,
            onward=entries[-1].entry_id if older else None,
            purchases=self.site.purchases if self.site.payments else None,
            typed=typed,
            purchase_error=error,
        )


class CreditsHandler(CreditsPage):
    """The page of the person's credits."""

    uses_scripts = True

    async def get(self) -> None:
        """Shows the balance, the spending of the last days (`days`, 30), the holds and the newest entries. `before`
        shows older entries."""
        sent = once(parse_pairs(self.request.query))
        await self.show_credits(sent.get("before") or "", days_asked(sent.get("days")))


class CreditMailsHandler(PageHandler):
    """Whether the person gets mails about limits and a low balance."""

    async def post(self) -> None:
        """Takes the switch. Raises SignedOut."""
        self.check_same_origin()
        await self.store.credits.choose_mails(self.require_session(), wanted=self.body().get("wanted") == "yes")
        self.see_done("/account/credits?mails")


class SpendingFileHandler(CreditsPage):
    """The person's spending as a CSV file."""

    async def get(self) -> None:
        """Sends the sums of each day and app, for the last days (`days`, 30)."""
        days = days_asked(once(parse_pairs(self.request.query)).get("days"))
        spending = await self.store.credits.spending(self.require_session(), days)
        names = await self.names_of({client for _, client, _ in spending.charged})
        self.set_header("Content-Type", MEDIA_TYPE)
        self.set_header("Content-Disposition", f'attachment; filename="spending-{spending.today}-{days}-days.csv"')
        self.finish(spending_file(spending, names))


def clients_of(account: Account, spending: Spending | None) -> set[str]:
    """The client ids of all apps that the page names."""
    shown = {entry.client for entry in account.entries} | {hold.client for hold in account.holds}
    return shown | ({client for _, client, _ in spending.charged} if spending else set())


def by_app(entries: tuple[LedgerEntry, ...]) -> list[SimpleNamespace]:
    """The charges of these entries by app, in micro-dollars, the largest sum first."""
    sums: dict[str, SimpleNamespace] = {}
    for entry in entries:
        if entry.kind == "charge":
            app = sums.setdefault(entry.client, SimpleNamespace(client=entry.client, spent=0, calls=0))
            app.spent -= entry.amount
            app.calls += 1
    return sorted(sums.values(), key=lambda app: (-app.spent, app.client))
