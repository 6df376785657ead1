"""Calls of operators with roles: replies, pages, acts."""

from __future__ import annotations

from itertools import count
from typing import Any

from store.keys import OPERATOR_JOBS, SHARDS, shard_users
from store.operations import Person, Suspension
from store.operators.app_acts import AppOrder
from store.operators.bulk_acts import BulkAct, BulkOrder
from store.operators.credit_report import JOB as CREDIT_JOB
from store.operators.jobs import BegunJob
from store.operators.ledger_search import LedgerFilter
from store.operators.people_acts import Changes
from store.operators.replies import ClaimedWrite
from store.operators.roles import OperatorActor
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.second_factors import arrival, link
from tests.support.store.world import CALLBACK, World

_numbers = count()
ADMIN = OperatorActor("key", "k" * 22, "admin", "Tests")


@call("operator_replies.claim", "claim_operator_reply")
async def _(w: World) -> Call:
    return lambda: w.store.operator_replies.claim(ADMIN, w.user, b"a request")


async def claimed(w: World) -> ClaimedWrite:
    """A write in progress."""
    found = await w.store.operator_replies.claim(ADMIN, f"{w.user} again", b"a request")
    assert isinstance(found, ClaimedWrite)
    return found


@call("operator_replies.keep", "keep_operator_reply")
async def _(w: World) -> Call:
    write = await claimed(w)
    return lambda: w.store.operator_replies.keep(write, 200, b"{}")


@call("operator_replies.drop")
async def _(w: World) -> Call:
    write = await claimed(w)
    return lambda: w.store.operator_replies.drop(write)


@call("people_pages.page", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.people_pages.page(w.email)


@call("people_pages.everyone", "summarise_person")
async def _(w: World) -> Call:
    async def everyone() -> list[Any]:
        return await drained(w.store.people_pages.everyone(w.email))

    return everyone


@call("people_pages.one", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.people_pages.one(w.user)


@call("people_acts.view", "describe_security", "describe_user", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.view(w.user)


@call("people_acts.check")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.check(ADMIN, "people.suspend", w.user)


@call("people_acts.suspend", "describe_user", "set_user_status")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.suspend(ADMIN, w.user, Suspension("Unpaid"))


@call("people_acts.resume", "describe_user", "set_user_status")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.resume(ADMIN, w.user)


@call("people_acts.sign_out", "sign_person_out")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.sign_out(ADMIN, w.user)


@call("people_acts.reset_factors", "describe_user", "reset_factors")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.reset_factors(ADMIN, w.user)


@call("people_acts.change", "describe_user", "rename_person", "set_groups")
async def _(w: World) -> Call:
    changes = Changes("Another name", (*(await w.store.operator.find(w.user)).groups, "new"))
    return lambda: w.store.people_acts.change(ADMIN, w.user, changes)


@call("people_acts.give_role", "describe_user", "give_operator_role", "record_event")
async def _(w: World) -> Call:
    await w.store.role_holders.give(w.user, None)
    return lambda: w.store.people_acts.give_role(ADMIN, w.user, "auditor")


@call("people_acts.give_credits", "describe_user", "grant_credit")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.give_credits(ADMIN, w.user, 5, "Payment", w.user)


@call("people_acts.delete", "begin_leaving", "delete_user", "describe_user", "release_email")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.delete(ADMIN, w.user)


async def no_sector(uri: str, redirect_uris: tuple[str, ...]) -> None:
    """Takes every sector."""


def ordered(**fields: Any) -> AppOrder:
    """An order for an app."""
    return AppOrder({"name": "Ordered", "redirect_uris": (CALLBACK,), "scopes": "profile", **fields})


@call("app_acts.create", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.app_acts.create(ordered(), "", no_sector)


@call("app_acts.update", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.app_acts.update(w.app.client_id, AppOrder({"name": "Another"}), "", no_sector)


@call("app_acts.set_status", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.app_acts.set_status(w.app.client_id, "disabled")


@call("app_acts.find")
async def _(w: World) -> Call:
    w.store.apps.forget()
    return lambda: w.store.app_acts.find(w.app.client_id)


@call("app_acts.begin_deletion", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.app_acts.begin_deletion(w.app.client_id)


@call("app_acts.page")
async def _(w: World) -> Call:
    return lambda: w.store.app_acts.page("", "", 5)


@call("event_filters.of", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.event_filters.of(w.email)


@call("delivery_pages.failing", "list_failing_endpoints")
async def _(w: World) -> Call:
    return lambda: w.store.delivery_pages.failing()


@call("delivery_pages.given_up", "replay_failed_deliveries")
async def _(w: World) -> Call:
    return lambda: w.store.delivery_pages.given_up(w.app.client_id)


@call("delivery_pages.replay_given_up", "replay_failed_deliveries")
async def _(w: World) -> Call:
    return lambda: w.store.delivery_pages.replay_given_up(w.app.client_id)


@call("delivery_pages.page", "browse_deliveries")
async def _(w: World) -> Call:
    return lambda: w.store.delivery_pages.page("", w.app.client_id, 5, "")


@call("health.read")
async def _(w: World) -> Call:
    return lambda: w.store.health.read()


JOB: dict[str, Any] = {"act": "sign-out", "people": []}


@call("jobs.prepare", "prepare_operator_job")
async def _(w: World) -> Call:
    return lambda: w.store.jobs.prepare("bulk", ADMIN, JOB, 0)


@call("jobs.begin", "begin_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    return lambda: w.store.jobs.begin(token, "bulk", ADMIN)


@call("jobs.note", "note_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    return lambda: w.store.jobs.note(token, 0, {}, over=True)


@call("jobs.read", "read_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    return lambda: w.store.jobs.read(token, "bulk")


@call("ledgers.page", "tally_ledger")
async def _(w: World) -> Call:
    return lambda: w.store.ledgers.page(w.user, LedgerFilter(), 5, "")


@call("ledgers.part", "tally_ledger")
async def _(w: World) -> Call:
    return lambda: w.store.ledgers.part(w.user, LedgerFilter(), "", room=5, whole=True)


@call("credit_reports.begin", "prepare_operator_job", "begin_operator_job")
async def _(w: World) -> Call:
    await w.store.client.delete(OPERATOR_JOBS + CREDIT_JOB)
    return lambda: w.store.credit_reports.begin(ADMIN, LedgerFilter())


@call("credit_reports.last", "read_operator_job")
async def _(w: World) -> Call:
    return lambda: w.store.credit_reports.last()


@call("credit_reports.run", "note_operator_job")
async def _(w: World) -> Call:
    await w.store.jobs.prepare("credits", ADMIN, LedgerFilter()._asdict(), 0, CREDIT_JOB)
    await w.store.client.delete(shard_users(SHARDS[-1]))
    job = BegunJob(CREDIT_JOB, LedgerFilter()._asdict(), len(SHARDS) - 1, {})
    return lambda: w.store.credit_reports.run(job)


@call("bulk_acts.plan", "summarise_person", "prepare_operator_job")
async def _(w: World) -> Call:
    return lambda: w.store.bulk_acts.plan(ADMIN, BulkOrder("sign-out", [w.user]))


@call("bulk_acts.begin", "begin_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    return lambda: w.store.bulk_acts.begin(ADMIN, token)


@call("bulk_acts.show", "read_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    return lambda: w.store.bulk_acts.show(token)


async def nobody(act: BulkAct, person: Person) -> None:
    """Mails nobody."""


@call("bulk_acts.run", "note_operator_job")
async def _(w: World) -> Call:
    token = await w.store.jobs.prepare("bulk", ADMIN, JOB, 0)
    job = BegunJob(token, JOB, 0, {})
    return lambda: w.store.bulk_acts.run(ADMIN, job, nobody)


@call("health.ages", "list_keys", "list_signing_keys")
async def _(w: World) -> Call:
    return lambda: w.store.health.ages()


@call("key_state.since", "list_keys")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.since()


@call("security_events.page", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.page(5)


@call("key_state.sealed", "list_keys")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.sealed()


@call("apps.beyond")
async def _(w: World) -> Call:
    async def every() -> list[Any]:
        return await drained(w.store.apps.beyond(""))

    return every


@call("app_acts.delete", "save_app", "retire_app", "bury_app")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.app_acts.delete(w.app.client_id)


@call("people_acts.change_address", "confirm_email", "change_person_address", "hold_email")
async def _(w: World) -> Call:
    email = f"moved{next(_numbers)}@example.com"
    return lambda: w.store.people_acts.change_address(ADMIN, w.user, email)


@call("address_changes.change", "confirm_email", "change_person_address", "release_email")
async def _(w: World) -> Call:
    email = f"moved{next(_numbers)}@example.com"
    return lambda: w.store.address_changes.change(w.user, email, way_back=False)


@call("people_acts.plan_deletion", "begin_leaving", "plan_deletion", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.plan_deletion(ADMIN, w.user, 7, "Asked for")


@call("people_acts.cancel_deletion", "cancel_deletion", "describe_user")
async def _(w: World) -> Call:
    await w.store.planned_deletions.plan(w.user, 7)
    return lambda: w.store.people_acts.cancel_deletion(ADMIN, w.user)


@call("planned_deletions.plan", "begin_leaving", "plan_deletion")
async def _(w: World) -> Call:
    return lambda: w.store.planned_deletions.plan(w.user, 7)


@call("planned_deletions.cancel", "cancel_deletion")
async def _(w: World) -> Call:
    await w.store.planned_deletions.plan(w.user, 7)
    return lambda: w.store.planned_deletions.cancel(w.user)


@call("people_acts.end_session", "end_person_session")
async def _(w: World) -> Call:
    return lambda: w.store.people_acts.end_session(ADMIN, w.user, w.session.session_id)


@call("people_acts.disconnect", "end_person_grant")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.people_acts.disconnect(ADMIN, w.user, w.app.client_id)


@call("people_acts.unlink", "unlink_person", "release_identity")
async def _(w: World) -> Call:
    await link(w)
    name = arrival(f"sub-{w.user}").identity.name
    return lambda: w.store.people_acts.unlink(ADMIN, w.user, name, ())
