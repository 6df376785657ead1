"""/admin/people/ID/…: the forms of a person's page. Each is confirmed, and noted with the operator's name."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from handlers.account.deletion import MEDIA_TYPES, pieces_of
from handlers.admin import operator_mails
from handlers.admin.base import valid
from handlers.admin.console.people import PEOPLE
from handlers.admin.console.person import PersonPage
from handlers.core.amounts import dollars
from handlers.core.format import MINUS
from handlers.core.params import Params
from store.accounts.planned_deletions import WRONG_WAIT
from store.accounts.signin.sessions import ACTIVITY_KEPT
from store.moving.person_export import WRITERS
from store.names import check_credit_reason, check_reason, normalise_email
from store.operators.roles import PEOPLES_ROLES, check_act, check_operator_role
from store.phrases import Phrase
from store.refused import Refused

LINKS = ("reset", "confirm")
NO_ROLE = "none"
NOT_THE_ADDRESS = Phrase("That isn’t the address of this account. Nothing was deleted.")
NO_AMOUNT = Phrase("Enter an amount that isn’t zero.")


class PersonAct(PersonPage):
    """A form. `part`: its section of the page, which shows its errors; `done`: the notice after it."""

    part: ClassVar[str]
    done: ClassVar[str]

    async def post(self, user: str) -> None:
        """Does it, and shows the person. A form with an error is shown again with what was typed."""
        params = self.body()
        try:
            with valid():
                await self.act(user, params)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            self.set_status(400)
            return await self.show(user, self.part, self.reason(refusal), params)
        self.see_done(self.after(user))

    @abstractmethod
    async def act(self, user: str, params: Params) -> None:
        """The act. Raises Refused, ValueError."""

    def after(self, user: str) -> str:
        """The page that says what was done."""
        return f"{PEOPLE}/{user}?{self.done}"


class ConsoleSuspendHandler(PersonAct):
    """…/suspend."""

    part, done = "suspend", "suspended"

    async def act(self, user: str, params: Params) -> None:
        """Suspends the person, who reads `reason`; operators read `note`."""
        await self.store.people_acts.suspend(self.actor, user, self.suspension(params))


class ConsoleResumeHandler(PersonAct):
    """…/resume."""

    part, done = "resume", "resumed"

    async def act(self, user: str, params: Params) -> None:
        """Lets the person in again."""
        await self.store.people_acts.resume(self.actor, user)


class ConsoleSignOutHandler(PersonAct):
    """…/sign-out."""

    part, done = "sign-out", "signed-out"

    async def act(self, user: str, params: Params) -> None:
        """Ends every session."""
        await self.store.people_acts.sign_out(self.actor, user)


class ConsoleResetFactorsHandler(PersonAct):
    """…/reset-factors."""

    part, done = "reset-factors", "reset"

    async def act(self, user: str, params: Params) -> None:
        """Removes authenticator app, passkeys and recovery codes."""
        await self.store.people_acts.reset_factors(self.actor, user)


class ConsoleSendLinkHandler(PersonAct):
    """…/send-link."""

    part, done = "send-link", "link"

    async def act(self, user: str, params: Params) -> None:
        """Mails a link to choose a new password, or to confirm the address."""
        kind = params.require("kind")
        if kind not in LINKS:
            raise Refused("invalid_request", f"kind is {' or '.join(LINKS)}.")
        await self.store.people_acts.check(self.actor, "people.send_link", user)
        await operator_mails.link(self.site, kind, await self.store.operator.find(user, 0))
        await self.store.operator.note(user, "link_sent_by_operator")


class ConsoleEmailHandler(PersonAct):
    """…/email."""

    part, done = "email", "email"

    async def act(self, user: str, params: Params) -> None:
        """Changes the address, and mails both. `lost`: the person doesn't have the old mailbox any more."""
        way_back = params.get("lost") != "yes"
        acts = self.store.people_acts
        changed = await acts.change_address(self.actor, user, params.get("email") or "", way_back=way_back)
        operator_mails.address_changed(self.site, user, changed)


class ConsoleCreditsHandler(PersonAct):
    """…/credits."""

    part, done = "credits", "credits"

    async def act(self, user: str, params: Params) -> None:
        """Adds dollars, or takes them if the amount has a minus in front. A form that is sent twice counts once."""
        typed = (params.get("amount") or "").strip()
        taken = typed.startswith(("-", MINUS))
        amount = dollars(typed[1:] if taken else typed)
        if not amount:
            raise Refused("invalid_request", NO_AMOUNT)
        reason, key = params.get("reason") or "", params.require("key")
        with self.in_field("reason"):
            check_credit_reason(reason)
        await self.store.people_acts.give_credits(self.actor, user, -amount if taken else amount, reason, key)


class ConsoleRoleHandler(PersonAct):
    """…/role."""

    part, done = "role", "role"

    async def act(self, user: str, params: Params) -> None:
        """Gives the person a role, or takes it, and mails them."""
        wanted = params.require("role")
        role = None if wanted == NO_ROLE else check_operator_role(wanted, PEOPLES_ROLES)
        before = await self.store.people_acts.give_role(self.actor, user, role)
        if before != role:
            await operator_mails.role_changed(self.site, user, role)


class ConsolePlanDeletionHandler(PersonAct):
    """…/plan-deletion."""

    part, done = "plan-deletion", "planned"

    async def act(self, user: str, params: Params) -> None:
        """Disables the person, plans the deletion, and mails them."""
        days, reason = days_in(params), params.get("reason") or ""
        with self.in_field("reason"):
            check_reason(reason)
        person = await self.store.people_acts.plan_deletion(self.actor, user, days, reason)
        await operator_mails.deletion_planned(self.site, person)


class ConsoleCancelDeletionHandler(PersonAct):
    """…/cancel-deletion."""

    part, done = "cancel-deletion", "kept"

    async def act(self, user: str, params: Params) -> None:
        """Cancels the planned deletion, and mails the person."""
        await operator_mails.deletion_cancelled(
            self.site, await self.store.people_acts.cancel_deletion(self.actor, user)
        )


class ConsoleDeleteHandler(PersonAct):
    """…/delete."""

    part, done = "delete", "deleted"

    async def act(self, user: str, params: Params) -> None:
        """Deletes the person at once, after the operator typed the address."""
        would = await self.store.people_acts.delete(self.actor, user, dry_run=True)
        try:
            typed = normalise_email(params.get("address") or "")
        except ValueError:
            typed = ""
        if typed != would.email:
            raise Refused("invalid_request", NOT_THE_ADDRESS)
        await self.store.people_acts.delete(self.actor, user)

    def after(self, user: str) -> str:
        """The list of people."""
        return f"{PEOPLE}?{self.done}"


def days_in(params: Params) -> int:
    """How long a deletion waits, as typed. Raises Refused("invalid_request") for no number."""
    days = params.get("days") or ""
    if not (days.isascii() and days.strip().isdigit() and len(days) < 10):
        raise Refused("invalid_request", WRONG_WAIT)
    return int(days)


class ConsoleExportHandler(PersonPage):
    """…/export."""

    async def post(self, user: str) -> None:
        """Streams everything that is kept about the person; documents too, if the role allows it and they are asked
        for."""
        params = self.body()
        form, documents = params.get("format") or "zip", params.get("documents") == "yes"
        if form not in WRITERS:
            raise Refused("invalid_request", f"format is one of {', '.join(WRITERS)}.")
        if documents:
            check_act(self.actor, "people.export_documents")
        person = await self.store.operator.find(user, ACTIVITY_KEPT)
        await self.store.operator.note(user, "exported_by_operator")
        pieces = pieces_of(self.store, form, person, documents)
        await self.send_file(f"person-{user}.{form}", MEDIA_TYPES[form], pieces)
