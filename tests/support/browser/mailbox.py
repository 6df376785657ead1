"""A mail server that takes, refuses, delays or breaks off as a test tells it, and a reader of what it took."""

from __future__ import annotations

import asyncio
import email
import re
import ssl
import time
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer, Undelivered

PATIENCE = 20.0


class Mailbox:
    """A real SMTP server on a free port. `answers` are what it says to the next mails in place of taking them."""

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
        """One that listens; `options` are those of aiosmtpd's SMTP."""
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
        """What aiosmtpd calls with a whole mail."""
        self.attempts += 1
        if self.hang:
            await self.hang.wait()
        if self.break_off:
            self.break_off -= 1
            server.transport.abort()  # type: ignore[union-attr]
            return "421 gone"
        if self.answers:
            return self.answers.pop(0)
        self.secure.append(session.ssl is not None)
        self.recipients += envelope.rcpt_tos
        self.raw.append(envelope.content)
        # Aiosmtpd gives bytes.
        self.mails.append(email.message_from_bytes(envelope.content, policy=default))
        return "250 OK"

    async def handle_QUIT(self, server: SMTP, session: Any, envelope: Any) -> str:
        """What aiosmtpd calls when a client takes its leave; with `clings` it breaks off instead."""
        if self.clings:
            server.transport.abort()  # type: ignore[union-attr]
        return "221 Bye"

    async def mail(self, number: int = 0) -> EmailMessage:
        """The mail with this number, once it is there."""
        await until(lambda: len(self.mails) > number)
        return self.mails[number]

    async def link(self, number: int = 0) -> str:
        """The path of the one link with power in a mail."""
        return link_in(await self.mail(number))


def link_in(mail: EmailMessage) -> str:
    """The path and query of the address with a parameter in a mail."""
    (found,) = re.findall(r"https?://[^/\s]+(/\S+\?\S+)", mail.get_content())
    return str(found)


def login(user: str, password: str) -> Callable[..., AuthResult]:
    """An authenticator that takes one name and password."""

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and (data.login, data.password) == (user.encode(), password.encode())
        return AuthResult(success=right, handled=False)

    return check


def tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """A server's side of TLS."""
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
    """A transport that keeps what it is given, for tests of what is written and to whom."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.failures: list[Undelivered] = []

    async def send(self, message: EmailMessage) -> None:
        """Takes it, or fails as it was told to."""
        if self.failures:
            raise self.failures.pop(0)
        self.mails.append(message)

    async def rehearse(self, sender: str) -> None:
        """Keeps nothing."""

    def to(self, address: str) -> list[EmailMessage]:
        """The mails to an address, oldest first."""
        return [mail for mail in self.mails if mail["To"].addresses[0].addr_spec == address]

    async def newest(self, address: str, subject: str) -> EmailMessage:
        """The newest mail with this subject to an address, once there is one."""
        await until(lambda: [mail for mail in self.to(address) if mail["Subject"] == subject])
        return [mail for mail in self.to(address) if mail["Subject"] == subject][-1]


def mailer(
    transport: Any, *, confirms: bool = True, retries: tuple[float, ...] = (0.01, 0.01), late: tuple[float, ...] = ()
) -> Mailer:
    """A mailer that does not wait long between its tries."""
    return Mailer(transport, "noreply@id.example", confirms=confirms, retries=retries, late=late)


MAIL = Mail("reset", "ada@example.com", "Set a new password", "Open this:\n\nhttps://id.example/reset?link=lk_pr_x\n")
