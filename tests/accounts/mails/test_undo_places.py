"""A change that an undo link must follow is made only if the mail with that link has a place."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from outbound.mail.mail import Mail
from outbound.mail.message import plain_text
from outbound.mail.room import MOST_AFTER_UNDOS, MOST_UNDOS_IN_ALL, MOST_UNDOS_OF_NETWORK, SPARE_UNDOS, NoRoom
from tests.accounts.mails.test_email_links_addresses import NEW, ask_for
from tests.accounts.mails.test_mail_queue import A_DAY, LINK, UNDO, Relay, end, many, refuse
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, Post, heading
from tests.support.browser.mailbox import mailer, until
from tests.support.browser.second_factors import Person
from tests.support.http.driver import EMAIL

pytestmark = pytest.mark.gen_test(timeout=60)
confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post
NETWORK = "192.0.2.0/24"
ADA = replace(UNDO, to="ada@example.com", payer="ada")


async def test_an_address_changes_only_if_its_undo_link_can_be_mailed(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many accounts change their own addresses at once, faster than a mail server takes mails."""
    browser, stuck = await post.service.signed_in(), asyncio.Event()
    await ask_for(browser, NEW)
    page = await browser.get(await post.link(NEW, CHANGE))
    await post.settled()
    send = post.mails.send

    async def slow(message: Any) -> None:
        await stuck.wait()
        await send(message)

    monkeypatch.setattr(post.mails, "send", slow)
    for one in many(UNDO, MOST_UNDOS_IN_ALL):
        post.site.mail.post(one)
    refused = await browser.submit(page, "/account/email/change")
    assert (refused.code, refused.headers["Retry-After"]) == (429, "60")
    assert (await post.service.browser().sign_in(EMAIL)).code == 303, "nothing has changed"
    stuck.set()
    await until(lambda: not post.site.mail.queue)
    assert heading(await browser.submit(page, "/account/email/change")) == "Your address was changed"
    await post.settled()
    assert "/account/email/undo?link=" in plain_text(post.mails.to(EMAIL)[-1])
    assert post.site.mail.room.empty, "no change keeps its place"


async def test_reserved_places_are_counted() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    for one in many(UNDO, MOST_UNDOS_IN_ALL - 1):
        sender.post(one)
    with sender.room.reserve_undo("ada", UNDO.what, "198.51.100.0/24"):
        with pytest.raises(NoRoom), sender.room.reserve_undo("grace", UNDO.what, "203.0.113.0/24"):
            raise AssertionError
        sender.post(ADA)
    assert sender.queue == MOST_UNDOS_IN_ALL
    await end(sender)
    await until(lambda: sender.room.empty)


async def test_a_reserved_place_outlives_the_mail_that_was_to_lose_its_own() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    for one in many(UNDO, MOST_UNDOS_IN_ALL):
        sender.post(one)
    await until(lambda: all(one.tried and not one.sending for one in sender.room._waiting))
    with ExitStack() as reserved:
        for number in range(SPARE_UNDOS):
            reserved.enter_context(sender.room.reserve_undo(f"{number}", UNDO.what, NETWORK))
        with pytest.raises(NoRoom), sender.room.reserve_undo("grace", UNDO.what, "203.0.113.0/24"):
            raise AssertionError
        for waiting in sender.room._waiting:
            waiting.sending = True
        sender.post(replace(UNDO, payer="grace"))
        assert sender.queue == MOST_UNDOS_IN_ALL, "a reserved place is for its account"
        for number in range(SPARE_UNDOS):
            sender.post(replace(UNDO, payer=f"{number}"))
        assert sender.queue == MOST_UNDOS_IN_ALL + SPARE_UNDOS, "none is dropped"
    await end(sender)
    await until(lambda: sender.room.empty)


async def test_untried_undo_links_of_one_network_take_a_tenth_of_the_places() -> None:
    """A network with more accounts can't delay the undo links of others, nor keep them from a change."""
    stuck = asyncio.Event()
    sender = mailer(Relay(lambda message: stuck.wait()))
    for one in many(replace(UNDO, origin=NETWORK), MOST_UNDOS_OF_NETWORK - 1):
        sender.post(replace(one, payer=one.to))
    with sender.room.reserve_undo("grace", UNDO.what, NETWORK):
        with pytest.raises(NoRoom), sender.room.reserve_undo("eve", UNDO.what, NETWORK):
            raise AssertionError
        with sender.room.reserve_undo("ada", UNDO.what, "198.51.100.0/24"):
            sender.post(replace(ADA, origin="198.51.100.0/24"))
        sender.post(replace(UNDO, payer="grace", origin=NETWORK))
    with pytest.raises(NoRoom), sender.room.reserve_undo("eve", UNDO.what, NETWORK):
        raise AssertionError
    assert sender.queue == MOST_UNDOS_OF_NETWORK + 1
    assert MOST_UNDOS_OF_NETWORK * 10 == MOST_UNDOS_IN_ALL
    stuck.set()
    await until(lambda: not sender.queue)
    assert sender.room.empty


async def test_undo_links_that_were_tried_keep_no_change_of_their_network_back() -> None:
    """They no longer delay others' first tries, and a mail server may be away for long."""
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    for one in many(replace(UNDO, origin=NETWORK), MOST_UNDOS_OF_NETWORK):
        sender.post(replace(one, payer=one.to))
    await until(lambda: all(one.tried and not one.sending for one in sender.room._waiting))
    with sender.room.reserve_undo("ada", UNDO.what, NETWORK):
        sender.post(replace(ADA, origin=NETWORK))
    assert sender.queue == MOST_UNDOS_OF_NETWORK + 1
    await end(sender)


@pytest.mark.parametrize("change", ["address", "app", "passkey"])
async def test_a_full_network_changes_nothing_that_an_undo_link_must_follow(
    post: Post, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    person, stuck = await Person.arrive(post.service), asyncio.Event()
    if change == "address":
        await ask_for(person.browser, NEW)
        page = await person.browser.get(await post.link(NEW, CHANGE))
    await post.settled()

    async def act() -> int:
        if change == "address":
            return (await person.browser.submit(page, "/account/email/change")).code
        return (await (person.add_app() if change == "app" else person.add_passkey())).code

    send = post.mails.send
    monkeypatch.setattr(post.mails, "send", lambda message: stuck.wait())
    for one in many(replace(UNDO, origin="127.0.0.0/24"), MOST_UNDOS_OF_NETWORK):
        post.site.mail.post(replace(one, payer=one.to))
    assert await act() == 429
    monkeypatch.setattr(post.mails, "send", send)
    stuck.set()
    await until(lambda: not post.site.mail.queue)
    assert await act() == 200
    await post.settled()
    assert post.site.mail.room.empty


@pytest.mark.parametrize("factor", ["app", "passkey"])
async def test_a_second_step_is_added_only_if_its_undo_link_can_be_mailed(
    post: Post, monkeypatch: pytest.MonkeyPatch, factor: str
) -> None:
    person, stuck = await Person.arrive(post.service), asyncio.Event()
    await post.settled()
    monkeypatch.setattr(post.mails, "send", lambda message: stuck.wait())
    for one in many(UNDO, MOST_UNDOS_IN_ALL):
        post.site.mail.post(one)
    refused = await (person.add_app() if factor == "app" else person.add_passkey())
    assert (refused.code, refused.headers["Retry-After"]) == (429, "60")
    signed_in = await post.service.browser().sign_in(EMAIL)
    assert "second" not in signed_in.headers["Location"], "no second step was added"
    stuck.set()
    await until(lambda: not post.site.mail.queue)
    added = await (person.add_app() if factor == "app" else person.add_passkey())
    assert added.code == 200
    assert "second" in (await post.service.browser().sign_in(EMAIL)).headers["Location"]
    await post.settled()
    assert post.site.mail.room.empty


async def test_links_after_the_undo_links_of_one_network_fill_few_places() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    reset = replace(LINK, what="reset", origin=NETWORK)
    for one in many(reset, MOST_AFTER_UNDOS + 1):
        sender.post(replace(one, payer=one.to))
    assert sender.queue == MOST_AFTER_UNDOS
    sender.post(replace(reset, payer="ada", origin="198.51.100.0/24"))
    with sender.room.reserve(NETWORK, "reset"):
        sender.post(replace(reset, payer="ada", origin="", network=NETWORK))
    assert sender.queue == MOST_AFTER_UNDOS + 2, "people in the network can ask for a link"
    await end(sender)
    assert sender.room.empty


async def test_a_new_password_after_an_undo_counts_for_the_visitors_network(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    thief, owner = await post.service.signed_in(), post.service.browser()
    await ask_for(thief, NEW)
    await thief.submit(await thief.get(await post.link(NEW, CHANGE)), "/account/email/change")
    page = await owner.get(await post.link(EMAIL, "Your e-mail address was changed"))
    posted: list[Mail] = []
    monkeypatch.setattr(post.site.mail, "post", posted.append)
    await owner.submit(page, "/account/email/undo")
    await until(lambda: any(letter.what == "reset" for letter in posted))
    assert {letter.origin for letter in posted} == {"127.0.0.0/24"}
