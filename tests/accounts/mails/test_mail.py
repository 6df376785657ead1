"""Mail is sent in the background, over SMTP or into a folder, and never delays or fails a request."""

from __future__ import annotations

import asyncio
import email
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from outbound.mail.mail import Mail
from outbound.mail.mailer import SmtpServer, Undelivered
from outbound.mail.message import compose, plain_text
from tests.engine.keys.test_check_store import certificate
from tests.support.browser.mailbox import MAIL, Kept, Mailbox, login, mailer, tls, until

PASSWORD = "pass:w/rd@1"


@pytest.fixture
def options() -> dict[str, Any]:
    """A test's settings of the mail server."""
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
    assert "Grüße" in plain_text(found)
    assert "x" * 400 in plain_text(found)
    assert mailbox.recipients == ["ada@example.com"]
    await sender.close(1)


@pytest.mark.gen_test
@pytest.mark.parametrize("mail", ["x", "\u00fc"], ids=["ascii", "beyond"])
@pytest.mark.parametrize("length", [990, 998, 999, 5000])
async def test_a_line_beyond_the_smtp_limit_arrives_whole(mailbox: Mailbox, mail: str, length: int) -> None:
    """RFC 5321 4.5.3.1.6: 1,000 octets with its end."""
    line = mail * length
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(replace(MAIL, text=f"One:\n\n{line}\n"))
    found = await mailbox.mail()
    assert line in plain_text(found)
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
async def test_a_temporary_failure_is_retried(mailbox: Mailbox, answers: list[str], tries: int) -> None:
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
async def test_an_unsent_mail_logs_one_line_without_a_name(
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
async def test_a_broken_connection_is_retried(mailbox: Mailbox) -> None:
    mailbox.break_off = 2
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await mailbox.mail()
    assert mailbox.attempts == 3
    await sender.close(1)


@pytest.mark.gen_test
async def test_an_accepted_mail_is_never_resent(mailbox: Mailbox) -> None:
    mailbox.clings = True
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(MAIL)
    await until(lambda: not sender._tasks)
    assert len(mailbox.mails) == 1
    await sender.close(1)


@pytest.mark.gen_test
async def test_an_unreachable_server_is_retried_and_then_given_up(
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
async def test_a_hanging_server_is_given_up_and_delays_nothing(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox.hang = asyncio.Event()
    sender = mailer(SmtpServer(mailbox.url, timeout=0.1), retries=())
    sender.post(MAIL)  # returns at once
    await until(lambda: caplog.messages)
    assert caplog.messages == ["mail reset not sent: SMTPReadTimeoutError"]
    await sender.close(1)


@pytest.mark.gen_test
async def test_shutdown_waits_for_mails_in_flight_for_a_limited_time(
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
async def test_a_try_in_progress_at_shutdown_may_be_followed_by_another() -> None:
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
async def test_undo_mails_are_retried_longer(caplog: pytest.LogCaptureFixture) -> None:
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
async def test_a_wrong_password_or_missing_starttls_prevents_delivery(
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
async def test_a_server_with_an_untrusted_certificate_gets_no_mail(
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
        replace(MAIL, to="=?utf-8?q?x=0d=0abcc=3aeve=40example.com=0d=0ax=3a?=@example.com"),
    ],
)
async def test_headers_cannot_be_injected(mailbox: Mailbox, caplog: pytest.LogCaptureFixture, hostile: Mail) -> None:
    sender = mailer(SmtpServer(mailbox.url))
    sender.post(hostile)
    await until(lambda: caplog.messages)
    assert [message.partition(":")[0] for message in caplog.messages] == ["mail reset not sent"]
    assert mailbox.attempts == 0
    await sender.close(1)


@pytest.mark.parametrize("name", ["=?utf-8?q?x=0d=0abcc:eve@example.com?=", "==??utf-8?q?x?=", "a=?utf-8?q?_x?="])
def test_encoded_words_in_a_subject_are_not_decoded(name: str) -> None:
    raw = compose(replace(MAIL, subject=f"Your app {name} was changed"), "a@b.example").as_bytes()
    found = email.message_from_bytes(raw, policy=default)
    assert found["bcc"] is None
    assert found["Subject"] == f"Your app {name.replace('=?', '= ?')} was changed"
    assert plain_text(found).replace("\r\n", "\n") == MAIL.text


def test_lines_that_look_like_headers_or_the_end_stay_in_the_text() -> None:
    text = "Bcc: eve@example.com\n.\nFrom me\n"
    found = email.message_from_bytes(compose(replace(MAIL, text=text), "a@b.example").as_bytes(), policy=default)
    assert found["Bcc"] is None
    assert plain_text(found).replace("\r\n", "\n") == text


@pytest.mark.gen_test
async def test_a_non_ascii_address_needs_smtputf8(mailbox: Mailbox, caplog: pytest.LogCaptureFixture) -> None:
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
