"""Deletion from the console: planned with a wait, cancelled, or at once."""

from __future__ import annotations

import pytest

from handlers.core.site import Site
from tests.admin.conftest import Console
from tests.admin.test_console_people import proved, shown
from tests.support.browser.mailbox import posted
from tests.support.http.driver import EMAIL

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_a_deletion_waits_and_can_be_cancelled(console: Console) -> None:
    admin, path = await proved(console)
    ada = console.service.browser()
    assert (await ada.sign_in(EMAIL)).code == 303
    done = await admin.do(f"{path}/plan-deletion", days="7", reason="Asked for by post")
    text = shown(await admin.open(done.headers["Location"]))
    for words in (
        "To be deleted",
        "To be deleted on",
        "Asked for by post",
        "Cancel the deletion",
        "Delete the account now",
    ):
        assert words in text, words
    for words in ("Plan the deletion", "Suspend…", "End the suspension"):
        assert words not in text, words
    assert (await ada.get("/account")).code == 303, "signed out at once"
    refused = await console.service.browser().sign_in(EMAIL)
    assert "Asked for by post" in refused.body.decode()
    sent = await admin.send(f"{path}/resume")
    assert (sent.code, "Cancel the deletion first" in shown(sent.body.decode())) == (400, True)
    done = await admin.do(f"{path}/cancel-deletion")
    text = shown(await admin.open(done.headers["Location"]))
    assert "The deletion was cancelled" in text
    assert "To be deleted" not in text
    assert (await console.service.browser().sign_in(EMAIL)).code == 303


async def test_the_person_is_mailed_both_times(console: Console, site: Site) -> None:
    admin, path = await proved(console)
    sent = posted(site.mail)
    await admin.do(f"{path}/plan-deletion", days="7", reason="Asked for by post")
    await admin.do(f"{path}/cancel-deletion")
    planned, cancelled = sent
    assert [planned.to, cancelled.to] == [EMAIL, EMAIL]
    assert "will be deleted" in planned.subject
    assert "Asked for by post" in planned.text
    assert "stays" in cancelled.subject


async def test_acts_are_noted_with_the_operator(console: Console) -> None:
    admin, path = await proved(console)
    console.events.clear()
    await admin.do(f"{path}/plan-deletion", days="7")
    await admin.do(f"{path}/cancel-deletion")
    theirs = [event for event in console.events if event.person == console.service.ada]
    assert [event.event for event in theirs] == ["deletion_planned_by_operator", "deletion_cancelled_by_operator"]
    assert {event.by for event in theirs} == {f"person {admin.user}"}


@pytest.mark.parametrize("days", ["", "0", "91", "-1", "7.5", "1e1", "९", "9" * 4000])
async def test_a_wrong_wait_changes_nothing(console: Console, days: str) -> None:
    admin, path = await proved(console)
    answer = await admin.send(f"{path}/plan-deletion", days=days, reason="kept")
    assert (answer.code, "1 to 90 days" in shown(answer.body.decode())) == (400, True)
    assert 'value="kept"' in answer.body.decode()
    person = await console.store.operator.find(EMAIL)
    assert (person.status, person.delete_at) == ("active", None)


async def test_people_with_a_role_are_not_deleted_and_get_none_meanwhile(console: Console) -> None:
    admin, path = await proved(console)
    support = await console.operator("support")
    answer = await admin.send(f"/admin/people/{support.user}/plan-deletion", days="7")
    assert (answer.code, "has the role Support. Remove the role first" in shown(answer.body.decode())) == (403, True)
    await admin.do(f"{path}/plan-deletion", days="7")
    answer = await admin.send(f"{path}/role", role="support")
    assert (answer.code, "Cancel the deletion first" in shown(answer.body.decode())) == (400, True)
    assert await console.store.role_holders.of(console.service.ada) is None
