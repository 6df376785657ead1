"""Restoring an old address with the mailed link, for a week, whatever happens to the account meanwhile."""

from __future__ import annotations

import pytest

from store.accounts.links import AddressChange
from store.accounts.signin.second_step import Half
from store.refused import Refused, SignedOut, Unproved
from store.wiring import Store
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, RESET, Post, heading
from tests.support.browser.second_factors import SECURITY, Person
from tests.support.http.driver import EMAIL, PASSWORD
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import App, add_passkey, half_of, is_live, reauth
from tests.support.store.world import VISITOR, World, refusal_of, to_change

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

A_WEEK = 7 * 86_400
THIEF, OTHER, NEW_PASSWORD = "thief@example.com", "thief@example.net", "another horse battery"


async def moves(world: World, new: str) -> AddressChange:
    """Changes the person's address."""
    return await world.store.links.change(
        world.session, (await to_change(world.store, world.session, new)).text, VISITOR
    )


async def undo_of(world: World, new: str) -> str:
    undo = (await moves(world, new)).undo
    assert undo
    return undo.text


async def test_the_undo_link_takes_the_account_back_from_a_thief(store: Store) -> None:
    """Address, password, another address and a passkey: one link undoes all of it."""
    world = await World.make(store)
    undo = await undo_of(world, THIEF)
    credentials = await store.people.credentials(THIEF)
    cookie = await store.sessions.change_password(world.session, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    session = store.sessions.open(cookie)
    assert session
    world.session = session
    later = await undo_of(world, OTHER)
    await reauth(world, "", NEW_PASSWORD)
    await add_passkey(world)
    done = await store.undoing.undo(undo, VISITOR)
    assert (done.old, done.new, done.used) == (world.email, OTHER, False)
    assert not await is_live(world, world.session)
    for email in (world.email, THIEF, OTHER):
        for password in (PASSWORD, NEW_PASSWORD):
            assert await store.people.verify(email, password) is None, "the password ended too"
    assert await refusal_of(store.undoing.undo(later, VISITOR)) == "invalid_request"
    assert await world.person(THIEF)
    assert await world.person(OTHER)
    reset = await store.links.to_reset(world.user, world.email)
    assert reset
    await store.links.reset(reset.text, NEW_PASSWORD, VISITOR)
    world.session = await world.sign_in(password=NEW_PASSWORD)
    assert (await store.undoing.undo(undo, VISITOR)).used, "a second click is answered kindly"
    assert "email_change_undone" in await world.events()
    assert not (await store.factors.of(world.session)).second


async def test_each_undo_link_reverts_its_own_change_and_the_later_ones(store: Store) -> None:
    world = await World.make(store)
    first, second, third = [await undo_of(world, f"{n}@moved.example") for n in range(3)]
    assert (await store.undoing.undo(second, VISITOR)).old == "0@moved.example"
    assert await refusal_of(store.undoing.undo(third, VISITOR)) == "invalid_request"
    assert (await store.undoing.undo(first, VISITOR)).old == world.email
    assert await refusal_of(store.undoing.undo(second, VISITOR)) == "invalid_request"
    assert await store.people.find(world.email) == world.user


async def test_an_address_restorable_by_an_earlier_link_stays_reserved(store: Store) -> None:
    world = await World.make(store)
    first = await undo_of(world, THIEF)
    second = await undo_of(world, OTHER)
    await moves(world, world.email)
    await store.undoing.undo(second, VISITOR)
    assert await refusal_of(world.person(world.email)) == "invalid_request"
    assert (await store.undoing.undo(first, VISITOR)).old == world.email


async def test_the_link_works_and_reserves_the_address_for_a_week(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    undo = await undo_of(world, THIEF)
    clock.advance(A_WEEK - 60)
    assert await refusal_of(world.person(world.email)) == "invalid_request"
    assert (await memory_store.undoing.look(undo)).new == THIEF
    clock.advance(120)
    assert await refusal_of(memory_store.undoing.undo(undo, VISITOR)) == "invalid_request"
    assert await world.person(world.email), "then it is free"


async def test_many_changes_do_not_displace_an_old_link(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    first = await undo_of(world, "0@moved.example")
    for number in range(1, 10):
        clock.advance(3600)
        await moves(world, f"{number}@moved.example")
    clock.advance(3600)
    with pytest.raises(Refused, match="invalid_request"):
        await moves(world, THIEF)
    assert await memory_store.people.find(THIEF) is None
    assert (await memory_store.undoing.undo(first, VISITOR)).old == world.email


async def test_factors_added_in_the_week_before_the_change_are_removed(clock: FakeClock, memory_store: Store) -> None:
    """A thief adds a passkey, waits, and then takes the address."""
    world = await World.make(memory_store)
    await add_passkey(world)
    await App.add(world)
    clock.advance(A_WEEK - 3600)
    await reauth(world)
    await memory_store.undoing.undo(await undo_of(world, THIEF), VISITOR)
    reset = await memory_store.links.to_reset(world.user, world.email)
    assert reset
    await memory_store.links.reset(reset.text, NEW_PASSWORD, VISITOR)
    world.session = await world.sign_in(password=NEW_PASSWORD)
    found = await memory_store.factors.of(world.session)
    assert (found.second, found.codes) == (False, 0)


async def test_an_older_second_step_stays(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    clock.advance(A_WEEK + 60)
    await reauth(world)
    undo = await undo_of(world, THIEF)
    await memory_store.undoing.undo(undo, VISITOR)
    reset = await memory_store.links.to_reset(world.user, world.email)
    assert reset
    await memory_store.links.reset(reset.text, NEW_PASSWORD, VISITOR)
    assert isinstance(await half_of(world, NEW_PASSWORD), Half), "the mailbox alone signs nobody in"


async def test_an_unconfirmed_address_gets_no_undo_link(store: Store) -> None:
    """The owner of that mailbox may be a stranger."""
    world = await World.make(store)
    await store.client.hset(f"{{{world.user[:3]}}}:{world.user}:user", "verified", "0")
    assert (await moves(world, THIEF)).undo is None
    assert await world.person(world.email), "free at once"


async def test_deletion_frees_old_addresses(store: Store) -> None:
    world = await World.make(store)
    undo = await undo_of(world, THIEF)
    await store.people.delete(world.user)
    assert await refusal_of(store.undoing.undo(undo, VISITOR)) == "invalid_request"
    assert await world.person(world.email)
    assert await world.person(THIEF)


async def test_with_a_second_step_neither_address_nor_password_change_without_it(store: Store) -> None:
    world = await World.make(store)
    before = (await to_change(store, world.session, THIEF)).text
    await App.add(world)
    credentials = await store.people.credentials(world.email)
    with pytest.raises(Unproved):
        await to_change(store, world.session, THIEF)
    with pytest.raises(Unproved):
        await store.sessions.change_password(world.session, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    assert await refusal_of(store.links.change(world.session, before, VISITOR)) == "invalid_request", "asked without it"
    await reauth(world)
    await moves(world, "new@moved.example")
    with pytest.raises(Unproved):
        await to_change(store, world.session, THIEF)
    await reauth(world)
    credentials = await store.people.credentials("new@moved.example")
    await store.sessions.change_password(world.session, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    with pytest.raises(SignedOut):
        await store.sessions.profile(world.session)


async def test_without_a_second_step_the_script_checks_the_password_too(store: Store) -> None:
    world = await World.make(store)
    call = store.links.to_change(world.session, world.email, THIEF, b"another hash", VISITOR)
    assert await refusal_of(call) == "access_denied"


async def test_the_mailed_undo_link_works_end_to_end(post: Post) -> None:
    thief = await post.service.signed_in()
    page = await thief.get("/account/email")
    await thief.submit(page, "/account/email", email=THIEF, current_password=PASSWORD)
    page = await thief.get(await post.link(THIEF, CHANGE))
    await thief.submit(page, "/account/email/change")
    owner = post.service.browser()
    link = await post.link(EMAIL, "Your e-mail address was changed")
    page = await owner.get(link)
    assert heading(await owner.get(link)).endswith("address back"), "to look uses nothing up"
    assert (await post.service.browser().sign_in(THIEF)).code == 303
    done = await owner.submit(page, "/account/email/undo")
    assert heading(done) == "Your address is restored"
    assert heading(await owner.get(link)) == "Your address is restored"
    await post.mails.newest(THIEF, "Your e-mail address change was undone")
    assert (await thief.get("/account")).code == 303
    assert (await post.service.browser().sign_in(EMAIL)).code == 400
    page = await owner.get(await post.link(EMAIL, RESET))
    await owner.submit(page, "/reset", new_password=NEW_PASSWORD)
    assert (await post.service.browser().sign_in(EMAIL, NEW_PASSWORD)).code == 303


async def test_with_a_second_step_reauthentication_uses_it_instead_of_the_password(post: Post) -> None:
    ada = await Person.arrive(post.service)
    await ada.add_app()
    page = await ada.browser.get("/account/email")
    assert "current_password" not in page.body.decode()
    confirm = await ada.browser.submit(page, "/account/email", email="new@example.com")
    assert confirm.code == 403
    done = await ada.browser.submit(confirm, "/account/email", confirm_password=PASSWORD, confirm_code=await ada.code())
    assert heading(done) == "Check your e-mail"
    assert "new_password" not in (await ada.browser.get(SECURITY)).body.decode()
