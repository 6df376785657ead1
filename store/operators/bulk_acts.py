"""One act on many people: a dry run, and then the act on each of them, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

from store.accounts.planned_deletions import NONE_PLANNED, check_wait
from store.crypto.fingerprints import Fingerprints
from store.errors import StoreError
from store.names import is_user_id
from store.operations import GIVE_REASON, Person, Suspension, suspended_until
from store.operators.jobs import BegunJob, OperatorJob, OperatorJobs
from store.operators.operator_keys import OperatorKeys
from store.operators.people_acts import ADMINS_ONLY, YOURSELF, PeopleActs
from store.operators.people_pages import PeoplePages, Status
from store.operators.role_holders import RoleHolders
from store.operators.roles import OperatorAct, OperatorActor, check_act
from store.phrases import Phrase, StoredMessages
from store.refused import Refused

log = logging.getLogger("latchkey.people")

BulkAct = Literal["suspend", "resume", "sign-out", "delete", "cancel-deletion"]
BULK_ACTS: Final[tuple[BulkAct, ...]] = get_args(BulkAct)
MOST_PEOPLE: Final = 1000
BATCH: Final = 10
"""People at once."""
SHOWN_REFUSALS: Final = 20
KIND: Final = "bulk"
_ACTS: Final[dict[BulkAct, OperatorAct]] = {
    "suspend": "people.suspend",
    "resume": "people.resume",
    "sign-out": "people.sign_out",
    "delete": "people.delete",
    "cancel-deletion": "people.delete",
}
TOO_MANY = Phrase("More than %(most)s people match. Narrow the query.", most=MOST_PEOPLE)
NO_MORE = Phrase("The key was revoked, the role taken, or its holder suspended, before this person's turn.")
HAS_ROLE = Phrase("This person has the role %(role)s.")
NOBODY = Phrase("No such person.")
NO_PLAN = Phrase("You have no such dry run. Dry runs are kept for a day.")
SENT: Final = {"days": "the wait"}
"""How callers know a field, where it has another name for them."""
NO_WAIT = "Only the act delete can wait."
NO_REASON = "A reason goes with a wait: nobody sees it if people are deleted at once."

REASONS = StoredMessages((NO_MORE, HAS_ROLE, NOBODY, NONE_PLANNED, YOURSELF, ADMINS_ONLY), "[a-z]{1,20}")
"""Why people are skipped: a job keeps the English text."""

Tell = Callable[[BulkAct, Person], Awaitable[None]]
"""Mails a person whose deletion was planned, or cancelled."""


class BulkOrder(NamedTuple):
    """What to do, and to whom: user ids, or those whom a query and a status find. `reason`, `note` and `until` are of a
    suspension; a deletion that waits for `days` has a reason too. Without days, people are deleted at once."""

    act: str
    people: Sequence[str] = ()
    query: str = ""
    status: Status = ""
    reason: str = ""
    note: str = ""
    until: str = ""
    days: int | None = None


class BulkPlan(NamedTuple):
    """What a dry run found: `token` begins the act; `people`: whom it concerns, but for `refused`, of whom `refusals`
    has the first with the reasons. `days`: how long a deletion waits; None for one at once."""

    token: str
    act: str
    people: int
    refused: int
    refusals: tuple[tuple[str, str], ...]
    days: int | None = None


class BulkActs:
    """Acts on up to 1,000 people. Each person is checked and noted as by an act on them alone. Every
    method raises Refused, StoreUnavailable."""

    def __init__(
        self,
        jobs: OperatorJobs,
        acts: PeopleActs,
        pages: PeoplePages,
        operator_keys: OperatorKeys,
        holders: RoleHolders,
        fingerprints: Fingerprints,
    ) -> None:
        self._fingerprints = fingerprints
        self._keys = operator_keys
        self._holders = holders
        self._jobs = jobs
        self._acts = acts
        self._pages = pages

    async def plan(self, actor: OperatorActor, order: BulkOrder) -> BulkPlan:
        """The dry run: changes nobody. Raises Refused("insufficient_role"), Refused("invalid_request"), ValueError for
        a wrong suspension or wait."""
        act = _act_of(order.act)
        check_act(actor, _ACTS[act])
        suspension = suspension_of(order) if act == "suspend" else None
        if order.days is not None:
            if act != "delete":
                raise Refused("invalid_request", NO_WAIT)
            check_wait(order.days, order.reason)
        elif act == "delete" and order.reason:
            raise Refused("invalid_request", NO_REASON)
        users = await self._users(order)
        refusals: list[tuple[str, str]] = []
        for start in range(0, len(users), BATCH):
            some = users[start : start + BATCH]
            found = await asyncio.gather(*(self._refusal(actor, act, user) for user in some))
            refusals += [(user, why) for user, why in zip(some, found, strict=True) if why]
        told: dict[str, Any] = {"act": act, "people": users, "query": self._kept(order.query), "status": order.status}
        if suspension:
            told |= {"reason": order.reason, "note": order.note, "until": order.until}
        if order.days is not None:
            told |= {"reason": order.reason, "days": order.days}
        token = await self._jobs.prepare(KIND, actor, told, len(users))
        shown = tuple(refusals[:SHOWN_REFUSALS])
        return BulkPlan(token, act, len(users) - len(refusals), len(refusals), shown, order.days)

    def check_same(self, planned: dict[str, Any], order: BulkOrder) -> None:
        """Raises Refused("invalid_request") if an order that comes with a token says something else than its dry run
        (`planned`): whoever asks for a wait must not get an act at once."""
        kept = ordered(planned)
        for name, wanted in order._asdict().items():
            found = getattr(kept, name)
            if name == "people":
                wanted, found = ({*map(str, people)} for people in (wanted, found))
            same = wanted == found
            if name == "query" and wanted:  # the release before kept the query itself
                same = same or self._fingerprints.fits(found, f"query {wanted}")
            if wanted not in (None, "", set()) and not same:
                raise Refused("invalid_request", f"The token is of another dry run ({SENT.get(name, name)} differs).")

    def _kept(self, query: str) -> str:
        """A query in a job: only its fingerprint, because it may be the address of somebody who is deleted within the
        day."""
        return query and self._fingerprints.of(f"query {query}")

    async def begin(self, actor: OperatorActor, token: str) -> BegunJob | None:
        """The planned act, to be given to `run`; None if it was begun before. Raises Refused("not_found") for another
        actor's token."""
        begun = await self._jobs.begin(token, KIND, actor)
        if begun is False:
            raise Refused("not_found", NO_PLAN)
        if begun is True:
            return None
        check_act(actor, _ACTS[_act_of(begun.order["act"])])
        return begun

    async def show(self, token: str) -> OperatorJob:
        """How far the act is. Raises Refused("not_found")."""
        found = await self._jobs.read(token, KIND)
        if found is None:
            raise Refused("not_found", NO_PLAN)
        return found

    async def run(self, actor: OperatorActor, job: BegunJob, tell: Tell) -> None:
        """Does it in batches, and notes how far it is. A revoked key, a role that is taken, and the suspension of its
        holder end it. If the store is away, the next `begin` continues. `tell` mails people whose deletion was planned
        or cancelled."""
        order, done = ordered(job.order), job.done
        users = order.people
        report = {"changed": job.report.get("changed", 0), "refused": job.report.get("refused", 0)}
        refusals: list[list[str]] = job.report.get("refusals", [])
        while done < len(users):
            some = users[done : done + BATCH]
            if not await self._may_still(actor):
                left = [[user, NO_MORE] for user in users[done:]]
                report["refused"] += len(left)
                refusals = [*refusals, *left][:SHOWN_REFUSALS]
                return await self._jobs.note(job.id, len(users), {**report, "refusals": refusals}, over=True)
            found = await asyncio.gather(*(self._do(actor, order, user, tell) for user in some))
            done += len(some)
            report["changed"] += sum(1 for why in found if not why)
            report["refused"] += sum(1 for why in found if why)
            refusals += [[user, why] for user, why in zip(some, found, strict=True) if why]
            refusals = refusals[:SHOWN_REFUSALS]
            await self._jobs.note(job.id, done, {**report, "refusals": refusals}, over=done == len(users))
        if not users:
            await self._jobs.note(job.id, 0, {**report, "refusals": []}, over=True)

    async def _users(self, order: BulkOrder) -> list[str]:
        if order.people and (order.query or order.status):
            raise Refused("invalid_request", "Send people, or query and status, not both.")
        if not order.people:
            if not order.query and not order.status:
                raise Refused("invalid_request", "Send people, query or status.")
            found: list[str] = []
            async for one in self._pages.everyone(order.query, order.status):
                found.append(one.user)
                if len(found) > MOST_PEOPLE:
                    raise Refused("invalid_request", TOO_MANY)
            return found
        if len(order.people) > MOST_PEOPLE:
            raise Refused("invalid_request", f"people has at most {MOST_PEOPLE} user ids.")
        for user in order.people:
            if not isinstance(user, str) or not is_user_id(user):
                raise Refused("invalid_request", "people is a list of user ids.")
        return [*dict.fromkeys(order.people)]

    async def _may_still(self, actor: OperatorActor) -> bool:
        """Whether the actor's key lives, or the person has the role and is not suspended. Nobody takes it from a
        command."""
        if actor.kind == "command":
            return True
        if actor.kind == "key":
            return await self._keys.is_live(actor.id)
        return await self._holders.working(actor.id) == actor.role

    async def _refusal(self, actor: OperatorActor, act: BulkAct, user: str) -> str:
        """Why a person is skipped; "" for nobody's reason."""
        try:
            role = await self._acts.check(actor, _ACTS[act], user)
            if role:
                return HAS_ROLE.filled(role=role)
            found = await self._pages.one(user)
            if found is None:
                return NOBODY
            return NONE_PLANNED if act == "cancel-deletion" and found.delete_at is None else ""
        except Refused as refusal:
            return refusal.description

    async def _do(self, actor: OperatorActor, order: BulkOrder, user: str, tell: Tell) -> str:
        """Acts on a person, and returns why not, or ""."""
        act, changed = _act_of(order.act), None
        try:
            if why := await self._refusal(actor, act, user):
                return why
            if act == "suspend":
                await self._acts.suspend(actor, user, suspension_of(order))
            elif act == "resume":
                await self._acts.resume(actor, user)
            elif act == "sign-out":
                await self._acts.sign_out(actor, user)
            elif act == "cancel-deletion":
                changed = await self._acts.cancel_deletion(actor, user)
            elif order.days is not None:
                changed = await self._acts.plan_deletion(actor, user, order.days, order.reason)
            else:
                await self._acts.delete(actor, user)
        except ValueError as error:  # the end of a suspension has passed since the dry run
            return str(error.args[0])
        except Refused as refusal:
            return refusal.description
        except StoreError as error:
            return f"The store refused: {error}"
        if changed:
            try:
                await tell(act, changed)
            except StoreError as error:
                log.warning("mail about a deletion not sent: %s", error)
        return ""


def ordered(kept: dict[str, Any]) -> BulkOrder:
    """The order of a job."""
    return BulkOrder(**{name: kept[name] for name in BulkOrder._fields if name in kept})


def suspension_of(order: BulkOrder) -> Suspension:
    """The suspension in an order. Raises Refused("invalid_request") without a reason, ValueError for a wrong end."""
    if not order.reason.strip():
        raise Refused("invalid_request", GIVE_REASON)
    return Suspension(order.reason, order.note, suspended_until(order.until, Phrase("End")) if order.until else None)


def _act_of(text: str) -> BulkAct:
    for one in BULK_ACTS:
        if one == text:
            return one
    raise Refused("invalid_request", f"act is {', '.join(BULK_ACTS)}.")
