"""The mails that operators cause."""

from __future__ import annotations

import asyncio
from typing import Any

from handlers.core import mails
from handlers.core.site import Site
from store.accounts.links import AddressChange
from store.apps.owners.members import owners_of
from store.apps.registration import Registration
from store.clock import wall
from store.operations import Person
from store.operators.bulk_acts import BulkAct, Tell
from store.operators.roles import OperatorRole
from store.phrases import Phrase
from store.refused import Refused
from store.results import NO_CHOICE

ROLE_NAMES: dict[OperatorRole, str] = {
    "admin": Phrase("Administrator"),
    "support": Phrase("Support"),
    "auditor": Phrase("Auditor"),
}

MOST_WAITING = 100
"""Mails in the queue, which holds a few hundred notices, at which an act on many people pauses."""
PATIENCE, PAUSE = 200, 0.1
"""How often the act looks at the queue, at most, and the seconds between two looks."""


def invited(site: Site, email: str, link: str, asker: str) -> None:
    """Mails an invitation."""
    mails.write(site, "signup", email, "", mails.spoken(site, NO_CHOICE), asker, link=link)


async def link(site: Site, kind: str, person: Person) -> None:
    """Mails a link to choose a new password (`reset`) or to confirm the address (`confirm`). Raises
    Refused("invalid_request") if there is nothing to send, Refused("rate_limited")."""
    store, user, email = site.store, person.user, person.email
    if kind == "reset":
        made, path = await store.links.to_reset(user, email), "/reset"
        nothing = "The account is disabled. Resume it first."
    else:
        made, path = await store.links.to_confirm(user, email, mailed=site.mail.confirms), "/confirm"
        nothing = "The address is confirmed already." if person.email_verified else "The account is disabled."
    if made is None:
        raise Refused("invalid_request", nothing)
    wording = mails.spoken(site, made.preferences)
    mails.write(site, kind, email, user, wording, link=f"{site.base_url}{path}?link={made.text}")


def address_changed(site: Site, user: str, change: AddressChange) -> None:
    """Tells both addresses of a change; the old one with the link that brings it back, if there is one. Without the
    link, the old mailbox may be somebody else's, who does not learn the new address. If only links to earlier addresses
    ended, nobody is told."""
    if change.old == change.new:
        return
    wording = mails.spoken(site, change.warned.preferences)
    values: dict[str, Any] = {"old": change.old, "at": wall.utc()}
    link = f"{site.base_url}/account/email/undo?link={change.undo.text}" if change.undo else ""
    for to, new, way_back in ((change.old, change.new if link else "", link), (change.new, change.new, "")):
        mails.write(site, "operators/address_changed", to, user, wording, new=new, link=way_back, **values)


async def deletion_planned(site: Site, person: Person) -> None:
    """Tells a person that their account will be deleted, when, and why."""
    reason = person.suspension.reason if person.suspension else ""
    await _tell(site, "operators/deletion_planned", person, reason=reason, deleted_at=person.delete_at)


async def deletion_cancelled(site: Site, person: Person) -> None:
    """Tells a person that their account stays."""
    await _tell(site, "operators/deletion_cancelled", person, active=person.status == "active")


def telling(site: Site) -> Tell:
    """Mails people whose deletion an act on many plans or cancels, no faster than the mails leave."""

    async def tell(act: BulkAct, person: Person) -> None:
        for _ in range(PATIENCE):
            if site.mail.queue < MOST_WAITING:
                break
            await asyncio.sleep(PAUSE)
        await (deletion_planned if act == "delete" else deletion_cancelled)(site, person)

    return tell


async def _tell(site: Site, what: str, person: Person, **values: Any) -> None:
    known = await site.store.people.credentials(person.email)
    wording = mails.spoken(site, known.preferences if known else NO_CHOICE)
    mails.write(site, what, person.email, person.user, wording, **values)


async def app_suspended(site: Site, app: Registration) -> None:
    """Tells the owners of an app that the operator has disabled it, and why."""
    for owner in await site.store.teams.persons(owners_of(app)):
        wording, link = mails.spoken(site, owner.warned.preferences), f"{site.base_url}/developer/apps/{app.client_id}"
        what, reason = "operators/app_suspended", app.suspended_reason
        mails.write(site, what, owner.email, owner.user, wording, name=app.name, reason=reason, link=link)


async def role_changed(site: Site, user: str, role: OperatorRole | None) -> None:
    """Tells a person of a new role, or that theirs was taken."""
    person = await site.store.operator.find(user, 0)
    known = await site.store.people.credentials(person.email)
    wording = mails.spoken(site, known.preferences if known else NO_CHOICE)
    name = wording.say(ROLE_NAMES[role]) if role else ""
    mails.write(site, "operators/role_changed", person.email, user, wording, role=name, at=wall.utc())
