"""Places for queued mails: bounded, and shared between accounts and kinds of mail."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.message import EmailMessage

import pytest

from outbound.mail import room
from outbound.mail.room import MOST_ALIKE, MOST_NOTICES, MOST_OTHERS
from tests.support.browser.mailbox import MAIL, Kept, mailer, until


@pytest.mark.gen_test
async def test_the_mail_queue_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(room, "MOST_OTHERS", 3)
    kept = Kept()
    sender = mailer(kept)
    for _ in range(5):
        sender.post(MAIL)
    await sender.close(1)
    assert len(kept.mails) == 3
    assert caplog.messages == ["mail reset dropped: 3 without an undo link wait already"] * 2


@pytest.mark.gen_test
async def test_one_accounts_mails_of_one_kind_fill_few_places(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = Kept()
    sender = mailer(kept)
    outcomes: list[str] = []
    sender.watch = lambda what, outcome: outcomes.append(outcome)
    notice = replace(MAIL, payer=MAIL.to)
    others = (
        replace(notice, link=True),
        replace(notice, link=True, undo=True, what="second_step"),
        replace(notice, what="address_changed"),
        replace(notice, payer="grace@example.com"),
    )
    for _ in range(2):
        outcomes.clear()
        for number in range(MOST_ALIKE + 2):
            sender.post(replace(notice, to=f"{number}@example.com"))
        for other in others:
            sender.post(other)
        await until(lambda: not sender._tasks)
        assert (outcomes.count("dropped"), outcomes.count("sent")) == (2, MOST_ALIKE + len(others))
        assert sender.room.empty, "an account without mails takes no memory"
    assert caplog.messages == [f"mail reset dropped: {MOST_ALIKE} of this kind by this account wait already"] * 4
    await sender.close(1)


@pytest.mark.gen_test
async def test_notices_of_many_accounts_leave_places_for_mails_with_links() -> None:
    sent: list[EmailMessage] = []
    stuck = asyncio.Event()

    class Slow:
        async def send(self, message: EmailMessage) -> None:
            if message["Subject"] == "A notice":
                await stuck.wait()
            sent.append(message)

    sender = mailer(Slow())
    for number in range(MOST_NOTICES + 10):
        sender.post(replace(MAIL, subject="A notice", to=f"{number}@example.com"))
    assert sender.queue == MOST_NOTICES
    sender.post(replace(MAIL, link=True))
    await until(lambda: sent)
    assert [mail["Subject"] for mail in sent] == [MAIL.subject]
    for number in range(MOST_OTHERS):
        sender.post(replace(MAIL, subject="A notice", link=True, to=f"{number}@example.com"))
    assert sender.queue == MOST_OTHERS
    sender.post(replace(MAIL, link=True, undo=True))
    assert sender.queue == MOST_OTHERS + 1
    stuck.set()
    await sender.close(60)
    assert len(sent) == MOST_OTHERS + 2
