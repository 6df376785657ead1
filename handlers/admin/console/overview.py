"""/admin: what is left to do after the installation, and a summary of the server's health."""

from __future__ import annotations

from typing import NamedTuple

from handlers.admin.console.base import CONSOLE, ConsolePage
from handlers.admin.console.figures import DAYS, charts_of
from handlers.admin.server_health import ServerHealth, health_of
from store.moments import at
from store.operators.health import DAY_MS, OLD_COPY_DAYS
from store.phrases import Phrase

QUEUES = {
    "storeCalls": Phrase("Calls to the store"),
    "securityEvents": Phrase("Security log events"),
    "webhooks": Phrase("Webhooks"),
    "requests": Phrase("Requests in progress"),
}
"""The names of queues, by their public names."""


class ChecklistRow(NamedTuple):
    """A row of the list: what is checked, whether it is done, and what to do otherwise."""

    name: str
    done: bool
    remedy: str


class ConsoleHandler(ConsolePage):
    """The overview."""

    async def get(self) -> None:
        """Shows the checklist, the health, and how many people sign in."""
        store = self.store
        admins = [one for one in await store.role_holders.list() if one.role == "admin"]
        found = await health_of(self.application, self.site)
        self.show_page(
            "admin/overview.html",
            CONSOLE,
            Phrase("Overview"),
            scripts=True,
            checks=[*self._checks(len(admins)), *checks_of(found)],
            health=found.store,
            saved_at=snapshot_of(found),
            queues=[(QUEUES[name], count) for name, count in found.queues.items()],
            room=found.room,
            charts=charts_of(await store.activity_figures.days(DAYS), self.wording()),
            csv=f"{CONSOLE}/sign-ins",
        )

    def _checks(self, admins: int) -> list[ChecklistRow]:
        site = self.site
        return [
            ChecklistRow(
                Phrase("People reach the server by https"),
                site.base_url.startswith("https://"),
                Phrase("Put a proxy with a certificate in front, and set --base-url to its address."),
            ),
            ChecklistRow(
                Phrase("E-mail reaches people"),
                site.mail.confirms,
                Phrase("Set --smtp-url, and send yourself a link from your own page."),
            ),
            ChecklistRow(
                Phrase("A second administrator can help if the first can’t sign in"),
                admins > 1,
                Phrase("Give someone else the role, on their page under People."),
            ),
        ]


def checks_of(found: ServerHealth) -> list[ChecklistRow]:
    """The rows about backups and keys."""
    saved, ages = found.store.saved, found.ages
    made = saved.snapshot_at if saved else 0
    return [
        ChecklistRow(
            Phrase("The store made a snapshot within the last week"),
            made > ages.now - OLD_COPY_DAYS * DAY_MS,
            Phrase("Run “latchkey store backup” every day, and keep the copies on another machine."),
        ),
        ChecklistRow(
            Phrase("The keys are less than a year old"),
            not (ages.old_secret or ages.old_signing),
            Phrase("Run “latchkey keys rotate” and “latchkey keys signing rotate”."),
        ),
    ]


def snapshot_of(found: ServerHealth) -> object:
    """When the store made its last snapshot; None if that is not known."""
    saved = found.store.saved
    return at(saved.snapshot_at) if saved and saved.snapshot_at else None
