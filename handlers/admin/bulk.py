"""/api/admin/v1/people/bulk: one act on many people."""

from __future__ import annotations

from typing import cast

from handlers.admin import operator_mails
from handlers.admin.base import AdminHandler, valid
from handlers.core.params import Params
from observability.spans import continued
from store.operators.bulk_acts import BulkOrder
from store.operators.records import bulk_record, plan_record
from store.refused import Refused

MEMBERS = ("act", "people", "query", "status", "reason", "note", "until", "waitDays", "dryRun", "token")


class AdminBulkHandler(AdminHandler):
    """POST …/bulk."""

    async def post(self) -> None:
        """With `dryRun`, says what would happen and gives a token. With the token, does it in the background."""
        params, acts = self.fields(*MEMBERS), self.store.bulk_acts
        token = params.get("token")
        if self.flag(params, "dryRun"):
            if token:
                raise Refused("invalid_request", "A dry run takes no token: it gives one.")
            with valid():
                plan = await acts.plan(self.actor, order_of(params, params.require("act")))
            return self.write_json(plan_record(plan))
        if not token:
            raise Refused("invalid_request", "Send dryRun first. The answer has the token that this needs.")
        planned = (await acts.show(token)).order
        acts.check_same(planned, order_of(params, params.get("act") or planned["act"]))
        job = await acts.begin(self.actor, token)
        if job:
            work = acts.run(self.actor, job, operator_mails.telling(self.site))
            self.site.in_background(continued(self.request, "act on many people", work))
        self.write_json(bulk_record(await acts.show(token)))


class AdminBulkProgressHandler(AdminHandler):
    """GET …/bulk/TOKEN."""

    async def get(self, token: str) -> None:
        """How far it is."""
        self.query()
        self.write_json(bulk_record(await self.store.bulk_acts.show(token)))


def order_of(params: Params, act: str) -> BulkOrder:
    """The order in a body, for this act. Raises Refused("invalid_request")."""
    people = params.value("people")
    if people is not None and not isinstance(people, list):
        raise Refused("invalid_request", "people is a list of user ids.")
    status = params.get("status") or ""
    if status not in ("", "active", "disabled", "suspended"):
        raise Refused("invalid_request", "status is active, disabled, suspended.")
    return BulkOrder(
        act,
        cast(list[str], people or []),
        params.get("query") or "",
        status,  # type: ignore[arg-type]  # compared above
        params.get("reason") or "",
        params.get("note") or "",
        params.get("until") or "",
        None if params.value("waitDays") is None else params.whole("waitDays"),
    )
