"""A mail server that accepts, refuses, delays or breaks off on request, and a reader of its mails."""

from __future__ import annotations

import asyncio
import email
import logging
import re
import ssl
import time
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer, Undelivered
from outbound.mail.message import plain_text

PATIENCE = 20.0

# Tests read the log of the server, where aiosmtpd would write each command if an earlier test left a lower level.
logging.getLogger("mail.log").setLevel(logging.WARNING)


class Mailbox:
    """A real SMTP server on a free port. `answers` are its replies to the next mails instead of accepting them."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.raw: list[bytes] = []
        self.answers: list[str] = []
        self.recipients: list[str] = []
        self.attempts = 0
        self.hang: asyncio.Event | None = None
        self.break_off = 0
        self.clings = False
        self.secure: list[bool] = []
        self._server: asyncio.Server | None = None

    @classmethod
    async def open(cls, **options: Any) -> Mailbox:
        """A listening server; `options` are those of aiosmtpd's SMTP."""
        self = cls()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: SMTP(self, hostname="mail.example", **options), "127.0.0.1", 0
        )
        return self

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def close(self) -> None:
        assert self._server is not None
        if self.hang:
            self.hang.set()
        self._server.close()
        await asyncio.sleep(0)

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        """aiosmtpd's callback for a complete mail."""
        self.attempts += 1
        if self.hang:
            await self.hang.wait()
        if self.break_off:
            self.break_off -= 1
            cast(asyncio.Transport, server.transport).abort()
            return "421 gone"
        if self.answers:
            return self.answers.pop(0)
        self.secure.append(session.ssl is not None)
        self.recipients += envelope.rcpt_tos
        self.raw.append(envelope.content)
        # aiosmtpd passes bytes.
        self.mails.append(email.message_from_bytes(envelope.content, policy=default))
        return "250 OK"

    async def handle_QUIT(self, server: SMTP, session: Any, envelope: Any) -> str:
        """aiosmtpd's callback for QUIT; with `clings` the server breaks off instead."""
        if self.clings:
            cast(asyncio.Transport, server.transport).abort()
        return "221 Bye"

    async def mail(self, number: int = 0) -> EmailMessage:
        """The mail with this number, once it has arrived."""
        await until(lambda: len(self.mails) > number)
        return self.mails[number]

    async def link(self, number: int = 0) -> str:
        """The path of the one action link in a mail."""
        return link_in(await self.mail(number))


def link_in(mail: EmailMessage) -> str:
    """The path and query of the address in a mail that has a parameter."""
    (found,) = re.findall(r"https?://[^/\s]+(/\S+\?\S+)", plain_text(mail))
    return str(found)


def words_of(mail: EmailMessage) -> str:
    """The text of a mail in one line."""
    return " ".join(plain_text(mail).split())


def login(user: str, password: str) -> Callable[..., AuthResult]:
    """An authenticator that accepts one name and password."""

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and (data.login, data.password) == (user.encode(), password.encode())
        return AuthResult(success=right, handled=False)

    return check


def tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """The server's TLS context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        await asyncio.sleep(0.005)


class Kept:
    """A transport that keeps every mail, for tests of content and recipients."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.failures: list[Undelivered] = []

    async def send(self, message: EmailMessage) -> None:
        """Keeps the mail, or fails as configured."""
        if self.failures:
            raise self.failures.pop(0)
        self.mails.append(message)

    def to(self, address: str) -> list[EmailMessage]:
        """The mails sent to an address, oldest first."""
        return [mail for mail in self.mails if mail["To"].addresses[0].addr_spec == address]

    async def newest(self, address: str, subject: str) -> EmailMessage:
        """The newest mail to an address with this subject, once there is one."""
        await until(lambda: [mail for mail in self.to(address) if mail["Subject"] == subject])
        return [mail for mail in self.to(address) if mail["Subject"] == subject][-1]


def mailer(
    transport: Any, *, confirms: bool = True, retries: tuple[float, ...] = (0.01, 0.01), late: tuple[float, ...] = ()
) -> Mailer:
    """A mailer with short pauses between its tries."""
    return Mailer(transport, "noreply@id.example", confirms=confirms, retries=retries, late=late)


MAIL = Mail("reset", "ada@example.com", "Set a new password", "Open this:\n\nhttps://id.example/reset?link=lk_pr_x\n")


def posted(sender: Mailer) -> list[Mail]:
    """The mails that this sender accepts from now on. It sends none of them."""
    found: list[Mail] = []
    sender.post = found.append  # type: ignore[assignment]  # in place of its queue
    return found
