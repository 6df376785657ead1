"""/admin/people/bulk: one act on the people who were ticked in the list, with a dry run in between."""

from __future__ import annotations

from handlers.admin import operator_mails
from handlers.admin.base import valid
from handlers.admin.console.base import with_role_names
from handlers.admin.console.fields import FieldsPage
from handlers.admin.console.people import ACT_NAMES, PEOPLE
from handlers.admin.console.person import USUAL_DAYS
from handlers.admin.console.person_acts import days_in
from handlers.core.params import Params
from observability.spans import continued
from store.names import check_reason, is_user_id
from store.operators.bulk_acts import BULK_ACTS, MOST_PEOPLE, REASONS, BulkOrder, BulkPlan
from store.phrases import Phrase, plural
from store.refused import Refused

BULK = f"{PEOPLE}/bulk"
BOX = "person_"
"""The name of a box in the list, up to the user id."""
AT_ONCE = "at_once"
"""The field of a deletion without a wait."""
NOBODY = Phrase("Tick someone in the list first.")
MISTYPED = Phrase("Type the number of people to confirm. Nothing was deleted.")


def order_of(params: Params) -> BulkOrder:
    """The order in a form. Raises Refused("invalid_request")."""
    people = [name.removeprefix(BOX) for name in params.names() if name.startswith(BOX)]
    if not people:
        raise Refused("invalid_request", NOBODY)
    if len(people) > MOST_PEOPLE or not all(map(is_user_id, people)):
        raise Refused("invalid_request", "The names of boxes end with user ids.")
    reason, note, until = ((params.get(name) or "").strip() for name in ("reason", "note", "until"))
    return BulkOrder(params.require("act"), people, reason=reason, note=note, until=until)


def check_number(plan: BulkPlan, params: Params) -> None:
    """Checks that the number of people who would be deleted was typed. Raises Refused("invalid_request")."""
    if (params.get("number") or "").strip() != str(plan.people):
        raise Refused("invalid_request", MISTYPED)


def skipped(why: str) -> str:
    """Why a person is skipped, for the page: with the name of a role as people know it."""
    return with_role_names(REASONS.find(why))


def title_of(act: str, people: int) -> Phrase:
    """What is done, and to how many people."""
    whom = plural("%(count)s person", "%(count)s people", people)
    return Phrase("%(act)s: %(whom)s", act=ACT_NAMES[act], whom=whom)


class BulkPage(FieldsPage):
    """Shared by these pages."""

    def came_back_to(self) -> str:
        """The list."""
        return PEOPLE

    async def show_order(self, order: BulkOrder, error: str = "", typed: Params | None = None) -> None:
        """Shows what would happen, with the form that does it; with an error, as it was `typed`."""
        if order.act not in BULK_ACTS:
            raise Refused("invalid_request", Phrase("There is no such act."))
        # The reason and the days come with the form; here any suspension stands for it.
        whom = order._replace(reason="–" if order.act == "suspend" else "", until="", days=None)
        plan = await self.store.bulk_acts.plan(self.actor, whom)
        if error:
            self.set_status(400)
        self.show_page(
            "admin/bulk.html",
            PEOPLE,
            title_of(order.act, plan.people),
            act=order.act,
            act_name=ACT_NAMES[order.act],
            order=order,
            plan=plan,
            refusals=[(user, skipped(why)) for user, why in plan.refusals],
            boxes=[BOX + user for user in order.people],
            people=await self.addresses_of(user for user, _ in plan.refusals),
            error=error,
            wrong=self.wrong,
            days=(typed and typed.get("days")) or str(USUAL_DAYS),
            at_once=typed is not None and typed.get(AT_ONCE) == "yes",
        )


class ConsoleBulkHandler(BulkPage):
    """The dry run, and the act."""

    async def get(self) -> None:
        """Shows what the act on the ticked people would do. Changes nothing."""
        await self.show_order(order_of(self.asked()))

    async def post(self) -> None:
        """Begins the act, and shows how far it is. A form with an error is shown again."""
        params, acts = self.body(), self.store.bulk_acts
        order = order_of(params)
        try:
            with valid():
                at_once = params.get(AT_ONCE) == "yes"
                if order.act == "suspend":
                    self.suspension(params)
                elif order.act == "delete" and not at_once:
                    order = order._replace(days=days_in(params))
                    with self.in_field("reason"):
                        check_reason(order.reason)
                plan = await acts.plan(self.actor, order)
                if order.act == "delete" and at_once:
                    check_number(plan, params)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_order(order, self.reason(refusal), params)
        job = await acts.begin(self.actor, plan.token)
        if job:
            work = acts.run(self.actor, job, operator_mails.telling(self.site))
            self.site.in_background(continued(self.request, "act on many people", work))
        self.see_other(f"{BULK}/{plan.token}")


class ConsoleBulkProgressHandler(BulkPage):
    """How far it is."""

    async def get(self, token: str) -> None:
        """Shows the numbers, and who was skipped."""
        job = await self.store.bulk_acts.show(token)
        refusals = job.report.get("refusals", [])
        changed, refused = job.report.get("changed", 0), job.report.get("refused", 0)
        self.show_page(
            "admin/bulk_progress.html",
            PEOPLE,
            title_of(job.order["act"], changed if job.state == "done" else job.total - refused),
            job=job,
            changed=changed,
            refused=refused,
            refusals=[(user, skipped(why)) for user, why in refusals],
            people=await self.addresses_of(user for user, _ in refusals),
        )
