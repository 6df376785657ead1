"""/api/admin/v1/people/ID/…: what operators do to one person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from handlers.admin import operator_mails
from handlers.admin.base import AdminHandler, Record, valid
from handlers.admin.people import AdminOnePersonHandler
from store.credits.records import balance_record, entry_record, holds_record, opening_record
from store.operations import Person, Suspension, suspended_until
from store.operators.records import holder_record
from store.operators.roles import PEOPLES_ROLES, check_operator_role
from store.refused import Refused

LINKS = ("reset", "confirm")


class AdminPersonAct(AdminOnePersonHandler):
    """An act that answers with the person."""

    async def act_once(self, user: str, work: Callable[[], Awaitable[object]]) -> None:
        """Acts, once for each `Idempotency-Key`, and writes the person as they are then."""

        async def acted() -> Record:
            await work()
            return await self.person(user)

        await self.answer_once(acted, again=self.person)


class AdminSuspendHandler(AdminPersonAct):
    """POST …/suspend."""

    async def post(self, user: str) -> None:
        """Suspends the person, who reads `reason` when they sign in; `note` is for operators."""
        params = self.fields("reason", "note", "until")
        reason, note, until = params.require("reason"), params.get("note") or "", params.get("until")
        with valid():
            suspension = Suspension(reason, note, suspended_until(until, "until") if until else None)
        await self.act_once(user, lambda: self.store.people_acts.suspend(self.actor, user, suspension))


class AdminResumeHandler(AdminPersonAct):
    """POST …/resume."""

    async def post(self, user: str) -> None:
        """Lets the person in again."""
        self.fields()
        await self.act_once(user, lambda: self.store.people_acts.resume(self.actor, user))


class AdminSignOutHandler(AdminPersonAct):
    """POST …/sign-out."""

    async def post(self, user: str) -> None:
        """Ends every session of the person; apps keep their access."""
        self.fields()
        await self.act_once(user, lambda: self.store.people_acts.sign_out(self.actor, user))


class AdminResetFactorsHandler(AdminPersonAct):
    """POST …/reset-factors."""

    async def post(self, user: str) -> None:
        """Removes authenticator app, passkeys and recovery codes."""
        self.fields()
        await self.act_once(user, lambda: self.store.people_acts.reset_factors(self.actor, user))


class AdminCancelDeletionHandler(AdminPersonAct):
    """POST …/cancel-deletion."""

    async def post(self, user: str) -> None:
        """Cancels the planned deletion of the person, and mails them."""
        self.fields()
        await self.act_once(user, lambda: self._cancel(user))

    async def _cancel(self, user: str) -> None:
        person = await self.store.people_acts.cancel_deletion(self.actor, user)
        await operator_mails.deletion_cancelled(self.site, person)


class AdminSendLinkHandler(AdminHandler):
    """POST …/send-link."""

    async def post(self, user: str) -> None:
        """Mails the person a link: to choose a new password (`reset`), or to confirm the address (`confirm`)."""
        kind = self.fields("kind").require("kind")
        if kind not in LINKS:
            raise Refused("invalid_request", f"kind is {' or '.join(LINKS)}.")
        await self.answer_once(lambda: self._send(user, kind), again=lambda _: self._sent(user, kind))

    async def _send(self, user: str, kind: str) -> Record:
        await self.store.people_acts.check(self.actor, "people.send_link", user)
        person = await self.store.operator.find(user, 0)
        await operator_mails.link(self.site, kind, person)
        await self.store.operator.note(user, "link_sent_by_operator")
        return await self._sent(user, kind, person)

    async def _sent(self, user: str, kind: str, person: Person | None = None) -> Record:
        person = person or await self.store.operator.find(user, 0)
        return {"id": user, "email": person.email, "kind": kind, "sent": True}


class AdminCreditsHandler(AdminHandler):
    """…/credits: the person's credits."""

    async def get(self, user: str) -> None:
        """The balance and a page of the ledger, newest entries first."""
        params = self.query("limit", "cursor")
        limit, cursor = self.page(params)
        asked = f"ledger {user}"
        account = await self.store.credits.show(user, before=self.store.cursors.open(asked, cursor), most=limit)
        last = account.entries[-1].entry_id if len(account.entries) == limit else ""
        self.write_json(
            {
                **balance_record(account),
                "holds": holds_record(account),
                "opening": opening_record(account),
                "items": [entry_record(entry) for entry in account.entries],
                "nextCursor": self.store.cursors.seal(asked, last) if last else None,
            }
        )

    async def post(self, user: str) -> None:
        """Adds or takes credits, once for each `Idempotency-Key`."""
        params = self.fields("amount", "reason")
        amount, reason, key = params.whole("amount"), params.get("reason") or "", self.idempotency_key()
        if key is None:
            raise Refused("invalid_request", "Send an Idempotency-Key, so that a retry is not a second payment.")
        granted = await self.store.people_acts.give_credits(self.actor, user, amount, reason, key)
        if granted.replayed:
            self.set_header("Idempotent-Replayed", "true")
        self.write_json({"id": user, "amount": amount, **balance_record(granted.balance), "replayed": granted.replayed})


class AdminRoleHandler(AdminHandler):
    """…/role: what the person may do as an operator."""

    async def put(self, user: str) -> None:
        """Gives the person a role, and mails them."""
        role = check_operator_role(self.fields("role").require("role"), PEOPLES_ROLES)
        before = await self.store.people_acts.give_role(self.actor, user, role)
        if before != role:
            await operator_mails.role_changed(self.site, user, role)
        self.write_json({"id": user, "role": role, "before": before})

    async def delete(self, user: str) -> None:
        """Takes the person's role, and mails them."""
        self.query()
        before = await self.store.people_acts.give_role(self.actor, user, None)
        if before:
            await operator_mails.role_changed(self.site, user, None)
        self.write_json({"id": user, "role": None, "before": before})


class AdminRolesHandler(AdminHandler):
    """/api/admin/v1/roles: people with a role."""

    async def get(self) -> None:
        """Everybody with a role: at most 500 people, so this list has one page."""
        self.query()
        self.write_page([holder_record(one) for one in await self.store.role_holders.list()], "")
