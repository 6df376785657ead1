"""Acts on the people who were ticked in the console's list."""

from __future__ import annotations

import asyncio
import re

import pytest

from handlers.core.site import Site
from tests.admin.conftest import Console
from tests.admin.test_console_people import shown
from tests.support.browser.mailbox import posted
from tests.support.http.driver import PASSWORD

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_ticked_people_are_suspended_after_a_page_that_says_whom(console: Console) -> None:
    admin, auditor = await console.operator("admin"), await console.operator("auditor")
    users = [await console.person(f"bulk-{place}@example.com") for place in range(3)]
    listed = await admin.open("/admin/people?order=id")
    assert f'name="person_{users[0]}"' in listed
    assert "person_" not in await auditor.open("/admin/people")
    boxes = {f"person_{user}": "yes" for user in (*users, auditor.user)}
    query = "&".join(f"{name}=yes" for name in boxes)
    page = shown(await admin.open(f"/admin/people/bulk?act=suspend&{query}"))
    assert "Suspend: 3 people" in page
    assert "1 person is skipped" in page
    assert "auditor@example.com" in page
    assert "This person has the role Auditor." in page
    assert {(await console.store.operator.find(user)).status for user in users} == {"active"}
    wrong = await admin.send("/admin/people/bulk", act="suspend", **boxes, confirm_password=PASSWORD)
    assert (wrong.code, "Give a reason" in wrong.body.decode()) == (400, True)
    done = await admin.do("/admin/people/bulk", act="suspend", reason="Unpaid", **boxes)
    while "in progress" in (text := shown(await admin.open(done.headers["Location"]))):
        await asyncio.sleep(0)
    assert "4 of 4" in text
    assert "Suspend: 3 people Done" in text
    german = await admin.browser.get(done.headers["Location"], **{"Accept-Language": "de"})
    assert "Diese Person hat die Rolle Revision." in shown(german.body.decode())
    assert {(await console.store.operator.find(user)).status for user in users} == {"disabled"}
    assert (await console.store.operator.find(auditor.user)).status == "active"
    assert (await admin.browser.get("/admin/people/bulk?act=suspend")).code == 400
    assert (await admin.browser.get(f"/admin/people/bulk/{'x' * 22}")).code == 404


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"act": "suspend", "reason": ""}, "reason"),
        ({"act": "suspend", "reason": "Unpaid", "note": "x" * 501}, "note"),
        ({"act": "suspend", "reason": "Unpaid", "until": "tomorrow"}, "until"),
        ({"act": "delete", "days": "91"}, "days"),
        ({"act": "delete", "days": "7", "reason": "x" * 501}, "reason"),
        ({"act": "delete", "at_once": "yes", "number": "7"}, "number"),
    ],
)
async def test_only_the_field_with_the_mistake_is_marked(console: Console, fields: dict[str, str], wrong: str) -> None:
    admin, user = await console.operator("admin"), await console.person("bulk@example.com")
    form = {f"person_{user}": "yes", **fields}
    answer = await admin.send("/admin/people/bulk", **form, confirm_password=PASSWORD)
    page = answer.body.decode()
    assert re.findall(r'<label for="(\w+)">[^<]*</label>\s*<p class="alert"', page) == [wrong]
    assert page.count('class="alert"') == 1
    inputs = {found[1]: found[0] for found in re.finditer(r'<input id="(\w+)"[^>]*>', page)}
    for mark in ("autofocus", 'aria-invalid="true"', "-error"):
        assert [name for name, one in inputs.items() if mark in one] == [wrong], mark


async def test_deleting_many_needs_their_number(console: Console) -> None:
    admin, support = await console.operator("admin"), await console.operator("support")
    user = await console.person("bulk@example.com")
    form = {"act": "delete", "at_once": "yes", f"person_{user}": "yes"}
    assert "delet" not in await support.open("/admin/people")
    assert (await support.confirm("/admin/people/bulk", **form, number="1")).code == 403
    wrong = await admin.send("/admin/people/bulk", **form, number="2", confirm_password=PASSWORD)
    assert (wrong.code, "Type the number" in wrong.body.decode()) == (400, True)
    # Whoever is skipped does not count: the number is of the people who go.
    form[f"person_{support.user}"] = "yes"
    query = "&".join(f"{name}={value}" for name, value in form.items())
    page = shown(await admin.open(f"/admin/people/bulk?{query}"))
    assert ("1 person" in page, "1 person is skipped" in page, "Type 1 to confirm" in page) == (True, True, True)
    wrong = await admin.send("/admin/people/bulk", **form, number="2", confirm_password=PASSWORD)
    assert (wrong.code, await console.store.people.find("bulk@example.com")) == (400, user)
    done = await admin.do("/admin/people/bulk", **form, number="1")
    while "in progress" in shown(await admin.open(done.headers["Location"])):
        await asyncio.sleep(0)
    assert await console.store.people.find("bulk@example.com") is None


async def test_a_deletion_of_many_waits_and_is_cancelled_for_many(console: Console, site: Site) -> None:
    admin = await console.operator("admin")
    users = [await console.person(f"bulk-{place}@example.com") for place in range(12)]
    boxes = {f"person_{user}": "yes" for user in users}
    for days in ("", "0", "91", "x", "9" * 4000):
        wrong = await admin.send("/admin/people/bulk", act="delete", days=days, **boxes, confirm_password=PASSWORD)
        assert (wrong.code, "1 to 90 days" in shown(wrong.body.decode())) == (400, True), days
    sent = posted(site.mail)
    done = await admin.do("/admin/people/bulk", act="delete", days="7", reason="Asked for", **boxes)
    while "in progress" in (text := shown(await admin.open(done.headers["Location"]))):
        await asyncio.sleep(0)
    assert "choose “Cancel the deletion”" in text
    people = [await console.store.operator.find(user) for user in users]
    assert {(one.status, one.delete_at is not None) for one in people} == {("disabled", True)}
    assert sorted(mail.to for mail in sent) == sorted(one.email for one in people)
    assert "Asked for" in sent[0].text
    assert "To be deleted" in await admin.open("/admin/people?order=id")
    # One of them is kept by hand: the dry run names them.
    await console.store.planned_deletions.cancel(users[0])
    query = "&".join(f"{name}=yes" for name in boxes)
    page = shown(await admin.open(f"/admin/people/bulk?act=cancel-deletion&{query}"))
    assert ("11 people" in page, "No deletion of this account is planned" in page) == (True, True)
    done = await admin.do("/admin/people/bulk", act="cancel-deletion", **boxes)
    while "in progress" in shown(await admin.open(done.headers["Location"])):
        await asyncio.sleep(0)
    people = [await console.store.operator.find(user) for user in users]
    assert {(one.status, one.delete_at) for one in people} == {("active", None)}
    assert len(sent) == 12 + 11
    support = await console.operator("support")
    assert (await support.confirm("/admin/people/bulk", act="cancel-deletion", **boxes)).code == 403
