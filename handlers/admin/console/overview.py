"""/admin: what is left to do after the installation, and the health of the server."""

from __future__ import annotations

from typing import NamedTuple

from handlers.admin.console.base import CONSOLE, ConsolePage
from store.operators.health import StoreHealth
from store.phrases import Phrase


class ChecklistRow(NamedTuple):
    """A row of the list: what is checked, whether it is done, and what to do otherwise."""

    name: str
    done: bool
    remedy: str


class ConsoleHandler(ConsolePage):
    """The overview."""

    async def get(self) -> None:
        """Shows the checklist and the health."""
        store = self.store
        admins = [one for one in await store.role_holders.list() if one.role == "admin"]
        health: StoreHealth = await store.health.read()
        self.show_page(
            "admin/overview.html",
            CONSOLE,
            Phrase("Overview"),
            checks=self._checks(len(admins)),
            health=health,
            queues=(
                (Phrase("Calls to the store"), store.queue),
                (Phrase("Events of the security log"), store.security.waiting),
                (Phrase("Webhooks"), health.webhooks_waiting),
                (Phrase("Requests in progress"), self.application.in_flight),
            ),
            room=not store.headroom.low,
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
                Phrase("Give somebody else the role on their page under People."),
            ),
        ]
