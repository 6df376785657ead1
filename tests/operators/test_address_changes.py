"""Operators change a person's e-mail address: both addresses hear of it, and the old one can take the account back."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.core.site import Site
from store.accounts.links import MOST_UNDOS
from store.operators.roles import OperatorActor
from store.refused import Refused
from store.results import Visitor
from store.wiring import Store
from tests.operators.conftest import Desk, refused
from tests.support.browser.mailbox import posted
from tests.support.http.driver import EMAIL, PASSWORD
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked, findings
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)
NEW, LATER = "ada@new.example", "ada@later.example"
ADMIN = OperatorActor("command", "here", "admin")


async def test_both_addresses_hear_of_it_and_the_old_one_can_take_the_account_back(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    changed = await desk.do("PATCH", f"/people/{desk.ada}", {"email": " ADA@New.example "})
    assert (changed["email"], changed["email_verified"]) == (NEW, True)
    assert [(mail.what, mail.to, mail.undo) for mail in sent] == [
        ("operators/address_changed", EMAIL, True),
        ("operators/address_changed", NEW, False),
    ]
    store = desk.store
    assert await store.people.verify(NEW, PASSWORD)
    assert await store.people.credentials(EMAIL) is None
    noted = [event for event in desk.events if event.event == "email_changed_by_operator"]
    assert [(one.person, one.by.split(" ", 2)[2]) for one in noted] == [(desk.ada, "The admin")]
    # The old address stays this person's while the link works.
    refused(
        await desk.ask("POST", "/people", {"email": EMAIL, "name": "Eve", "password": "correct horse battery"}),
        400,
        "invalid_request",
    )
    link = sent[0].text.split("link=")[1].split()[0]
    undone = await store.undoing.undo(link, Visitor())
    assert (undone.old, undone.new) == (EMAIL, NEW)
    assert (await store.operator.find(desk.ada)).email == EMAIL
    assert await store.people.find(NEW) is None
    store.fsck.settle = 0
    assert findings(await checked(store, deep=True)) == []


async def test_a_lost_mailbox_gets_no_link_and_is_free_at_once(desk: Desk, site: Site) -> None:
    await desk.do("PATCH", f"/people/{desk.ada}", {"email": NEW})
    await desk.do("PATCH", f"/people/{desk.ada}", {"email": EMAIL})
    sent = posted(site.mail)
    # A link that an earlier change left to this mailbox ends too.
    await desk.do("PATCH", f"/people/{desk.ada}", {"email": LATER, "wayBack": False})
    assert [(mail.to, mail.undo, "link=" in mail.text) for mail in sent] == [
        (EMAIL, False, False),
        (LATER, False, False),
    ]
    told, new = (mail.text for mail in sent)
    assert (LATER in told, LATER in new) == (False, True), "whoever has the mailbox now does not learn the new address"
    assert f"You can no longer sign in with {EMAIL}." in told
    await desk.person(EMAIL)
    assert (await desk.store.operator.find(LATER)).user == desk.ada


async def test_the_way_back_ends_when_the_mailbox_turns_out_to_be_lost(desk: Desk, site: Site) -> None:
    """A stranger has the old mailbox, and the link."""
    path, sent = f"/people/{desk.ada}", posted(site.mail)
    await desk.do("PATCH", path, {"email": LATER})
    await desk.do("PATCH", path, {"email": NEW})
    links = [mail.text.split("link=")[1].split()[0] for mail in sent if mail.undo]
    assert len(links) == 2
    sent.clear()
    assert (await desk.do("PATCH", path, {"email": NEW, "wayBack": False}))["email"] == NEW
    for link in links:
        with pytest.raises(Refused):
            await desk.store.undoing.undo(link, Visitor())
    assert sent == []
    assert [event.event for event in desk.events][-3:] == [
        *("email_changed_by_operator", "email_changed_by_operator"),
        "email_links_ended_by_operator",
    ], "the last act changed no address"
    await desk.person(EMAIL)
    await desk.person(LATER)
    refused(await desk.ask("PATCH", path, {"email": NEW, "wayBack": False}), 400, "invalid_request")
    assert (await desk.store.operator.find(NEW)).user == desk.ada


async def test_an_address_of_somebody_else_and_a_wrong_one_change_nothing(desk: Desk) -> None:
    await desk.person("bob@example.com")
    path, before = f"/people/{desk.ada}", await desk.store.people_acts.view(desk.ada)
    bodies: list[dict[str, Any]] = [
        *(
            {"email": wrong}
            for wrong in ("bob@example.com", EMAIL, "", "x", f"{'a' * 5000}@example.com", 5, "a\x00@b.c")
        ),
        {"wayBack": False},
        {"wayBack": False, "name": "Ada"},
        {"email": NEW, "wayBack": "perhaps"},
        {"email": NEW, "address": NEW},
        {"email": "bob@example.com", "name": "Another"},
        {"email": NEW, "name": "x" * 5000},
        {"email": NEW, "groups": ["x" * 500]},
    ]
    for body in bodies:
        refused(await desk.ask("PATCH", path, body), 400, "invalid_request")
    for role in ("support", "auditor", "credits", "scim"):
        refused(await desk.ask("PATCH", path, {"email": NEW}, role=role), 403, "insufficient_role")
    refused(await desk.ask("PATCH", f"/people/{'f' * 32}", {"email": NEW}), 404, "not_found")
    assert await desk.store.people_acts.view(desk.ada) == before
    assert await desk.store.addresses.find(NEW) is None, "nobody holds it"
    await desk.person(NEW)


async def test_nobody_changes_their_own_address_as_an_operator(store: Store) -> None:
    world = await World.make(store)
    itself = OperatorActor("person", world.user, "admin")
    with pytest.raises(Refused, match="access_denied"):
        await store.people_acts.change_address(itself, world.user, NEW)


async def test_ways_back_are_bounded_and_a_change_without_one_still_works(memory_store: Store) -> None:
    world = await World.make(memory_store)
    change = memory_store.people_acts.change_address
    for number in range(MOST_UNDOS):
        await change(ADMIN, world.user, f"ada{number}@example.com")
    with pytest.raises(Refused, match="invalid_request"):
        await change(ADMIN, world.user, NEW)
    assert await memory_store.addresses.find(NEW) is None
    assert (await change(ADMIN, world.user, NEW, way_back=False)).undo is None


async def test_an_address_that_nobody_confirmed_gets_no_way_back(memory_store: Store) -> None:
    typed = ("typo@example.com", "Ada", PASSWORD)
    user = await memory_store.people.create(*typed, verified=False, event="signed_up", visitor=Visitor())
    assert (await memory_store.people_acts.change_address(ADMIN, user, NEW)).undo is None


async def test_the_same_change_soon_after_gets_the_same_link_and_later_it_is_refused(
    memory_store: Store, clock: FakeClock
) -> None:
    """So a caller whose answer was lost can still mail the link."""
    world = await World.make(memory_store)
    change = memory_store.people_acts.change_address
    made = await change(ADMIN, world.user, NEW)
    assert made.undo
    events = await world.events()
    assert await change(ADMIN, world.user, NEW) == made
    clock.advance(600_000)
    with pytest.raises(Refused, match="invalid_request"):
        await change(ADMIN, world.user, NEW)
    assert await world.events() == events
    assert (await memory_store.undoing.undo(made.undo.text, Visitor())).old == world.email
