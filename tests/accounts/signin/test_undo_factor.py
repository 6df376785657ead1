"""Undoing a first second step with the mailed link, for a week, whatever a thief does meanwhile."""

from __future__ import annotations

import pytest

from outbound.mail.message import plain_text
from store import keys
from store.accounts.signin.factors import MOST_UNDOS
from store.wiring import Store
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, RESET, Post, heading
from tests.support.browser.second_factors import SECURITY, Person, recovery_codes
from tests.support.http.driver import EMAIL, PASSWORD, text_of
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import App, add_passkey, is_live, reauth
from tests.support.store.world import VISITOR, World, refusal_of, to_change

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

A_WEEK = 7 * 86_400
ADDED, SET_UP = "A passkey was added to your account", "An authenticator app was added to your account"
THIEF, NEW_PASSWORD, THIEFS = "thief@example.com", "another horse battery", "the words of a thief"
UNDO = "/account/email/undo"


async def undo_of(world: World) -> str:
    assert world.undo
    assert world.undo.email == world.email
    return world.undo.text


async def starts_over(world: World) -> None:
    """The person resets the password by mail and signs in with it alone."""
    reset = await world.store.links.to_reset(world.user, world.email)
    assert reset
    await world.store.links.reset(reset.text, NEW_PASSWORD, VISITOR)
    world.session = await world.sign_in(password=NEW_PASSWORD)


async def test_the_undo_link_locks_out_a_thief_with_cookie_and_password(store: Store) -> None:
    """Two passkeys, an authenticator app and a new password: one link undoes all of it."""
    world = await World.make(store)
    await add_passkey(world)
    undo = await undo_of(world)
    await add_passkey(world)
    assert world.undo is None, "adding a second one took the first"
    await App.add(world)
    assert world.undo is None
    await reauth(world)
    credentials = await store.people.credentials(world.email)
    cookie = await store.sessions.change_password(world.session, PASSWORD, THIEFS, credentials, VISITOR)
    session = store.sessions.open(cookie)
    assert session
    seen = await store.undoing.look(undo)
    assert (seen.old, seen.new, seen.used, seen.first_factor) == (world.email, world.email, False, True)
    assert await is_live(world, session), "to look changes nothing"
    await store.undoing.undo(undo, VISITOR)
    assert not await is_live(world, session)
    for password in (PASSWORD, THIEFS):
        assert await store.people.verify(world.email, password) is None
    await starts_over(world)
    found = await store.factors.of(world.session)
    assert (found.second, found.codes) == (False, 0)
    assert (await store.undoing.undo(undo, VISITOR)).used, "a second click is answered kindly"
    assert await is_live(world, world.session), "and does nothing"
    events = await world.events()
    assert "second_step_undone" in events
    assert "email_change_undone" not in events


async def test_the_undo_link_also_restores_a_changed_address(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    undo = await undo_of(world)
    clock.advance(A_WEEK - 3600)
    await reauth(world)
    moved = await to_change(memory_store, world.session, THIEF)
    later = (await memory_store.links.change(world.session, moved.text, VISITOR)).undo
    assert later
    assert (await memory_store.undoing.undo(undo, VISITOR)).old == world.email
    assert await memory_store.people.find(world.email) == world.user
    assert await world.person(THIEF), "the address of the thief is free"
    assert await refusal_of(memory_store.undoing.undo(later.text, VISITOR)) == "invalid_request"
    await starts_over(world)
    assert {"second_step_undone", "email_change_undone"} <= set(await world.events())


async def test_the_link_works_for_a_week(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    undo = await undo_of(world)
    clock.advance(A_WEEK + 1)
    for call in (memory_store.undoing.look(undo), memory_store.undoing.undo(undo, VISITOR)):
        assert await refusal_of(call) == "invalid_request"
    await reauth(world)
    assert (await memory_store.factors.of(world.session)).second


async def test_no_mail_weakens_an_earlier_second_step(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    undo = await undo_of(world)
    clock.advance(A_WEEK + 60)
    await add_passkey(world)
    assert world.undo is None
    assert await refusal_of(memory_store.undoing.undo(undo, VISITOR)) == "invalid_request"
    assert len((await memory_store.factors.of(world.session)).passkeys) == 1


async def test_an_unconfirmed_address_gets_no_undo_link(store: Store) -> None:
    """The owner of that mailbox may be a stranger."""
    world = await World.make(store)
    await store.client.hset(keys.person(world.user)["user"], "verified", "0")
    await add_passkey(world)
    assert world.undo is None


async def test_repeated_changes_keep_the_first_and_the_newest_undo_link(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    links = []
    for _ in range(MOST_UNDOS + 2):
        await App.add(world)
        links.append(await undo_of(world))
        await reauth(world)
        await memory_store.factors.disable_totp(world.session, VISITOR)
        await memory_store.client.delete(keys.person(world.user)["recovery"])
        clock.advance(60)
    works = [await refusal_of(memory_store.undoing.look(link)) is None for link in links]
    assert works == [True] * (MOST_UNDOS - 1) + [False] * (len(links) - MOST_UNDOS) + [True]
    moved = await to_change(memory_store, world.session, THIEF)
    assert (await memory_store.links.change(world.session, moved.text, VISITOR)).undo, "the address can still change"
    await memory_store.undoing.undo(links[0], VISITOR)
    assert await refusal_of(memory_store.undoing.undo(links[-1], VISITOR)) == "invalid_request"
    assert await memory_store.people.find(world.email) == world.user


async def test_deletion_frees_the_address_of_an_undo_link(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    await store.people.delete(world.user)
    assert await refusal_of(store.undoing.undo(await undo_of(world), VISITOR)) == "invalid_request"
    assert await world.person(world.email)


async def test_the_mailed_undo_link_works_end_to_end(post: Post) -> None:
    thief = Person(post.service, await post.service.signed_in())
    thief.codes = recovery_codes(await thief.add_passkey())
    await thief.reauth(thief.codes.pop())
    await thief.add_app()
    await post.settled()
    assert UNDO not in plain_text(await post.mails.newest(EMAIL, SET_UP)), "the passkey was shown for it"
    owner = post.service.browser()
    link = await post.link(EMAIL, ADDED)
    page = await owner.get(link)
    assert heading(await owner.get(link)) == "Remove this sign-in method", "to look uses nothing up"
    assert "<bdi>" not in page.body.decode().partition("<main")[2], "no address changes"
    assert (await thief.browser.get("/account")).code == 200
    done = await owner.submit(page, UNDO)
    assert heading(done) == heading(await owner.get(link)) == "The sign-in method was removed"
    assert (await thief.browser.get("/account")).code == 303
    await post.settled()
    subjects = [mail["Subject"] for mail in post.mails.to(EMAIL)]
    assert "Two-step verification was turned off" in subjects
    assert "Your e-mail address change was undone" not in subjects
    page = await owner.get(await post.link(EMAIL, RESET))
    await owner.submit(page, "/reset", new_password=NEW_PASSWORD)
    assert (await owner.sign_in(EMAIL, NEW_PASSWORD, "/account")).headers["Location"] == "/account"
    assert "Two-step verification turned off by e-mail link" in text_of(await owner.get(SECURITY))


async def test_the_undo_page_says_whether_the_address_is_restored(post: Post) -> None:
    thief = Person(post.service, await post.service.signed_in())
    thief.codes = recovery_codes(await thief.add_passkey())
    page = await thief.browser.get("/account/email")
    confirm = await thief.browser.submit(page, "/account/email", email=THIEF)
    await thief.browser.submit(confirm, "/account/email", confirm_password=PASSWORD, confirm_code=thief.codes.pop())
    await thief.browser.submit(await thief.browser.get(await post.link(THIEF, CHANGE)), "/account/email/change")
    owner = post.service.browser()
    page = await owner.get(await post.link(EMAIL, ADDED))
    assert f"Current address {THIEF} Address to restore {EMAIL}" in text_of(page)
    await owner.submit(page, UNDO)
    await post.settled()
    await post.mails.newest(THIEF, "Your e-mail address change was undone")
    await post.mails.newest(EMAIL, "Two-step verification was turned off")
