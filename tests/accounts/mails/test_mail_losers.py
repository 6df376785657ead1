"""Many accounts fill the places for undo links or for notices: the ones with the most lose places to the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pytest

from outbound.mail.line import NOTICES_AT_ONCE
from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer
from outbound.mail.room import (
    MOST_ALIKE,
    MOST_NOTICES,
    MOST_OTHERS,
    MOST_UNDOS,
    MOST_UNDOS_IN_ALL,
    MOST_WAITING,
    Waiting,
)
from tests.accounts.mails.test_mail_queue import A_DAY, LINK, NOTICE, UNDO, Relay, end, many, refuse
from tests.support.browser.mailbox import mailer, until

pytestmark = pytest.mark.gen_test(timeout=60)

PLACES = {"notice": MOST_NOTICES, "undo": MOST_UNDOS_IN_ALL}
OWN = {"notice": MOST_ALIKE, "undo": MOST_UNDOS}
ADA = "ada@example.com"


def picky(message: EmailMessage) -> None:
    """Refuses for now every mail but Ada's, as relays do whose look-up of a domain fails."""
    if message["To"] != ADA:
        refuse(message)


def sent_and_dropped(sender: Mailer) -> list[str]:
    """The outcome of each mail, from now on."""
    outcomes: list[str] = []
    sender.watch = lambda what, outcome: outcomes.append(outcome)
    return outcomes


async def fill(sender: Mailer, relay: Relay, letter: Mail, accounts: int, each: int) -> None:
    """Posts mails of many accounts, and waits until each waiting mail was tried."""
    for number in range(each):
        for one in many(letter, accounts):
            sender.post(replace(one, payer=one.to, to=f"{number}-{one.to}"))
    await until(lambda: len(relay.tries) >= sender.queue and not sender._line._sending)


async def test_undo_links_of_a_hundred_accounts_keep_out_no_other_mail() -> None:
    relay = Relay(picky)
    sender = mailer(relay, retries=(A_DAY,))
    await fill(sender, relay, UNDO, MOST_WAITING // MOST_UNDOS, MOST_UNDOS)
    assert sender.queue == MOST_UNDOS_IN_ALL
    with sender.room.reserve("192.0.2.0/24", "signup"):
        sender.post(replace(LINK, what="signup", network="192.0.2.0/24"))
    for one in many(LINK, MOST_OTHERS - 1):
        sender.post(one)
    assert sender.queue == MOST_WAITING
    await end(sender)
    await until(lambda: sender.room.empty)


@pytest.mark.parametrize("letter", [NOTICE, UNDO], ids=lambda letter: letter.subject)
@pytest.mark.parametrize("each", ["one", "many"])
async def test_mails_of_many_accounts_keep_nobody_elses_of_their_kind_out(letter: Mail, each: str) -> None:
    relay = Relay(picky)
    sender = mailer(relay, retries=(A_DAY,))
    places = PLACES[letter.subject]
    outcomes = sent_and_dropped(sender)
    if each == "one":
        await fill(sender, relay, letter, places, 1)
    else:
        await fill(sender, relay, letter, places // OWN[letter.subject], OWN[letter.subject])
    assert (sender.queue, outcomes) == (places, [])
    sender.post(replace(letter, to=ADA, payer="ada"))
    assert (sender.queue, outcomes) == (places, ["dropped"])
    await until(lambda: "sent" in outcomes)
    assert outcomes == ["dropped", "sent"]
    assert sender.queue == places - 1
    await end(sender)
    await until(lambda: sender.room.empty)
    assert len(outcomes) == places + 1, "each mail has one outcome"


async def test_the_account_with_the_most_loses_its_newest() -> None:
    """Its first link undoes the later changes too."""
    relay = Relay(picky)
    sender = mailer(relay, retries=(A_DAY,))
    for number in range(MOST_UNDOS - 1):
        sender.post(replace(UNDO, to=f"{number}@example.com", payer="most"))
    await fill(sender, relay, UNDO, MOST_UNDOS_IN_ALL - MOST_UNDOS, 1)
    sender.post(replace(UNDO, to="untried@example.com", payer="most"))
    sender.post(replace(UNDO, to=ADA, payer="ada"))
    left = [one.mail.to for one in sender.room._waiting if one.mail.payer == "most"]
    assert left == [f"{number}@example.com" for number in range(MOST_UNDOS - 1)]
    await end(sender)


@pytest.mark.parametrize("letter", [NOTICE, UNDO], ids=lambda letter: letter.subject)
async def test_an_account_whose_newest_mail_is_being_sent_loses_none(letter: Mail) -> None:
    """A thief's slow mailbox can't expose the first link."""
    relay = Relay(picky)
    sender = mailer(relay, retries=(A_DAY,))
    sender.post(replace(letter, to="first@example.com", payer="most"))
    await fill(sender, relay, letter, PLACES[letter.subject] - 2, 1)
    sender.post(replace(letter, to="slow@example.com", payer="most"))
    last = list(sender.room._waiting)[-1]
    last.sending = True
    for number in range(5):
        sender.post(replace(letter, to=f"{number}@example.com", payer=f"{number}"))
    assert [one.mail.to for one in sender.room._waiting if one.mail.payer == "most"] == [
        "first@example.com",
        "slow@example.com",
    ]
    await end(sender)


async def test_an_account_with_the_most_gets_no_place_of_others(caplog: pytest.LogCaptureFixture) -> None:
    relay = Relay(picky)
    sender = mailer(relay, retries=(A_DAY,))
    await fill(sender, relay, UNDO, MOST_UNDOS_IN_ALL, 1)
    before = list(sender.room._waiting)
    sender.post(replace(UNDO, to=ADA, payer="undo-0@example.com"))
    assert list(sender.room._waiting) == before
    assert caplog.messages == [f"mail address_changed dropped: {MOST_UNDOS_IN_ALL} with an undo link wait already"]
    await end(sender)


async def test_a_mail_that_is_being_sent_or_was_never_tried_keeps_its_place() -> None:
    slow = asyncio.Event()

    def answer(message: EmailMessage) -> Any:
        return slow.wait()

    sender = mailer(Relay(answer))
    for one in many(UNDO, MOST_UNDOS_IN_ALL):
        sender.post(one)
    await until(lambda: sum(one.sending for one in sender.room._waiting) > 1)
    before = list(sender.room._waiting)
    sender.post(replace(UNDO, to=ADA, payer="ada"))
    assert list(sender.room._waiting) == before
    slow.set()
    await until(lambda: not sender.queue)
    assert sender.room.empty


@pytest.mark.parametrize("letter", [NOTICE, UNDO], ids=lambda letter: letter.subject)
async def test_the_lot_decides_which_of_many_accounts_loses_its_mail(
    monkeypatch: pytest.MonkeyPatch, letter: Mail
) -> None:
    """Whoever fills the places with mails of many accounts can't choose that the mail about a theft goes. A notice may
    go before it was tried, so that untried ones keep no other out."""
    stuck, places = asyncio.Event(), PLACES[letter.subject]
    relay = Relay(refuse if letter.undo else lambda message: stuck.wait())
    sender = mailer(relay, retries=(A_DAY,))
    outcomes = sent_and_dropped(sender)
    for one in many(letter, places):
        sender.post(replace(one, payer=one.to))
    await until(lambda: len(relay.tries) == (places if letter.undo else NOTICES_AT_ONCE))
    lots: list[list[str]] = []

    def draw(losers: list[Waiting]) -> Waiting:
        lots.append([one.mail.to for one in losers])
        return losers[17]

    monkeypatch.setattr("outbound.mail.room.secrets.choice", draw)
    waiting = [one.mail.to for one in sender.room._waiting if not one.sending]
    sender.post(replace(letter, to=ADA, payer="ada"))
    assert waiting in lots
    assert len(waiting) == (places if letter.undo else places - NOTICES_AT_ONCE)
    left = [one.mail.to for one in sender.room._waiting]
    assert ADA in left
    assert waiting[17] not in left
    sender.post(replace(letter, to="again@example.com", payer="ada"))
    assert [one.mail.to for one in sender.room._waiting] == left, "an account with as many gets no place of others"
    assert outcomes == ["dropped", "dropped"]
    stuck.set()
    await end(sender)


async def test_a_notice_that_was_tried_goes_before_one_that_was_not() -> None:
    relay, stuck = Relay(refuse), asyncio.Event()
    sender = mailer(relay, retries=(A_DAY,))
    await fill(sender, relay, NOTICE, MOST_NOTICES - NOTICES_AT_ONCE - 1, 1)
    relay.answer = lambda message: stuck.wait()
    for number in range(NOTICES_AT_ONCE):
        sender.post(replace(NOTICE, to=f"slow-{number}@example.com", payer=f"slow-{number}"))
    await until(lambda: len(sender._line._sending) == NOTICES_AT_ONCE)
    sender.post(replace(NOTICE, to=ADA, payer="ada"))
    untried = ADA, *(f"{number}@example.com" for number in range(50))
    for to in untried[1:]:
        sender.post(replace(NOTICE, to=to, payer=to))
    assert sender.queue == MOST_NOTICES
    assert set(untried) <= {one.mail.to for one in sender.room._waiting}
    stuck.set()
    await end(sender)


@pytest.mark.parametrize("letter", [NOTICE, UNDO], ids=lambda letter: letter.subject)
async def test_networks_take_turns_before_accounts_do(letter: Mail) -> None:
    stuck = asyncio.Event()
    relay = Relay(lambda message: stuck.wait())
    sender = mailer(relay)
    for one in many(replace(letter, subject="many"), 100):
        sender.post(replace(one, payer=one.to, origin="192.0.2.0/24"))
    await until(lambda: len(relay.tries) >= NOTICES_AT_ONCE)
    busy = len(relay.tries)
    for _ in range(3):
        sender.post(replace(letter, subject="heir", to=ADA, payer="most", origin="192.0.2.0/24"))
    for one in many(replace(letter, subject="late"), 5):
        sender.post(replace(one, payer=one.to, origin="192.0.2.0/24"))
    for one in many(replace(letter, subject="other"), 3):
        sender.post(replace(one, payer=one.to, origin="198.51.100.0/24"))
    stuck.set()
    await until(lambda: not sender.queue)
    said = relay.tries[busy:]
    assert [place for place, subject in enumerate(said) if subject == "other"] == [1, 3, 5]
    own = [subject for subject in said if subject != "other"]
    assert own == ["many"] * (100 - busy) + ["heir"] + ["late"] * 5 + ["heir"] * 2
