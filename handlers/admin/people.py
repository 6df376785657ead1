"""/api/admin/v1/people: find, create, change and delete people."""

from __future__ import annotations

import secrets
from typing import cast
from urllib.parse import quote

from handlers.admin import operator_mails
from handlers.admin.base import AdminHandler, Record, valid
from handlers.core.params import Params
from store.accounts.people import TAKEN
from store.accounts.planned_deletions import MOST_DAYS
from store.crypto.passwords import check_password
from store.moments import timestamp
from store.names import check_groups, check_person_name, normalise_email
from store.operators.people_acts import Changes
from store.operators.people_pages import PeopleOrder, Status
from store.operators.records import person_record, summary_record
from store.refused import Refused
from store.results import Visitor


class AdminOnePersonHandler(AdminHandler):
    """Answers with one person."""

    async def person(self, user: str) -> Record:
        """The person as they are now. Raises Refused("not_found")."""
        return person_record(await self.store.people_acts.view(user))


class AdminPeopleHandler(AdminOnePersonHandler):
    """The list of people."""

    async def get(self) -> None:
        """A page of people: those with an address, a user id or a status, or everybody."""
        params = self.query("query", "status", "order", "limit", "cursor")
        limit, cursor = self.page(params)
        status, order = cast(Status, params.get("status") or ""), cast(PeopleOrder, params.get("order") or "id")
        found = await self.store.people_pages.page(
            params.get("query") or "", status, limit, cursor, order=order, counted=not cursor
        )
        self.write_page([summary_record(one) for one in found.people], found.cursor, total=found.total)

    async def post(self) -> None:
        """Creates an account whose address counts as confirmed, or invites the address."""
        params = self.fields("email", "name", "password", "groups", "invite")
        if self.flag(params, "invite"):
            for name in ("name", "password", "groups"):
                if params.value(name) is not None:
                    raise Refused("invalid_request", f"An invited person chooses name and password: leave out {name}.")
            typed = params.require("email")
            return await self.answer_once(
                lambda: self._invite(typed), hidden=("link",), again=lambda _: self._invited(typed)
            )
        email, name = params.require("email"), params.require("name")
        password, groups = params.get("password"), params.texts("groups") or []
        await self.answer_once(
            lambda: self._create(email, name, password, groups), 201, hidden=("password",), again=self.person
        )

    async def _create(self, typed: str, name: str, password: str | None, groups: list[str]) -> Record:
        email, name = normalise_email(typed), check_person_name(name)
        names = check_groups(groups)
        chosen = password or secrets.token_urlsafe(18)
        check_password(chosen, email, name)
        if password:
            await self.site.breaches.check(password)
        user = await self.store.people.create(
            email, name, chosen, verified=True, event="created_by_operator", visitor=Visitor(), groups=names
        )
        record = await self.person(user)
        return record if password else {**record, "password": chosen}

    async def _invite(self, typed: str) -> Record:
        email = normalise_email(typed)
        if await self.store.people.credentials(email):
            raise Refused("invalid_request", TAKEN)
        invite = await self.store.people.invite_again(email)
        link = f"{self.site.base_url}/signup?invite={quote(invite)}"
        operator_mails.invited(self.site, email, link, self.counted_address)
        self.store.security.note("invited_by_operator", typed=email)
        return {**await self._invited(email), "link": link}

    async def _invited(self, typed: str) -> Record:
        return {"email": normalise_email(typed), "invited": True, "mailed": self.site.mail.confirms}


class AdminPersonHandler(AdminOnePersonHandler):
    """One person."""

    async def get(self, user: str) -> None:
        """The person."""
        self.query()
        self.write_json(await self.person(user))

    async def patch(self, user: str) -> None:
        """Changes the address, the name and the groups, or some of them. Both addresses are mailed; `wayBack` is false
        if the old mailbox is lost."""
        params = self.fields("email", "wayBack", "name", "groups")
        groups = params.texts("groups")
        changes, email = Changes(params.get("name"), None if groups is None else tuple(groups)), params.get("email")
        if changes == Changes() and email is None:
            raise Refused(
                "invalid_request",
                "Send email, name or groups. A role has an address of its own: …/role.",
            )
        way_back = params.value("wayBack") is None or self.flag(params, "wayBack")
        if email is None and not way_back:
            raise Refused("invalid_request", "wayBack goes with email.")
        await self.answer_once(lambda: self._change(user, changes, email, way_back), again=self.person)

    async def _change(self, user: str, changes: Changes, email: str | None, way_back: bool) -> Record:
        # What is wrong with one of them changes none: the address alone can be refused later than here.
        changes.check()
        if email is not None:
            changed = await self.store.people_acts.change_address(self.actor, user, email, way_back=way_back)
            operator_mails.address_changed(self.site, user, changed)
        if changes != Changes():
            await self.store.people_acts.change(self.actor, user, changes)
        return await self.person(user)

    async def delete(self, user: str) -> None:
        """Deletes the person with everything that is theirs, or plans that in `wait_days`; `dry_run` says what would
        go."""
        params = self.query("dry_run", "wait_days", "reason")
        dry_run, days, reason = self.flag(params, "dry_run"), _days(params), params.get("reason") or ""
        acts, planned = self.store.people_acts, None
        gone = await acts.delete(self.actor, user, dry_run=dry_run or days > 0)
        if days and not dry_run:
            with valid():
                person = await acts.plan_deletion(self.actor, user, days, reason)
            await operator_mails.deletion_planned(self.site, person)
            planned = person.delete_at
        self.write_json(
            {
                "id": gone.user,
                "email": gone.email,
                "apps": gone.apps,
                "ownApps": gone.own_apps,
                "deleted": not (dry_run or days),
                "dryRun": dry_run,
                "deletionAt": timestamp(planned) if planned else None,
            }
        )


def _days(params: Params) -> int:
    """`wait_days`; 0 without one. Raises Refused("invalid_request")."""
    text = params.get("wait_days")
    if text is None:
        if params.get("reason"):
            raise Refused(
                "invalid_request", "reason goes with wait_days: a person who is deleted at once reads nothing."
            )
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_DAYS):
        raise Refused("invalid_request", f"wait_days is 1 to {MOST_DAYS}.")
    return int(text)
