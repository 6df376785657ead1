"""Mails that anybody can request: they reveal no accounts, and what can block them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from handlers.core import mails
from handlers.core.site import Site
from outbound.mail.line import AT_ONCE, Rank
from outbound.mail.mailer import SmtpServer
from outbound.mail.room import MOST_NOTICES
from store.accounts.links import Link
from store.limits import network_of
from store.wiring import Store
from tests.accounts.mails.test_mail_queue import A_DAY, BASE_URL, LINK, NOTICE, STRANGER, Relay, end, many, refuse
from tests.support.browser.mailbox import Mailbox, mailer, until
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.parametrize("known", [True, False], ids=["an account", "no account"])
@pytest.mark.parametrize("ask", ["signup", "change", "reset"])
async def test_the_order_of_mails_tells_nobody_who_has_an_account(memory_store: Store, ask: str, known: bool) -> None:
    """A mail without a link waits its turn like the others."""
    world, stuck = await World.make(memory_store), asyncio.Event()
    relay = Relay(lambda message: stuck.wait())
    sender = mailer(relay)
    site = Site(memory_store, BASE_URL, mail=sender)
    for one in many(replace(LINK, subject="busy"), AT_ONCE):
        sender.post(one)
    await until(lambda: len(relay.tries) == AT_ONCE)
    address = world.email if known else "nobody@example.com"
    for _ in range(3):
        if ask == "signup":
            await mails.invitation(site, address, STRANGER, "")
        elif ask == "reset":
            await mails.forgotten(site, address, STRANGER, "")
        else:
            await mails.change(site, "u1", Link("text", address), STRANGER)
    sender.post(replace(LINK, subject="own", network=network_of(STRANGER)))
    stuck.set()
    await until(lambda: not sender.queue)
    assert relay.tries.index("own") == len(relay.tries) - 1 == AT_ONCE + 3


@pytest.mark.parametrize("refusals", [0, 1, 3])
async def test_a_reset_talks_to_the_mail_server_alike_with_and_without_an_account(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """Otherwise the time and the number of tries would reveal accounts. Whoever chooses how long their own mails take
    would read it from the next one."""
    world, box = await World.make(memory_store), await Mailbox.open()
    said: list[str] = []
    sizes: list[int] = []

    async def begin(server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        said.append(f"MAIL {address}")
        sizes.append(int(options[0].removeprefix("SIZE=").removeprefix("size=")))
        envelope.mail_from = address
        return "451 try later" if len(sizes) <= refusals else "250 OK"

    async def to(server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        said.append("RCPT")
        envelope.rcpt_tos.append(address)
        return "250 OK"

    monkeypatch.setattr(box, "handle_MAIL", begin, raising=False)
    monkeypatch.setattr(box, "handle_RCPT", to, raising=False)
    heard, lengths, ranks = [], [], []
    for asked in (world.email, "nobody@example.com"):
        sender = mailer(SmtpServer(box.url))
        await mails.forgotten(Site(memory_store, BASE_URL, mail=sender), asked, STRANGER, "")
        ranks += [one.mail.rank for one in sender.room._waiting]
        await until(lambda: not sender.queue)  # noqa: B023  # awaited within the turn
        heard.append([*said, box.recipients == [asked], len(box.mails)])
        lengths.append(sizes[0])
        for seen in (said, sizes, box.recipients, box.mails):
            seen.clear()
        await sender.close(1)
    assert heard[0] == heard[1]
    assert heard[0][-1] == (refusals < 3)
    assert ranks == [Rank.LINK, Rank.LINK]
    assert abs(lengths[0] - lengths[1]) < 100, "octets"
    await box.close()


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
