"""One act on many people in the management interface: the dry run, its token, and the act in the background."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from handlers.admin.operator_mails import MOST_WAITING, telling
from handlers.core.site import Site
from outbound.mail.mailer import Mailer
from store.clock import wall
from store.operations import Person, Suspension
from store.operators.bulk_acts import BATCH, MOST_PEOPLE, BulkAct, BulkOrder
from store.operators.jobs import SILENCE
from store.operators.roles import OperatorActor
from tests.operators.conftest import Desk, refused

pytestmark = pytest.mark.gen_test(timeout=60)


async def finished(desk: Desk, token: str) -> Any:
    """The record of a job that is over."""
    while True:
        found = await desk.get(f"/people/bulk/{token}")
        if found["state"] == "done":
            return found
        await asyncio.sleep(0)


async def people(desk: Desk, number: int) -> list[str]:
    """New people."""
    return [await desk.person(f"bulk-{place}@example.com") for place in range(number)]


async def test_people_are_suspended_only_after_a_dry_run(desk: Desk) -> None:
    users = await people(desk, 12)
    order = {"act": "suspend", "people": users, "reason": "Unpaid", "until": "2099-01-31"}
    refused(await desk.ask("POST", "/people/bulk", order), 400, "invalid_request")
    plan = await desk.do("POST", "/people/bulk", {**order, "dryRun": True})
    assert (plan["state"], plan["total"], plan["changed"], plan["refused"]) == ("ready", 12, 12, 0)
    assert {(await desk.store.operator.find(user)).status for user in users} == {"active"}
    token = plan["token"]
    refused(await desk.ask("POST", "/people/bulk", {"act": "delete", "token": token}), 400, "invalid_request")
    refused(await desk.ask("POST", "/people/bulk", {"token": "x" * 22}), 404, "not_found")
    refused(await desk.ask("POST", "/people/bulk", {"token": token}, role="support"), 404, "not_found")
    await desk.do("POST", "/people/bulk", {"act": "suspend", "token": token})
    done = await finished(desk, token)
    assert (done["done"], done["changed"], done["refused"], done["refusals"]) == (12, 12, 0, [])
    for user in users:
        person = await desk.store.operator.find(user)
        assert person.suspension
        assert (person.status, person.suspension.reason) == ("disabled", "Unpaid")
    noted = [event for event in desk.events if event.event == "suspended_by_operator"]
    assert sorted(event.person for event in noted) == sorted(users)
    assert {event.by.split(" ", 2)[2] for event in noted} == {"The admin"}
    # The same call again is no second act.
    await desk.do("POST", "/people/bulk", {"act": "suspend", "token": token})
    assert len([event for event in desk.events if event.event == "suspended_by_operator"]) == 12


async def test_people_with_a_role_and_strangers_are_skipped(desk: Desk) -> None:
    users = await people(desk, 3)
    await desk.store.role_holders.give(users[0], "auditor")
    gone = "f" * 32
    plan = await desk.do("POST", "/people/bulk", {"act": "delete", "people": [*users, users[1], gone], "dryRun": True})
    assert (plan["changed"], plan["refused"]) == (2, 2)
    assert {one["id"] for one in plan["refusals"]} == {users[0], gone}
    # A role given after the dry run counts too.
    await desk.store.role_holders.give(users[1], "support")
    await desk.do("POST", "/people/bulk", {"token": plan["token"]})
    done = await finished(desk, plan["token"])
    assert (done["changed"], done["refused"]) == (1, 3)
    left = [await desk.store.people_pages.one(user) for user in users]
    assert [one is not None for one in left] == [True, True, False]


async def test_support_may_not_delete_and_wrong_orders_are_refused(desk: Desk) -> None:
    order: dict[str, Any] = {"act": "delete", "people": [desk.ada], "dryRun": True}
    refused(await desk.ask("POST", "/people/bulk", order, role="support"), 403, "insufficient_role")
    changes: list[dict[str, Any]] = [
        {"act": "rename"},
        {"act": "suspend"},
        {"act": "suspend", "reason": "x", "until": "soon"},
        {"people": []},
        {"people": ["nobody"]},
        {"people": [1]},
        {"people": "all"},
        {"people": ["f" * 32] * (MOST_PEOPLE + 1)},
        {"query": "ada"},
        {"status": "lost"},
        {"token": "x" * 22},
    ]
    for change in changes:
        refused(await desk.ask("POST", "/people/bulk", {**order, **change}), 400, "invalid_request")
    found = await desk.do("POST", "/people/bulk", {"act": "resume", "status": "active", "dryRun": True})
    assert found["changed"] >= 1


async def test_a_token_does_nothing_else_than_its_dry_run(desk: Desk) -> None:
    users = await people(desk, 2)
    plan = await desk.do("POST", "/people/bulk", {"act": "delete", "people": users, "dryRun": True})
    others: list[dict[str, Any]] = [
        *(
            {"waitDays": 7},
            {"waitDays": 0},
            {"people": users[:1]},
            {"people": [{}]},
            {"reason": "Unpaid"},
            {"act": "suspend"},
        ),
        *({"query": "ada"}, {"until": "2099-01-31"}, {"status": "active"}),
    ]
    for other in others:
        refused(await desk.ask("POST", "/people/bulk", {"token": plan["token"], **other}), 400, "invalid_request")
    assert {(await desk.store.operator.find(user)).status for user in users} == {"active"}
    same = {"token": plan["token"], "act": "delete", "people": [*users[::-1], users[0]], "dryRun": False}
    await desk.do("POST", "/people/bulk", same)
    assert (await finished(desk, plan["token"]))["changed"] == 2
    plan = await desk.do("POST", "/people/bulk", {"act": "sign-out", "query": "ada", "dryRun": True})
    await desk.do("POST", "/people/bulk", {"token": plan["token"], "act": "sign-out", "query": "ada"})


async def test_a_query_may_find_no_more_than_the_most(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.operators.bulk_acts.MOST_PEOPLE", 2)
    await people(desk, 3)
    order = {"act": "sign-out", "status": "active", "dryRun": True}
    refused(await desk.ask("POST", "/people/bulk", order), 400, "invalid_request")


async def nobody(act: BulkAct, person: Person) -> None:
    """Mails nobody."""


async def test_a_deletion_waits_where_the_dry_run_says_so(desk: Desk) -> None:
    users = await people(desk, 2)
    order: dict[str, Any] = {"act": "delete", "people": users, "waitDays": 7, "reason": "Asked for", "dryRun": True}
    changes: list[dict[str, Any]] = [
        *({"waitDays": wrong} for wrong in (0, -1, 91, 7.5, "7", True, 10**30)),
        {"waitDays": None},
        {"act": "resume"},
        {"reason": "x" * 501},
    ]
    for change in changes:
        refused(await desk.ask("POST", "/people/bulk", {**order, **change}), 400, "invalid_request")
    plan = await desk.do("POST", "/people/bulk", order)
    assert (plan["waitDays"], plan["changed"]) == (7, 2)
    await desk.do("POST", "/people/bulk", {"token": plan["token"]})
    assert (await finished(desk, plan["token"]))["waitDays"] == 7
    assert {(await desk.store.operator.find(user)).status for user in users} == {"disabled"}
    assert (await desk.get(f"/people/{users[0]}"))["deletionAt"]
    order = {"act": "cancel-deletion", "people": [*users, desk.ada], "dryRun": True}
    refused(await desk.ask("POST", "/people/bulk", order, role="support"), 403, "insufficient_role")
    plan = await desk.do("POST", "/people/bulk", order)
    assert (plan["changed"], [one["id"] for one in plan["refusals"]]) == (2, [desk.ada])
    await desk.do("POST", "/people/bulk", {"token": plan["token"]})
    await finished(desk, plan["token"])
    assert {(await desk.store.operator.find(user)).status for user in users} == {"active"}
    noted = [event.event for event in desk.events if event.person == users[0]]
    assert noted[-2:] == ["deletion_planned_by_operator", "deletion_cancelled_by_operator"]


async def test_mails_of_many_deletions_wait_for_room(desk: Desk, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    queues = [MOST_WAITING + 5, MOST_WAITING, 3]
    monkeypatch.setattr("handlers.admin.operator_mails.PAUSE", 0)
    monkeypatch.setattr(Mailer, "queue", property(lambda mailer: queues.pop(0)))

    async def planned(site: Site, person: Person) -> None:
        sent.append(person.email)

    monkeypatch.setattr("handlers.admin.operator_mails.deletion_planned", planned)
    person = Person("f" * 32, "ada@example.com", True, "Ada", "", "active", wall.utc(), (), ())
    await telling(site)("delete", person)
    assert (sent, queues) == (["ada@example.com"], [])


async def _actor(desk: Desk) -> OperatorActor:
    return (await desk.store.operator_keys.create("admin"))[0].actor


@pytest.mark.parametrize("kind", ["key", "person", "suspended"])
async def test_a_key_that_is_revoked_and_a_role_that_is_taken_end_the_act(desk: Desk, kind: str) -> None:
    users, store = await people(desk, BATCH + 2), desk.store
    actor = await _actor(desk)
    if kind != "key":
        actor = OperatorActor("person", desk.ada, "admin")
        await store.role_holders.give(desk.ada, "admin")
        await store.role_holders.give(await desk.person("other@example.com"), "admin")
    plan = await store.bulk_acts.plan(actor, BulkOrder("suspend", users, reason="Unpaid"))
    job = await store.bulk_acts.begin(actor, plan.token)
    assert job
    await store.jobs.note(plan.token, BATCH, {"changed": BATCH, "refused": 0, "refusals": []}, over=False)
    if kind == "key":
        await store.operator_keys.revoke(actor.id)
    elif kind == "suspended":
        await store.operator.suspend(desk.ada, Suspension("Stolen account"))
    else:
        await store.role_holders.give(desk.ada, "support")
    await store.bulk_acts.run(actor, job, nobody)
    found = await store.bulk_acts.show(plan.token)
    assert (found.state, found.report["changed"], found.report["refused"]) == ("done", 0, BATCH + 2)
    assert {(await store.operator.find(user)).status for user in users} == {"active"}


async def test_a_suspension_whose_end_has_passed_suspends_nobody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dry runs are kept for a day."""
    users, actor, acts = await people(desk, 2), await _actor(desk), desk.store.bulk_acts
    until = (wall.utc() + timedelta(minutes=5)).isoformat()
    plan = await acts.plan(actor, BulkOrder("suspend", users, reason="Unpaid", until=until))
    monkeypatch.setattr(wall, "ahead", 600.0)
    job = await acts.begin(actor, plan.token)
    assert job
    await acts.run(actor, job, nobody)
    found = await acts.show(plan.token)
    assert (found.state, found.report["changed"], found.report["refused"]) == ("done", 0, 2)
    assert "in the future" in found.report["refusals"][0][1]
    assert {(await desk.store.operator.find(user)).status for user in users} == {"active"}


async def test_a_job_whose_server_died_continues_where_it_was(desk: Desk) -> None:
    users = await people(desk, 3)
    actor, acts, jobs = await _actor(desk), desk.store.bulk_acts, desk.store.jobs
    plan = await acts.plan(actor, BulkOrder("suspend", users, reason="Unpaid"))
    job = await acts.begin(actor, plan.token)
    assert job
    await jobs.note(plan.token, 2, {"changed": 2, "refused": 0, "refusals": []}, over=False)
    assert await acts.begin(actor, plan.token) is None
    assert (await acts.show(plan.token)).state == "running"
    await desk.store.client.hincrby(f"{{operators}}:job:{plan.token}", "beat", -SILENCE - 1000)
    assert (await acts.show(plan.token)).state == "stopped"
    again = await acts.begin(actor, plan.token)
    assert again
    await acts.run(actor, again, nobody)
    found = await acts.show(plan.token)
    assert (found.state, found.done, found.report["changed"]) == ("done", 3, 3)
    statuses = [(await desk.store.operator.find(user)).status for user in users]
    assert statuses == ["active", "active", "disabled"]
