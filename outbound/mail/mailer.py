"""Mail to people, sent in the background through SMTP, or kept in a folder.

No request waits for a mail or fails with it. The queue is bounded and is in this process's memory. A temporary failure
is retried. A mail that fails for good leaves one line in the log, which has neither the recipient nor the text. Each
account, and each network that asks for mails, has few of the places, so neither keeps out other people's mails.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import aiosmtplib

from observability.spans import working
from outbound.mail.line import Line
from outbound.mail.mail import HtmlBody, Mail
from outbound.mail.message import SENDER, compose, plain_text, stamp_of
from outbound.mail.room import MailRoom, Waiting
from store.clock import wall

log = logging.getLogger("latchkey.mail")

RETRIES = (2.0, 15.0)
"""Seconds before the first and the second retry. They vary, so that mails that failed together don't return
together."""
LATE_RETRIES = (60.0, 300.0, 900.0)
"""The same for the further retries of a mail that undoes a change, because nobody can ask for it again. A relay may
limit the mails a minute."""
LEAVE_SECONDS = 2.0
KEPT = 200


class Undelivered(Exception):
    """A mail was not sent. `temporary`: a retry may work. `maybe_sent`: the server may have accepted it all the same.
    The message has no part of the mail."""

    def __init__(self, reason: str, *, temporary: bool, maybe_sent: bool = False) -> None:
        super().__init__(reason)
        self.temporary, self.maybe_sent = temporary, maybe_sent


class Transport(Protocol):
    """The way in which a mail is sent."""

    async def send(self, message: EmailMessage) -> None:
        """Raises Undelivered, or OSError for a failure of this machine."""


class _Client(aiosmtplib.SMTP):
    began_data = False
    """Whether the server may have accepted the mail, even if it doesn't answer."""

    async def data(self, *args: Any, **options: Any) -> aiosmtplib.SMTPResponse:
        self.began_data = True
        return await super().data(*args, **options)


class SmtpServer:
    """A mail server. `url` is the setting's; `timeout` is in seconds, for each step of a delivery."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        self._server = {
            "hostname": parts.hostname,
            "port": parts.port or {"smtp": 25, "smtps": 465}[parts.scheme],
            "username": unquote(parts.username) if parts.username else None,
            "password": unquote(parts.password) if parts.password else None,
            "use_tls": parts.scheme == "smtps",
            "start_tls": parts.query == "starttls",
            "timeout": timeout,
        }
        self._patience = 3 * timeout  # stops a server that answers each step at the last moment

    async def send(self, message: EmailMessage) -> None:
        """Sends one mail over one connection. Raises Undelivered."""
        client = _Client(**self._server)  # type: ignore[arg-type]  # a dict with several types
        try:
            await self._hand_over(client, message)
        except aiosmtplib.SMTPResponseException as error:
            reason = f"{type(error).__name__} {error.code}"
            raise Undelivered(reason, temporary=400 <= error.code < 500) from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [one.code for one in error.recipients]
            raise Undelivered(f"refused {codes}", temporary=all(400 <= code < 500 for code in codes)) from None
        except (aiosmtplib.SMTPServerDisconnected, aiosmtplib.SMTPConnectError, TimeoutError, OSError) as error:
            raise Undelivered(type(error).__name__, temporary=True, maybe_sent=client.began_data) from None
        except (aiosmtplib.SMTPException, ValueError) as error:
            raise Undelivered(type(error).__name__, temporary=False) from None

    async def _hand_over(self, client: _Client, message: EmailMessage) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await client.connect()  # with TLS and login if the URL has them
                await client.send_message(message)
            # The server has accepted the mail, so an error from here on causes no retry.
            with suppress(aiosmtplib.SMTPException, OSError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await client.quit()
        finally:
            client.close()  # at once, without waiting for a server that hangs


class Spool:
    """A folder that replaces a mail server: keeps the newest 200 mails as files that nobody else can read. `show`: also
    logs whole mails, links included; for a developer's machine."""

    def __init__(self, folder: Path | None, *, show: bool = False) -> None:
        self._folder = folder
        self._show = show

    async def send(self, message: EmailMessage) -> None:
        """Raises OSError."""
        if self._show:
            log.info("mail to %s: %s\n\n%s", message["To"], message["Subject"], plain_text(message))
        else:
            log.info("mail: %s", message["Subject"])
        if self._folder:
            await asyncio.to_thread(self._keep, self._folder, message.as_bytes())

    def _keep(self, folder: Path, content: bytes) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Names sort by time. Several processes write here.
        name = folder / f"{int(wall.time() * 1e9):020d}-{secrets.token_hex(4)}"
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        name.rename(name.with_suffix(".eml"))
        for old in sorted(folder.glob("*.eml"))[:-KEPT]:
            old.unlink(missing_ok=True)


class Mailer:
    """Sends mails. `sender` is their From address, and `name` the name that people see. `confirms`: mails reach people,
    so that the server can ask them to confirm addresses. `watch` is called with the kind and the outcome of each mail:
    sent, failed or dropped."""

    def __init__(
        self,
        transport: Transport,
        sender: str,
        *,
        confirms: bool,
        name: str = SENDER,
        retries: tuple[float, ...] = RETRIES,
        late: tuple[float, ...] = (),
    ) -> None:
        self.confirms = confirms
        self._transport = transport
        self._sender, self._name = sender, name
        self._retries, self._late = retries, late
        self._tasks: dict[Waiting, asyncio.Task[None]] = {}
        self.room = MailRoom()
        self._line = Line()
        self.watch: Callable[[str, str], None] = _nobody

    @property
    def queue(self) -> int:
        """The number of mails that wait to be sent."""
        return len(self._tasks)

    def turn_into(self, other: Mailer) -> None:
        """From now on sends mails the way `other` does, including retries of waiting ones."""
        self.confirms, self._transport, self._sender = other.confirms, other._transport, other._sender
        self._late, self._name = other._late, other._name

    def post(self, mail: Mail) -> None:
        """Accepts a mail and returns at once. If too many mails wait (in all, of notices, of its kind by its account,
        or asked for from its network), drops it with a line in the log, or a mail of an account that has more."""
        if reason := self.room.refusal(mail):
            return self._drop(mail, reason)
        if loser := self.room.loser(mail):
            self._leave(loser).cancel()
            self._drop(loser.mail, "an account with fewer needs the place")
        waiting = self.room.enter(mail)
        task = asyncio.get_running_loop().create_task(self._deliver(waiting))
        self._tasks[waiting] = task
        task.add_done_callback(lambda done: waiting in self._tasks and self._leave(waiting))

    def _drop(self, mail: Mail, reason: str) -> None:
        log.warning("mail %s dropped: %s", mail.what, reason)
        self.watch(mail.what, "dropped")

    def _leave(self, waiting: Waiting) -> asyncio.Task[None]:
        self.room.leave(waiting)
        return self._tasks.pop(waiting)

    async def close(self, seconds: float) -> None:
        """Gives waiting mails one more try within `seconds`, then drops the rest. Undo links go first, then other
        links, then notices."""
        self._line.close()
        if self._tasks:
            _, late = await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
                log.warning("%d mails were not sent before the end", len(late))

    async def _deliver(self, waiting: Waiting) -> None:
        mail = waiting.mail
        try:
            await self._try(waiting)
            self.watch(mail.what, "sent")
        except (Undelivered, OSError, ValueError) as error:
            # An OSError of the spool has a path; other errors may contain the address.
            reason = str(error) if isinstance(error, Undelivered) else type(error).__name__
            log.warning("mail %s not sent: %s", mail.what, reason)
            self.watch(mail.what, "failed")
        except asyncio.CancelledError:
            if waiting in self._tasks:  # the server is stopping; otherwise `post` has told it
                self.watch(mail.what, "dropped")
            raise

    async def _try(self, waiting: Waiting) -> None:
        """Sends a mail, with retries. Raises Undelivered, OSError, ValueError."""
        mail = waiting.mail
        stamp, short, maybe_sent = stamp_of(self._sender), len(self._retries), False
        pauses = (*self._retries, *(self._late if mail.undo else ()), None)
        for number, pause in enumerate(pauses):
            last = pause is None
            try:
                async with self._line.place(mail.rank, mail.paid_by, later=number > 0):
                    last = last or self._line.closing
                    waiting.tried = waiting.sending = True
                    # Compose the mail only now: a composed mail takes many times the memory.
                    body = await _dressed(mail)
                    with working("send mail", mail.what):
                        return await self._transport.send(compose(mail, self._sender, stamp, self._name, body))
            except Undelivered as failure:
                maybe_sent = maybe_sent or failure.maybe_sent
                # Nobody wants the same mail again half an hour later.
                if not failure.temporary or last or (maybe_sent and number >= short):
                    raise
            waiting.sending = False
            await self._line.pause(mail.rank, _uneven(pause or 0.0))


async def _dressed(mail: Mail) -> HtmlBody | None:
    """The mail as HTML. A mistake in a template of the operator keeps no mail back: it goes out as text alone."""
    if mail.dress is None:
        return None
    try:
        return await mail.dress.body(mail)
    except Exception as error:  # templates are code, and may raise anything
        log.warning("mail %s is sent as text alone: %s", mail.what, type(error).__name__)
        return None


def _uneven(seconds: float) -> float:
    """A random time between half of `seconds` and one and a half times as long."""
    return seconds * (0.5 + secrets.randbelow(1001) / 1000)


def _nobody(what: str, outcome: str) -> None:
    """Ignores the outcome."""
