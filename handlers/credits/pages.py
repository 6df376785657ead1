"""/account/credits: the person's credits, the holds of calls, and the ledger."""

from __future__ import annotations

from types import SimpleNamespace

from handlers.core.page import PageHandler
from handlers.core.params import once, parse_pairs
from handlers.credits.spending_plot import DAYS, plot_of
from store.credits.credits import Account, LedgerEntry

ENTRIES_ON_A_PAGE = 50


class CreditsHandler(PageHandler):
    """The page of the person's credits."""

    async def get(self) -> None:
        """Shows the balance, the spending of the last days, the holds and the newest entries. `before` shows older
        entries."""
        before = once(parse_pairs(self.request.query)).get("before") or ""
        profile, account = await self.store.credits.of(
            self.require_session(), before=before, most=ENTRIES_ON_A_PAGE + 1
        )
        spending = None if before else await self.store.credits.spending(self.require_session(), DAYS)
        names = await self.names_of(account, {client for _, client, _ in spending.charged} if spending else set())
        entries = account.entries[:ENTRIES_ON_A_PAGE]
        older = len(account.entries) > len(entries)
        self.render(
            "account/credits.html",
            title="Credits",
            signed_in=profile,
            account=account,
            names=names,
            plot=plot_of(spending, names) if spending else None,
            entries=entries,
            by_app=by_app(entries),
            before=before,
            onward=entries[-1].entry_id if older else None,
        )

    async def names_of(self, account: Account, also: set[str]) -> dict[str, str]:
        """The names of the shown apps, by client id. An app may have been deleted since."""
        clients = also | {entry.client for entry in account.entries} | {hold.client for hold in account.holds}
        apps = {client: await self.store.apps.remembered(client) for client in clients - {""}}
        return {client: app.name if app else "An app that no longer exists" for client, app in apps.items()}


def by_app(entries: tuple[LedgerEntry, ...]) -> list[SimpleNamespace]:
    """The charges of these entries by app, in micro-dollars, the largest sum first."""
    sums: dict[str, SimpleNamespace] = {}
    for entry in entries:
        if entry.kind == "charge":
            app = sums.setdefault(entry.client, SimpleNamespace(client=entry.client, spent=0, calls=0))
            app.spent -= entry.amount
            app.calls += 1
    return sorted(sums.values(), key=lambda app: (-app.spent, app.client))
