"""What operators do to people, under the rules of roles. Programs with a key and people in the console use the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from store import keys
from store.accounts.groups import Groups
from store.accounts.identities import Identities
from store.accounts.links import AddressChange
from store.accounts.planned_deletions import PlannedDeletions
from store.credits.credits import Granted
from store.engine.scripts import Scripts
from store.names import check_groups, check_person_name, normalise_email
from store.operations import TO_BE_DELETED, Operator, Person, Suspension
from store.operators.address_changes import AddressChanges
from store.operators.people_pages import PeoplePages
from store.operators.person_parts import PersonParts
from store.operators.person_view import PersonView
from store.operators.role_holders import LAST_ADMIN, RoleHolders
from store.operators.roles import APART, OperatorAct, OperatorActor, OperatorRole, check_act
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.relay_wakeup import RelayWakeup

YOURSELF = Phrase("Use your own account pages for this, or ask another administrator.")
ADMINS_ONLY = Phrase("This person has the role %(role)s, so only an admin may do this.")


class Changes(NamedTuple):
    """New values of a person; None leaves one."""

    name: str | None = None
    groups: tuple[str, ...] | None = None

    def check(self) -> None:
        """Raises ValueError for wrong ones."""
        if self.name is not None:
            check_person_name(self.name)
        if self.groups is not None:
            check_groups(self.groups)


@dataclass(frozen=True, slots=True)
class AccountRemains:
    """What a person's deletion would remove."""

    user: str
    email: str
    apps: int
    own_apps: int


class PeopleActs:
    """The acts of operators on people. Each checks the actor's role first, and is noted in the person's trail and in
    the security log. Every method raises Refused("insufficient_role" or "not_found"), StoreUnavailable."""

    def __init__(
        self,
        scripts: Scripts,
        operator: Operator,
        holders: RoleHolders,
        pages: PeoplePages,
        groups: Groups,
        wakeup: RelayWakeup,
        planned: PlannedDeletions,
        identities: Identities,
        addresses: AddressChanges,
    ) -> None:
        self.parts = PersonParts(scripts, identities, wakeup)
        self._planned = planned
        self._addresses = addresses
        self._pages = pages
        self._scripts = scripts
        self._operator = operator
        self._holders = holders
        self._groups = groups

    async def view(self, user: str) -> PersonView:
        """The person with this user id."""
        summary, person, role = await asyncio.gather(
            self._pages.one(user), self._operator.show(user), self._holders.of(user)
        )
        if summary is None or person is None:
            raise Refused("not_found", "No such person.")
        return PersonView(summary, person, await self._operator.security(user), role)

    async def suspend(self, actor: OperatorActor, user: str, suspension: Suspension) -> Person:
        """Suspends a person. Raises Refused("access_denied") for the last admin, ValueError as `Operator.suspend`."""
        role = await self.check(actor, "people.suspend", user)
        if role != "admin":
            return await self._operator.suspend(user, suspension)
        if await self._holders.is_last_admin(user):
            raise Refused("access_denied", LAST_ADMIN)
        was_active = user in await self._holders.admins()
        person = await self._operator.suspend(user, suspension)
        # Of two admins who are suspended at the same moment, in two slots, neither saw that the other one goes.
        if was_active and not await self._holders.admins():
            await self._operator.set_status(user, "active")
            raise Refused("access_denied", LAST_ADMIN)
        return person

    async def resume(self, actor: OperatorActor, user: str) -> Person:
        """Ends a suspension, or lets a disabled person in again."""
        await self.check(actor, "people.resume", user)
        return await self._operator.set_status(user, "active")

    async def sign_out(self, actor: OperatorActor, user: str) -> None:
        """Ends every session of a person; tokens of apps live on."""
        await self.check(actor, "people.sign_out", user)
        await self.parts.end_sessions(user)

    async def reset_factors(self, actor: OperatorActor, user: str) -> Person:
        """Removes a person's second step and passkeys."""
        await self.check(actor, "people.reset_factors", user)
        return await self._operator.reset_factors(user)

    async def end_session(self, actor: OperatorActor, user: str, session_id: str) -> None:
        """Ends one session of a person; tokens of apps live on."""
        await self.check(actor, "people.sign_out", user)
        await self.parts.end_session(user, session_id)

    async def disconnect(self, actor: OperatorActor, user: str, client: str) -> datetime:
        """Ends the access of an app to a person; returns when its data ends."""
        await self.check(actor, "people.change", user)
        return await self.parts.disconnect(user, client)

    async def unlink(self, actor: OperatorActor, user: str, name: str, others: Sequence[str]) -> None:
        """Unlinks an account at another site. Raises Refused as `PersonParts.unlink`."""
        await self.check(actor, "people.change", user)
        await self.parts.unlink(user, name, others)

    async def change(self, actor: OperatorActor, user: str, changes: Changes) -> Person:
        """Changes the name and the groups. Raises ValueError for wrong ones."""
        await self.check(actor, "people.change", user)
        person = await self._operator.find(user, 0)
        # Both are checked before either is changed.
        name = None if changes.name is None else check_person_name(changes.name)
        wanted = None if changes.groups is None else {*check_groups(changes.groups)}
        if name is not None:
            reply = await self._scripts.run(
                "rename_person", {**keys.person(user), **keys.changed(user)}, name=name, member=keys.member(user)
            )
            if reply.word == "not_found":
                raise Refused("not_found", "No such person.")
        if wanted is not None:
            before = {*person.groups}
            await self._groups.change(user, person.groups, add=wanted - before, remove=before - wanted)
        return await self._operator.find(user)

    async def change_address(
        self, actor: OperatorActor, user: str, typed: str, *, way_back: bool = True
    ) -> AddressChange:
        """Gives a person another address, which counts as confirmed. Raises Refused as `AddressChanges.change`,
        ValueError for what is no address."""
        await self.check(actor, "people.change", user)
        return await self._addresses.change(user, normalise_email(typed), way_back=way_back)

    async def give_role(self, actor: OperatorActor, user: str, role: OperatorRole | None) -> OperatorRole | None:
        """Gives a person a role, or takes it, and returns the one before. Nobody changes their own. Raises Refused as
        `RoleHolders.give`."""
        check_act(actor, "roles.give")
        if (actor.kind, actor.id) == ("person", user):
            raise Refused("access_denied", Phrase("You can't change your own role. Ask another administrator."))
        return await give_role(self._operator, self._holders, user, role, actor.shown)

    async def give_credits(self, actor: OperatorActor, user: str, amount: int, reason: str, key: str) -> Granted:
        """Adds or takes credits, once for each key. Raises Refused as `Credits.grant`."""
        check_act(actor, "credits.give")
        _, granted = await self._operator.credit(user, amount, reason=reason, key=key)
        return granted

    async def delete(self, actor: OperatorActor, user: str, *, dry_run: bool = False) -> AccountRemains:
        """Deletes a person with everything that is theirs; `dry_run` only counts. Raises Refused("access_denied") for a
        person with a role."""
        await self._check_deletable(actor, user)
        person = await self._operator.find(user, 0)
        if not dry_run:
            await self._operator.delete(user)
        return AccountRemains(user, person.email, len(person.grants), len(person.registered))

    async def plan_deletion(self, actor: OperatorActor, user: str, days: int, reason: str) -> Person:
        """Disables a person, and plans the deletion in `days`; the person may read `reason`. Raises
        Refused("access_denied") for a person with a role, ValueError as `PlannedDeletions.plan`."""
        await self._check_deletable(actor, user)
        await self._planned.plan(user, days, reason)
        return await self._operator.find(user, 0)

    async def cancel_deletion(self, actor: OperatorActor, user: str) -> Person:
        """Cancels a planned deletion. Raises Refused as `PlannedDeletions.cancel`."""
        await self.check(actor, "people.delete", user)
        await self._planned.cancel(user)
        return await self._operator.find(user, 0)

    async def _check_deletable(self, actor: OperatorActor, user: str) -> None:
        role = await self.check(actor, "people.delete", user)
        if role:
            raise Refused(
                "access_denied", Phrase("This person has the role %(role)s. Remove the role first.", role=role)
            )

    async def check(self, actor: OperatorActor, act: OperatorAct, user: str) -> OperatorRole | None:
        """The role of the person whom an act concerns. Raises Refused("insufficient_role") if the actor may not do it,
        Refused("access_denied") if it is the actor."""
        check_act(actor, act)
        if (actor.kind, actor.id) == ("person", user):
            raise Refused("access_denied", YOURSELF)
        role = await self._holders.of(user)
        if role and act in APART and actor.role != "admin":
            raise Refused("insufficient_role", ADMINS_ONLY.filled(role=role))
        return role


async def give_role(
    operator: Operator, holders: RoleHolders, who: str, role: OperatorRole | None, by: str
) -> OperatorRole | None:
    """Gives a person (an e-mail address or a user id) a role, notes it with the person, and returns the one before.
    Raises Refused."""
    person = await operator.find(who, 0)
    if role and person.delete_at:
        raise Refused("invalid_request", TO_BE_DELETED)
    before = await holders.give(person.user, role, by)
    if before != role:
        await operator.note(person.user, "role_given_by_operator" if role else "role_taken_by_operator")
    return before
