"""Mails that anybody can request: their order and queue places, and what can block them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from handlers.core import mails
from handlers.core.site import Site
from outbound.mail.line import AT_ONCE
from outbound.mail.room import MOST_NOTICES
from store.accounts.links import Link
from store.limits import network_of
from store.wiring import Store
from tests.accounts.mails.test_mail_queue import A_DAY, BASE_URL, LINK, NOTICE, STRANGER, Relay, end, many, refuse
from tests.support.browser.mailbox import mailer, until
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.parametrize("known", [True, False], ids=["an account", "no account"])
@pytest.mark.parametrize("ask", ["signup", "change"])
async def test_the_order_of_mails_tells_nobody_who_has_an_account(memory_store: Store, ask: str, known: bool) -> None:
    """The mail to an existing account has no link, and waits its turn like the others."""
    world, stuck = await World.make(memory_store), asyncio.Event()
    relay = Relay(lambda message: stuck.wait())
    sender = mailer(relay)
    site = Site(memory_store, BASE_URL, mail=sender)
    for one in many(replace(LINK, subject="busy"), AT_ONCE):
        sender.post(one)
    await until(lambda: len(relay.tries) == AT_ONCE)
    asked = world.email if known else "nobody@example.com"
    for _ in range(3):
        if ask == "signup":
            await mails.invitation(site, asked, STRANGER, "")
        else:
            await mails.change(site, "u1", Link("text", asked), STRANGER)
    sender.post(replace(LINK, subject="own", network=network_of(STRANGER)))
    stuck.set()
    await until(lambda: not sender.queue)
    assert relay.tries.index("own") == len(relay.tries) - 1 == AT_ONCE + 3


async def test_full_notice_queues_do_not_block_requested_mails(memory_store: Store) -> None:
    """A request reserves no notice place but counts for the address, so it must end with a mail."""
    world, sender = await World.make(memory_store), mailer(Relay(refuse), retries=(A_DAY,))
    site = Site(memory_store, BASE_URL, mail=sender)
    for one in many(NOTICE, MOST_NOTICES):
        sender.post(one)
    with mails.asking(site, STRANGER, "signup"):
        await mails.invitation(site, world.email, STRANGER, "")
    with mails.asking(site, STRANGER, "change"):
        await mails.change(site, "u1", Link("text", world.email), STRANGER)
    assert sender.queue == MOST_NOTICES + 2
    await end(sender)
