"""Queued mails: who fills the places, which mail is next, and what happens at shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pytest

from handlers.core import mails
from handlers.core.site import Site
from outbound.mail import mailer as module
from outbound.mail.line import AT_ONCE, LATER_AT_ONCE, NOTICES_AT_ONCE, Rank
from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer, SmtpServer, Undelivered
from outbound.mail.message import compose
from outbound.mail.room import (
    MOST_AFTER_UNDOS,
    MOST_ALIKE,
    MOST_ASKED,
    MOST_NOTICES,
    MOST_OTHERS,
    MOST_UNDOS,
    MOST_WAITING,
    NoRoom,
)
from store.lifetimes import MAIL_TO, SIGN_UP_ADDRESS, WIDE
from store.wiring import Store
from tests.support.browser.mailbox import MAIL, Kept, Mailbox, mailer, until
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)

NETWORKS = tuple(f"2001:db8:{number}" for number in range(1, 5))
"""Four IPv6 sites, each with its /48."""
BASE_URL, STRANGER = "https://id.example", "203.0.113.7"
REFUSED = "451 try later"
A_DAY = 86_400.0
NOTICE = replace(MAIL, what="new_sign_in", subject="notice")
LINK = replace(MAIL, subject="link", link=True)
UNDO = replace(MAIL, what="address_changed", subject="undo", link=True, undo=True)


class Relay:
    """A transport that does what a test says with each try; `tries` are the subjects it saw."""

    def __init__(self, answer: Callable[[EmailMessage], Any]) -> None:
        self.answer = answer
        self.tries: list[str] = []
        self.ids: list[str] = []

    async def send(self, message: EmailMessage) -> None:
        """Takes a mail, unless the test raises."""
        self.tries.append(message["Subject"])
        self.ids.append(message["Message-ID"])
        waits = self.answer(message)
        if waits:
            await waits


def refuse(message: EmailMessage) -> None:
    raise Undelivered(REFUSED, temporary=True)


def take(message: EmailMessage) -> None:
    """Says yes."""


def many(letter: Mail, number: int) -> Iterator[Mail]:
    """Copies of the mail, for `number` recipients."""
    return (replace(letter, to=f"{letter.subject}-{i}@example.com") for i in range(number))


def waiting_turns(sender: Mailer, rank: Rank) -> int:
    """The retries of this rank that wait for a place."""
    networks = sender._line._waiting[rank, True]._networks
    return sum(len(turns) for accounts in networks.values() for turns in accounts.values())


async def end(sender: Mailer) -> None:
    """Ends the mailer at once."""
    await sender.close(0.01)


async def test_one_networks_mails_of_all_kinds_fill_few_places() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    kinds = ("signup", "signup_again", "change", "confirm", "address_taken")
    for number in range(MOST_ASKED):
        mail = replace(LINK, what=kinds[number % len(kinds)], to=f"{number}@example.com", network="192.0.2.0/24")
        sender.post(mail)
    assert sender.queue == MOST_ASKED
    sender.post(mail)
    assert sender.queue == MOST_ASKED, "the network has no place left"
    sender.post(replace(mail, network="198.51.100.0/24"))
    sender.post(replace(UNDO, to="ada@example.com"))
    assert sender.queue == MOST_ASKED + 2, "others have"
    await end(sender)
    assert sender.room.empty, "a network without mails takes no memory"


async def test_a_queue_place_is_reserved_from_request_to_mail() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    with ExitStack() as reserved:
        for _ in range(MOST_ASKED):
            reserved.enter_context(sender.room.reserve("192.0.2.0/24", "signup"))
        for what in ("signup", "change", "confirm"):
            with pytest.raises(NoRoom), sender.room.reserve("192.0.2.0/24", what):
                raise AssertionError
        with sender.room.reserve("198.51.100.0/24", "signup"):
            assert not sender.room.empty
    assert sender.room.empty
    await end(sender)


@pytest.mark.parametrize("what", ["reset", "no_account"])
async def test_password_resets_have_their_own_places(what: str) -> None:
    """Other mails of a full network keep nobody from a new password."""
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    with ExitStack() as reserved:
        for _ in range(MOST_ASKED - 1):
            reserved.enter_context(sender.room.reserve("192.0.2.0/24", "signup"))
        for _ in range(MOST_ASKED):
            sender.post(replace(MAIL, what=what, network="192.0.2.0/24"))
        with pytest.raises(NoRoom), sender.room.reserve("192.0.2.0/24", "reset"):
            raise AssertionError
        reserved.enter_context(sender.room.reserve("192.0.2.0/24", "signup"))
    assert MAIL_TO.limit * 7 < MOST_ASKED, "seven accounts fill them in no network"
    await end(sender)


# No account can cause those that an operator's change sends.
OWN_CHANGES = [what for what in mails.TAKES_BACK if not what.startswith("operators/")]


def test_four_networks_and_five_accounts_leave_places_for_links_and_for_undo_links() -> None:
    undos = 5 * len(OWN_CHANGES) * MOST_UNDOS
    asked = len(NETWORKS) * (2 * MOST_ASKED + MOST_AFTER_UNDOS)
    assert asked + MOST_ALIKE <= MOST_OTHERS - MOST_NOTICES
    assert undos + MOST_UNDOS <= MOST_WAITING - MOST_OTHERS


async def test_undo_mails_of_five_accounts_take_no_places_of_other_links() -> None:
    sender = mailer(Relay(refuse), retries=(A_DAY,))
    for one in many(NOTICE, MOST_NOTICES):
        sender.post(one)
    for one in many(UNDO, 5 * len(OWN_CHANGES) * MOST_UNDOS):
        sender.post(one)
    for one in many(LINK, len(NETWORKS) * 2 * MOST_ASKED):
        sender.post(one)
    before = sender.queue
    with sender.room.reserve("192.0.2.0/24", "signup"):
        sender.post(replace(LINK, what="signup", to="ada@example.com", network="192.0.2.0/24"))
    assert sender.queue == before + 1
    await end(sender)


@pytest.mark.parametrize("letter", [NOTICE, LINK, UNDO], ids=lambda letter: letter.subject)
@pytest.mark.parametrize("tried", [False, True], ids=["first tries", "later tries"])
async def test_one_payers_mails_are_serial_and_do_not_delay_others(letter: Mail, tried: bool) -> None:
    slow, seen = asyncio.Event(), set[str]()

    def answer(message: EmailMessage) -> Any:
        if tried and message["Message-ID"] not in seen:
            seen.add(message["Message-ID"])
            return refuse(message)
        return slow.wait()

    relay = Relay(answer)
    sender = mailer(relay, retries=(0.0,))
    attack = replace(letter, subject="attack")
    for number in range(10):
        for network in NETWORKS:
            payer = f"{network}-{number}" if letter.undo and not tried else network
            sender.post(replace(attack, to=f"{number}@{network}.example", payer=network, what=f"{letter.what}{payer}"))
    await until(lambda: len(relay.tries) >= (41 if tried else NOTICES_AT_ONCE))
    await asyncio.sleep(0)
    for one in many(replace(letter, subject="stranger"), 12):
        sender.post(one)
    if tried:
        await until(lambda: relay.tries.count("stranger") == 12)
        await until(lambda: waiting_turns(sender, letter.rank) == 51)
    relay.tries.clear()
    slow.set()
    await until(lambda: not sender.queue)
    assert "attack" in relay.tries
    assert relay.tries[: 12 + 2 * len(NETWORKS)].count("stranger") == 12


async def test_ranks_take_turns() -> None:
    slow = asyncio.Event()
    relay = Relay(lambda message: slow.wait())
    sender = mailer(relay)
    for one in many(replace(NOTICE, subject="many"), 20):
        sender.post(one)
    for letter in (LINK, UNDO):
        for one in many(letter, 3):
            sender.post(one)
    await until(lambda: len(relay.tries) == AT_ONCE)
    slow.set()
    await until(lambda: not sender.queue)
    assert {"undo", "link"}.isdisjoint(relay.tries[12:])
    await end(sender)


async def test_busy_networks_do_not_crowd_out_others(memory_store: Store) -> None:
    world = await World.make(memory_store)

    def answer(message: EmailMessage) -> None:
        arrived.mails.append(message) if "attack" not in message["To"] else refuse(message)

    arrived = Kept()
    sender = mailer(Relay(answer), retries=(A_DAY,))
    site = Site(memory_store, BASE_URL, mail=sender)
    for network in NETWORKS:
        for number in range(SIGN_UP_ADDRESS.limit * WIDE):
            attack = f"attack-{network.replace(':', '-')}-{number}@example.com"
            await mails.invitation(site, attack, f"{network}:{number:x}::/64", "")
    await until(lambda: sender.queue == len(NETWORKS) * MOST_ASKED)
    await mails.invitation(site, "stranger@example.com", STRANGER, "")
    await mails.forgotten(site, world.email, STRANGER, "")
    undo = replace(UNDO, to=world.email, payer=world.user)
    sender.post(undo)
    await until(lambda: len(arrived.mails) == 3)
    assert {mail["Subject"] for mail in arrived.to(world.email)} == {"Set a new password", undo.subject}
    assert len(arrived.to("stranger@example.com")) == 1
    await end(sender)


@pytest.mark.parametrize("letter", [NOTICE, LINK, UNDO], ids=lambda letter: letter.subject)
async def test_retries_to_a_slow_relay_hold_few_places(letter: Mail) -> None:
    seen: set[str] = set()
    slow = asyncio.Event()

    def answer(message: EmailMessage) -> Any:
        if message["Subject"] == "new":
            return None
        if message["Message-ID"] in seen:
            return slow.wait()
        seen.add(message["Message-ID"])
        return refuse(message)

    relay = Relay(answer)
    sender = mailer(relay, retries=(0.0,))
    for one in many(letter, 10):
        sender.post(one)
    await until(lambda: len(relay.tries) == 10 + LATER_AT_ONCE)
    for one in many(replace(letter, subject="new"), 2 * AT_ONCE):
        sender.post(one)
    await until(lambda: relay.tries.count("new") == 2 * AT_ONCE)
    assert len(relay.tries) == 10 + LATER_AT_ONCE + 2 * AT_ONCE
    slow.set()
    await until(lambda: not sender.queue)


def test_retries_of_all_ranks_leave_a_place_free() -> None:
    assert LATER_AT_ONCE * len(Rank) < AT_ONCE


async def test_shutdown_sends_undo_links_then_links_then_notices() -> None:
    relay = Relay(refuse)
    sender = mailer(relay, retries=(A_DAY,))
    for letter in (NOTICE, LINK, UNDO):
        for one in many(letter, 6):
            sender.post(one)
    await until(lambda: len(relay.tries) == 18)
    relay.tries, relay.answer = [], take
    await sender.close(10)
    assert relay.tries == ["undo"] * 6 + ["link"] * 6 + ["notice"] * 6


async def test_shutdown_orders_untried_mails_the_same_way() -> None:
    slow = asyncio.Event()
    relay = Relay(lambda message: slow.wait())
    sender = mailer(relay)
    for letter in (replace(LINK, subject="before"), NOTICE, LINK, UNDO):
        for one in many(letter, AT_ONCE):
            sender.post(one)
    await until(lambda: len(relay.tries) == AT_ONCE)
    ended = asyncio.ensure_future(sender.close(10))
    await asyncio.sleep(0)
    slow.set()
    await ended
    assert relay.tries == [subject for subject in ("before", "undo", "link", "notice") for _ in range(AT_ONCE)]


async def test_waiters_cut_off_at_shutdown_leave_nothing_behind() -> None:
    relay = Relay(lambda message: asyncio.Event().wait())
    sender = mailer(relay)
    for one in many(NOTICE, 20):
        sender.post(one)
    await until(lambda: len(relay.tries) == 3)
    await end(sender)
    assert len(relay.tries) == 3, "none was begun for a moment"
    assert (
        sender.queue,
        sender._line._sending,
        any(sender._line._waiting.values()),
    ) == (0, [], False)


@pytest.mark.parametrize(
    ("doubts", "tries"),
    [
        pytest.param([True, True, True], 3, id="each time"),
        pytest.param([True, False, False], 3, id="the first time"),
        pytest.param([False, False, False, True], 4, id="at a late try"),
        pytest.param([False] * 5, 5, id="never"),
    ],
)
async def test_a_possibly_accepted_mail_gets_no_late_retries(doubts: list[bool], tries: int) -> None:
    left = list(doubts)

    def answer(message: EmailMessage) -> None:
        raise Undelivered("no answer", temporary=True, maybe_sent=left.pop(0))

    relay = Relay(answer)
    sender = mailer(relay, late=(0.01, 0.01))
    sender.post(UNDO)
    await until(lambda: not sender.queue)
    assert len(relay.tries) == tries
    assert len(set(relay.ids)) == 1, "a mailbox knows a mail that came twice"


@pytest.mark.parametrize(
    ("how", "doubt"),
    [
        pytest.param({"hang": True}, True, id="no answer to the mail"),
        pytest.param({"break_off": 1}, True, id="broken off"),
        pytest.param({"answers": [REFUSED]}, False, id="refused"),
        pytest.param({"away": True}, False, id="away"),
    ],
)
async def test_a_mail_without_an_answer_counts_as_possibly_accepted(how: dict[str, Any], doubt: bool) -> None:
    box = await Mailbox.open()
    if how.pop("hang", None):
        box.hang = asyncio.Event()
    url = box.url
    if how.pop("away", None):
        await box.close()
    vars(box).update(how)
    with pytest.raises(Undelivered) as failure:
        await SmtpServer(url, timeout=0.2).send(compose(MAIL, "noreply@id.example"))
    assert (failure.value.temporary, failure.value.maybe_sent) == (True, doubt)
    await box.close()
    await until(lambda: len(asyncio.all_tasks()) == 1)  # the server has closed its connection


async def test_a_mail_is_composed_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[str] = []

    def noted(letter: Mail, *more: Any) -> EmailMessage:
        composed.append(letter.to)
        return compose(letter, *more)

    monkeypatch.setattr(module, "compose", noted)
    relay = Relay(lambda message: asyncio.Event().wait())
    sender = mailer(relay)
    for one in many(LINK, 20):
        sender.post(one)
    await until(lambda: len(relay.tries) == AT_ONCE)
    assert len(composed) == AT_ONCE
    await end(sender)
