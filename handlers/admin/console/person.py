"""/admin/people/ID: one person, with what operators may do to them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

from handlers.admin.console.base import role_name
from handlers.admin.console.event_names import EVENTS
from handlers.admin.console.fields import FieldsPage
from handlers.admin.console.people import PEOPLE, STATUS_NAMES
from handlers.core.devices import device_phrase
from handlers.core.lists.paging import ListedItem, ListPart, part_of
from handlers.core.page import DownloadPage
from handlers.core.params import Params
from store.credits.credits import Account
from store.operators.person_view import PersonView
from store.operators.roles import APART, PEOPLES_ROLES, OperatorAct, OperatorActor, may
from store.phrases import Phrase

ENTRIES, EVENTS_SHOWN = 5, 8
"""Lines of the ledger, and events, on this page."""
ROWS = {"passkeys": 5, "accounts": 4, "sessions": 6, "apps": 6, "registered": 10, "documents": 4}
"""Rows of each list on a page."""
ON_PEOPLE: Final[tuple[OperatorAct, ...]] = (
    "people.suspend",
    "people.resume",
    "people.sign_out",
    "people.send_link",
    "people.reset_factors",
    "people.export",
    "people.export_documents",
    "people.delete",
    "people.change",
    "credits.give",
    "roles.give",
)
"""The acts that a person's page offers."""
TO_ONESELF: Final = frozenset[OperatorAct](("people.export", "people.export_documents", "credits.give"))
"""Acts that the table allows on the own account."""
TO_BE_DELETED = Phrase("To be deleted")
USUAL_DAYS = 7
"""How long a planned deletion waits, if the operator changes nothing in its form."""
KINDS = {
    "grant": Phrase("Credits from the operator"),
    "purchase": Phrase("Purchase"),
    "reversal": Phrase("Refund or dispute"),
    "charge": Phrase("AI call"),
}
"""What an entry of the ledger is."""
NOTICES = {
    "planned": Phrase("The account is disabled, and will be deleted. The person gets an e-mail."),
    "session": Phrase("The person is signed out on that device."),
    "disconnected": Phrase("The app was disconnected. Its documents are kept for 30 days."),
    "unlinked": Phrase("This person can no longer sign in with that account."),
    "kept": Phrase("The deletion was cancelled. The person gets an e-mail."),
    "suspended": Phrase("The account is suspended. Every session and token has ended."),
    "resumed": Phrase("The account works again."),
    "signed-out": Phrase("Every session of this person has ended. Apps keep their access."),
    "reset": Phrase(
        "Two-step verification is off and the passkeys are removed. The password alone is enough to sign in now."
    ),
    "link": Phrase("The e-mail is on its way."),
    "email": Phrase("The address was changed. The person gets an e-mail at both addresses."),
    "credits": Phrase("The credits were changed."),
    "role": Phrase("The role was changed. The person gets an e-mail."),
}

CREDITS_CHANGED = Phrase("Credits changed by %(amount)s. The balance is now %(balance)s.")


def _status(view: PersonView) -> str:
    return "suspended" if view.summary.suspended else view.person.status


def offered(actor: OperatorActor, view: PersonView) -> frozenset[OperatorAct]:
    """What this operator may do to this person: what the page has buttons for. The store checks it once more."""
    acts = {act for act in ON_PEOPLE if may(actor.role, act)}
    if view.person.user == actor.id:
        acts &= TO_ONESELF
    if view.role:
        acts.discard("people.delete")
        if actor.role != "admin":
            acts -= APART
    acts.discard("people.resume" if view.person.status == "active" else "people.suspend")
    if view.person.delete_at:
        acts -= {"people.resume", "people.suspend", "people.send_link"}
    return frozenset(acts)


class PersonPage(FieldsPage, DownloadPage):
    """Shared by the page of a person and its forms."""

    async def show(self, user: str, part: str = "", error: str = "", typed: Params | None = None) -> None:
        """The page. `part`: the form with the error, which shows what was `typed`. Raises Refused("not_found")."""
        store = self.store
        view = await store.people_acts.view(user)
        person = view.person
        clients = [grant.client for grant in person.grants]
        account, hosted, names = await asyncio.gather(
            store.credits.show(user, most=ENTRIES),
            store.hosted_sizes.of(user, clients),
            self.names_of([*clients, *person.registered, *(entry.client for entry in person.activity)]),
        )
        acts = offered(self.actor, view)

        def listed(name: str, rows: Sequence[ListedItem], anchor: str = "") -> ListPart[ListedItem]:
            return part_of(rows, ROWS[name], self.page_asked(name), f"{PEOPLE}/{user}", name, anchor or name)

        sessions = listed("sessions", view.security.sessions)
        self.show_page(
            "admin/person.html",
            PEOPLE,
            person.name or person.email,
            view=view,
            person=person,
            summary=view.summary,
            status_name=TO_BE_DELETED if person.delete_at else STATUS_NAMES[_status(view)],
            usual_days=USUAL_DAYS,
            role_here=role_name(view.role) if view.role else "",
            roles=[(role, role_name(role)) for role in PEOPLES_ROLES],
            itself=user == self.actor.id,
            offers=acts,
            account=account,
            kinds=KINDS,
            hosted=listed("documents", [(client, names[client], usage) for client, usage in hosted.items()]),
            passkeys=listed("passkeys", view.security.passkeys, "signing-in"),
            accounts=listed("accounts", view.security.identities, "accounts"),
            grants=listed("apps", person.grants),
            registered=listed("registered", person.registered),
            names=names,
            sessions=sessions,
            signed_in_at=[
                SimpleNamespace(
                    id=one.session_id,
                    device=device_phrase(one.agent),
                    address=one.address,
                    since=one.created_at,
                    seen=one.seen_at,
                )
                for one in sessions.rows
            ],
            entries=[
                SimpleNamespace(
                    at=entry.at,
                    text=EVENTS.get(entry.event, entry.event),
                    app=names.get(entry.client, ""),
                    address=entry.address,
                    device=device_phrase(entry.agent),
                )
                for entry in person.activity[:EVENTS_SHOWN]
            ],
            providers=self.site.providers,
            part=part,
            error=error,
            wrong=self.wrong,
            typed=lambda form, field: (typed.get(field) or "") if typed and form == part else "",
            nonce=(typed and typed.get("key")) or secrets.token_urlsafe(16),
            notice=self._said(self.notice(NOTICES), account),
        )

    def _said(self, notice: str | None, account: Account) -> str | None:
        """The notice, with amount and balance after a change of credits."""
        given = next((one.amount for one in account.entries if one.kind == "grant"), None)
        if notice != NOTICES["credits"] or given is None:
            return notice
        wording = self.wording(self.person.preferences)
        return CREDITS_CHANGED.filled(amount=wording.money(given), balance=wording.total(account.paid))


class ConsolePersonHandler(PersonPage):
    """The page."""

    async def get(self, user: str) -> None:
        """Shows the person."""
        await self.show(user)
