"""/admin/people: the list of people, by search and status."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from store.operators.people_pages import STATUSES, PeopleOrder, Status
from store.phrases import Phrase
from store.refused import Refused

PEOPLE = "/admin/people"
STATUS_NAMES: dict[str, str] = {
    "": Phrase("Everybody"),
    "active": Phrase("Active"),
    "disabled": Phrase("Disabled"),
    "suspended": Phrase("Suspended"),
}
ORDER_NAMES: dict[str, str] = {"email": Phrase("E-mail address"), "id": Phrase("User ID")}
"""The orders of everybody; the first is the usual one here."""
ACT_NAMES: dict[str, str] = {
    "suspend": Phrase("Suspend"),
    "resume": Phrase("End suspension"),
    "sign-out": Phrase("Sign out everywhere"),
    "delete": Phrase("Delete"),
    "cancel-deletion": Phrase("Cancel the deletion"),
}
"""The acts on many people, as operators choose them."""
DELETIONS = ("delete", "cancel-deletion")
NOTICES = {"deleted": Phrase("The account was deleted.")}


def status_of(text: str) -> Status:
    """The status of this name; "" for none. Raises Refused("invalid_request")."""
    for one in ("", *STATUSES):
        if one == text:
            return one
    raise Refused("invalid_request", Phrase("There is no such status."))


class ConsolePeopleHandler(ConsolePage):
    """The list."""

    async def get(self) -> None:
        """Shows a page of people. `query` finds by address or id, `status` filters, `order` sorts everybody, and
        `cursor` goes on. People with a status are listed by id: the index of addresses may lack some."""
        params = self.asked()
        query, status = params.get("query") or "", status_of(params.get("status") or "")
        pages = self.store.people_pages
        order = "id" if status else params.get("order") or "email"
        found = await pages.page(
            query, status, cursor=params.get("cursor") or "", order=cast(PeopleOrder, order), counted=True
        )
        given = (("query", query), ("status", status), ("order", "" if status or order == "email" else order))
        chosen = {name: value for name, value in given if value}
        self.show_page(
            "admin/people.html",
            PEOPLE,
            Phrase("People"),
            query=query,
            status=status,
            statuses=STATUS_NAMES,
            order=order,
            orders=ORDER_NAMES,
            chips=chips_of(PEOPLE, chosen, status=STATUS_NAMES),
            people=found.people,
            total=found.total,
            whole=pages.matching is None,
            acts=[(one, name) for one, name in ACT_NAMES.items() if one not in DELETIONS or self.may("people.delete")],
            first=f"?{urlencode(chosen)}" if params.get("cursor") else "",
            onward=f"?{urlencode({**chosen, 'cursor': found.cursor})}" if found.cursor else "",
            notice=self.notice(NOTICES),
        )
