"""Mail leaves in the background, through a real SMTP server or into a folder, and never makes anything wait or fail."""

from __future__ import annotations

import asyncio
import email
import logging
import stat
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from outbound.mail import room
from outbound.mail.mail import Mail
from outbound.mail.mailer import KEPT, SmtpServer, Spool, Undelivered, compose
from outbound.mail.room import MOST_ALIKE, MOST_NOTICES, MOST_OTHERS
from runtime.arguments import load
from runtime.outbound_wiring import open_mailer
from settings.declared import Settings
from settings.types import SettingsError
from tests.engine.keys.test_check_store import certificate
from tests.support.browser.mailbox import MAIL, Kept, Mailbox, login, mailer, tls, until
from tests.support.lists.offenders import each

PASSWORD = "pass:w/rd@1"
SECRET_LINK = "lk_pr_x"


@pytest.fixture
def options() -> dict[str, Any]:
    """How a test wants the mail server to be."""
    return {}


@pytest.fixture
def mailbox(io_loop: IOLoop, options: dict[str, Any]) -> Iterator[Mailbox]:
    async def listen() -> Mailbox:
        return await Mailbox.open(**options)

    made = io_loop.run_sync(listen)
    yield made
    io_loop.run_sync(made.close)


@pytest.mark.gen_test
async def test_a_mail_arrives_as_it_was_written(mailbox: Mailbox) -> None:
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(replace(MAIL, text="Grüße, öffne das:\n\n" + "https://id.example/reset?link=" + "x" * 400 + "\n"))
    found = await mailbox.mail()
    assert found["To"] == "ada@example.com"
    assert found["From"].addresses[0].addr_spec == "noreply@id.example"
    assert found["Subject"] == "Set a new password"
    assert found["Auto-Submitted"] == "auto-generated"
    assert found["Date"].datetime.tzinfo is not None
    assert found["Message-ID"].endswith("@id.example>")
    assert found.get_content_type() == "text/plain"
    assert "Grüße" in found.get_content()
    assert "x" * 400 in found.get_content()
    assert mailbox.recipients == ["ada@example.com"]
    await sender.close(1)


@pytest.mark.gen_test
@pytest.mark.parametrize("mail", ["x", "\u00fc"], ids=["ascii", "beyond"])
@pytest.mark.parametrize("length", [990, 998, 999, 5000])
async def test_a_line_longer_than_mail_servers_take_arrives_whole(mailbox: Mailbox, mail: str, length: int) -> None:
    """RFC 5321 4.5.3.1.6: 1,000 octets with its end."""
    line = mail * length
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(replace(MAIL, text=f"One:\n\n{line}\n"))
    found = await mailbox.mail()
    assert line in found.get_content()
    assert max(map(len, mailbox.raw[0].split(b"\r\n"))) <= 998
    await sender.close(1)


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("answers", "tries"),
    [
        pytest.param(["451 try later"], 2, id="once"),
        pytest.param(["451 try later", "421 too busy"], 3, id="twice"),
    ],
)
async def test_a_temporary_failure_is_tried_again(mailbox: Mailbox, answers: list[str], tries: int) -> None:
    mailbox.answers = answers
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await mailbox.mail()
    assert mailbox.attempts == tries
    await sender.close(1)


@pytest.mark.gen_test
@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("answers", "tries", "reason"),
    [
        pytest.param(["550 no <ada@example.com> here"], 1, "SMTPDataError 550", id="for good"),
        pytest.param(["451 x", "451 x", "451 ada@example.com"], 3, "SMTPDataError 451", id="too often"),
    ],
)
async def test_what_is_not_sent_is_one_line_that_names_nobody(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture, answers: list[str], tries: int, reason: str
) -> None:
    mailbox.answers = answers
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await until(lambda: caplog.messages)
    assert caplog.messages == [f"mail reset not sent: {reason}"]
    assert mailbox.attempts == tries
    assert all("ada@" not in repr(vars(record)) for record in caplog.records)
    await sender.close(1)


@pytest.mark.gen_test
async def test_a_server_that_breaks_off_is_tried_again(mailbox: Mailbox) -> None:
    mailbox.break_off = 2
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await mailbox.mail()
    assert mailbox.attempts == 3
    await sender.close(1)


@pytest.mark.gen_test
async def test_a_mail_that_was_taken_is_not_sent_again_whatever_follows(mailbox: Mailbox) -> None:
    mailbox.clings = True
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await until(lambda: not sender._tasks)
    assert len(mailbox.mails) == 1
    await sender.close(1)


@pytest.mark.gen_test
async def test_a_server_that_is_away_is_tried_again_and_then_given_up(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    sender = mailer(SmtpServer(mailbox.url))
    assert mailbox._server is not None
    mailbox._server.close()
    sender.post(MAIL)
    await until(lambda: caplog.messages)
    assert caplog.messages == ["mail reset not sent: SMTPConnectError"]
    await sender.close(1)


@pytest.mark.gen_test
async def test_a_server_that_hangs_is_given_up_and_holds_nothing_up(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox.hang = asyncio.Event()
    sender = mailer(SmtpServer(mailbox.url, timeout=0.1), retries=())
    sender.post(MAIL)  # returns at once
    await until(lambda: caplog.messages)
    assert caplog.messages == ["mail reset not sent: SMTPReadTimeoutError"]
    await sender.close(1)


@pytest.mark.gen_test
async def test_the_end_waits_for_what_is_on_its_way_but_not_for_ever(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    sender = mailer(SmtpServer(mailbox.url), retries=(3600.0,))
    mailbox.answers = ["451 try later"]
    sender.post(MAIL)
    await until(lambda: mailbox.attempts == 1)
    await sender.close(10)  # what waits for its next try gets it now
    assert len(mailbox.mails) == 1
    mailbox.hang = asyncio.Event()
    late = mailer(SmtpServer(mailbox.url))
    late.post(MAIL)
    await until(lambda: mailbox.attempts == 3)
    await late.close(0.05)
    assert caplog.messages == ["1 mails were not sent before the end"]


@pytest.mark.gen_test
async def test_a_try_that_was_under_way_at_the_end_was_not_the_last() -> None:
    tries: list[EmailMessage] = []
    ending = asyncio.Event()

    class Late:
        async def send(self, message: EmailMessage) -> None:
            tries.append(message)
            if len(tries) == 1:
                await ending.wait()
                raise Undelivered("451", temporary=True)

    sender = mailer(Late(), retries=(3600.0,))
    sender.post(MAIL)
    await until(lambda: tries)
    closed = asyncio.ensure_future(sender.close(10))
    await asyncio.sleep(0)
    ending.set()
    await closed
    assert len(tries) == 2


@pytest.mark.gen_test
async def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(room, "MOST_WAITING", 3)
    kept = Kept()
    sender = mailer(kept)
    for _ in range(5):
        sender.post(MAIL)
    await sender.close(1)
    assert len(kept.mails) == 3
    assert caplog.messages == ["mail reset dropped: 3 wait already"] * 2


@pytest.mark.gen_test
async def test_mails_of_one_kind_by_one_account_fill_few_places_and_keep_out_no_others(
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


@pytest.mark.gen_test
async def test_a_mail_that_takes_a_change_back_is_tried_longer(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    for link in (False, True):
        kept.failures = [Undelivered("454 too many", temporary=True) for _ in range(3)]
        sender = mailer(kept, late=(0.01,))
        sender.post(replace(MAIL, link=True, undo=link))
        await until(lambda: not sender._tasks)  # noqa: B023  # awaited within the turn
    assert len(kept.mails) == 1
    assert caplog.messages == ["mail reset not sent: 454 too many"]


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A certificate for this machine that clients trust, and its key."""
    cert, key = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    return cert, key


@pytest.mark.gen_test
async def test_starttls_and_a_password(certified: tuple[Path, Path]) -> None:
    box = await Mailbox.open(
        tls_context=tls(*certified),
        require_starttls=True,
        auth_required=True,
        authenticator=login("post office", PASSWORD),
    )
    sender = mailer(SmtpServer(f"smtp://post%20office:pass%3Aw%2Frd%401@127.0.0.1:{box.port}?starttls"))
    sender.post(MAIL)
    await box.mail()
    assert box.secure == [True]
    await sender.close(1)
    await box.close()


@pytest.mark.gen_test
async def test_a_wrong_password_and_a_server_without_starttls_are_no_delivery(
    certified: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    box = await Mailbox.open(
        tls_context=tls(*certified), auth_required=True, authenticator=login("post", PASSWORD), require_starttls=True
    )
    sender = mailer(SmtpServer(f"smtp://post:wrong-password@127.0.0.1:{box.port}?starttls"))
    sender.post(MAIL)
    await until(lambda: len(caplog.messages) == 1)
    assert caplog.messages == ["mail reset not sent: SMTPAuthenticationError 535"]
    plain = await Mailbox.open()
    careful = mailer(SmtpServer(f"{plain.url}?starttls"))
    careful.post(MAIL)
    await until(lambda: len(caplog.messages) > 1 and "reset not sent" in caplog.messages[-1])
    assert not box.mails
    assert not plain.mails
    assert "wrong-password" not in caplog.text
    for one in (sender, careful):
        await one.close(1)
    for server in (box, plain):
        await server.close()


@pytest.mark.gen_test
async def test_a_server_whose_certificate_nobody_vouches_for_gets_no_mail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = await Mailbox.open(tls_context=tls(*certificate(tmp_path, "127.0.0.1")), require_starttls=True)
    sender = mailer(SmtpServer(f"{box.url}?starttls"), retries=())
    sender.post(MAIL)
    await until(lambda: caplog.messages)
    assert not box.mails
    await sender.close(1)
    await box.close()


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "hostile",
    [
        replace(MAIL, subject="Hello\nBcc: eve@example.com"),
        replace(MAIL, subject="Hello\r\n\r\nbody"),
        replace(MAIL, to="ada@example.com\nBcc: eve@example.com"),
        replace(MAIL, to="ada@example.com, eve@example.com"),
        replace(MAIL, to="no address"),
    ],
)
async def test_nothing_breaks_out_of_a_header(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture, hostile: Mail
) -> None:
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(hostile)
    await until(lambda: caplog.messages)
    assert [message.partition(":")[0] for message in caplog.messages] == ["mail reset not sent"]
    assert mailbox.attempts == 0
    await sender.close(1)


def test_lines_that_look_like_headers_or_the_end_stay_in_the_text() -> None:
    text = "Bcc: eve@example.com\n.\nFrom me\n"
    found = email.message_from_bytes(compose(replace(MAIL, text=text), "a@b.example").as_bytes(), policy=default)
    assert found["Bcc"] is None
    assert found.get_content().replace("\r\n", "\n") == text


@pytest.mark.gen_test
async def test_an_address_beyond_ascii_needs_a_server_that_knows_it(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(replace(MAIL, to="jürgen@example.com"))
    await until(lambda: caplog.messages)
    assert caplog.messages[0].startswith("mail reset not sent: ")
    assert "jürgen" not in caplog.text
    await sender.close(1)
    box = await Mailbox.open(enable_SMTPUTF8=True)
    sender = mailer(SmtpServer(box.url))
    sender.post(replace(MAIL, to="jürgen@example.com"))
    await box.mail()
    assert box.recipients == ["jürgen@example.com"]
    await sender.close(1)
    await box.close()


@pytest.mark.gen_test
async def test_without_a_mail_server_mails_are_files_that_nobody_else_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "data" / "mail"
    sender = mailer(Spool(folder))
    sender.post(MAIL)
    await sender.close(5)
    (file,) = folder.iterdir()
    assert file.suffix == ".eml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = email.message_from_bytes(file.read_bytes(), policy=default)
    assert (found["To"], found.get_content().replace("\r\n", "\n")) == (MAIL.to, MAIL.text)
    assert b"https://id.example/reset?link=lk_pr_x\r\n" in file.read_bytes()
    assert caplog.messages == ["mail: Set a new password"]


@pytest.mark.gen_test
async def test_on_a_developers_machine_mails_stand_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sender = mailer(Spool(None, show=True))
    sender.post(MAIL)
    await sender.close(5)
    (line,) = caplog.messages
    assert line.startswith("mail to ada@example.com: Set a new password\n")
    assert SECRET_LINK in line


@pytest.mark.gen_test
async def test_only_the_newest_mails_are_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in range(KEPT):
        (tmp_path / f"{number:020d}-x.eml").touch()
    sender = mailer(spool)
    for number in range(5):
        sender.post(replace(MAIL, subject=f"number {number}"))
    await sender.close(5)
    files = sorted(tmp_path.glob("*.eml"))
    assert len(files) == KEPT
    assert files[0].name == f"{5:020d}-x.eml"
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".eml"]


@pytest.mark.gen_test
async def test_a_folder_that_cannot_be_written_is_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    sender = mailer(Spool(tmp_path / "file"))
    sender.post(MAIL)
    await sender.close(5)
    assert caplog.messages == ["mail reset not sent: FileExistsError"]


@pytest.mark.parametrize(
    ("base_url", "sender"),
    [
        ("https://id.example.org", "noreply@id.example.org"),
        ("http://localhost:8080", "noreply@localhost"),
        ("http://127.0.0.1:8080", "noreply@[127.0.0.1]"),
        ("http://[::1]:8080", "noreply@[IPv6:::1]"),
    ],
)
def test_mails_come_from_the_host_of_the_server_unless_told_otherwise(base_url: str, sender: str) -> None:
    assert Settings().sender(base_url) == sender
    assert compose(MAIL, sender)["From"].addresses[0].addr_spec == sender
    assert load(["--mail-from", "us@example.org"], {}).sender(base_url) == "us@example.org"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], True),
        (["--base-url", "http://127.0.0.1:1"], True),
        (["--base-url", "https://id.example.org"], False),
        (["--host", "0.0.0.0"], False),
        (["--host", "192.0.2.1"], False),
        (["--trusted-proxies", "127.0.0.1"], False),
    ],
)
def test_only_where_nobody_else_is_served_links_stand_in_the_log(
    tmp_path: Path, arguments: list[str], shown: bool
) -> None:
    settings = load(["--data-dir", str(tmp_path), *arguments], {})
    made: Any = open_mailer(settings, settings.origin(8080))
    assert (made._transport._show, made._transport._folder, made.confirms) == (shown, tmp_path / "mail", False)


@pytest.mark.parametrize(
    "url",
    [
        "smtp://mail.example.org",
        "smtp://mail.example.org:587?starttls",
        "smtp://post:secret@mail.example.org:587?starttls",
        "smtps://post:secret@mail.example.org",
        "smtp://post:secret@localhost:2525",
        "smtp://post:secret@[::1]:2525",
    ],
)
def test_addresses_of_mail_servers(url: str) -> None:
    assert load([], {"LATCHKEY_SMTP_URL": url}).smtp_url == url
    assert open_mailer(load([], {"LATCHKEY_SMTP_URL": url}), "https://id.example.org").confirms


@each(
    "url",
    [
        pytest.param("smtp://post:s3cret@mail.example.org", id="a password in the clear"),
        pytest.param("http://post:s3cret@mail.example.org", id="another scheme"),
        pytest.param("smtps://post:s3cret@mail.example.org?starttls", id="both kinds of TLS"),
        pytest.param("smtp://post:s3cret@mail.example.org?tls=1", id="an unknown parameter"),
        pytest.param("smtp://post:s3cret@", id="no host"),
        pytest.param("smtp://post:s3cret@mail.example.org:port?starttls", id="a port that is none"),
        pytest.param("smtp://post:s3cret@mail.example.org/path?starttls", id="a path"),
        pytest.param("smtp://post:s3 cret@mail.example.org?starttls", id="a blank"),
        pytest.param("s3cret", id="no URL"),
    ],
)
def test_what_is_no_mail_server_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^smtp_url must be ") as refused:
        load([], {"LATCHKEY_SMTP_URL": url})
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in repr(load([], {"LATCHKEY_SMTP_URL": "smtps://post:s3cret@mail.example.org"}))


@each("text", ["nobody", "a@b c", "a b@c", "A <a@b.example>", "a@b\n.example", "ü@b.example", "a@"])
def test_what_is_no_sender_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^mail_from must be an e-mail address"):
        load([], {"LATCHKEY_MAIL_FROM": text})
