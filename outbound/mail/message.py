"""A mail in its final form: headers, a text, and the same as HTML."""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, localtime, make_msgid
from textwrap import wrap
from typing import NamedTuple, cast

from outbound.mail.mail import HtmlBody, Mail
from store.clock import wall

SENDER = "Latchkey"
"""The name that mails come from, unless the operator has another."""
WIDTH = 76
"""Characters of a line in a text mail, where it has blanks to break it at."""
BULLET = "- "
LONGEST_LINE = 998  # octets (RFC 5321 4.5.3.1.6)
# Without encoded words (RFC 2047): Python's `email` would decode them, with the line breaks that they may hide.
_ADDRESS = re.compile(r"(?!.*=\?.*\?=)[^\s@,;:<>()\[\]\"\\]+@[^\s@,;<>()\"\\]+")
_JAPANESE = re.compile("[\u3041-\u30ff\u4e00-\u9fff]")


def _encoding(text: str) -> str:
    """How a text is encoded for its way. Quoted-printable breaks links in the raw file, so only lines that mail servers
    would refuse get it."""
    if max(len(line.encode()) for line in text.split("\n")) > LONGEST_LINE:
        return "quoted-printable"
    return "7bit" if text.isascii() else "8bit"


def plain(text: str) -> str:
    """The text of a mail, with lines that are short where they can be."""
    return "\n".join(map(_broken, text.split("\n")))


def _broken(line: str) -> str:
    """A line in lines of a mail. An address stays whole, and so does an item of a list. Japanese does, too: it has a
    blank here and there, and mail programs know better where to break it."""
    if len(line) <= WIDTH or line.startswith(BULLET) or _JAPANESE.search(line):
        return line
    return "\n".join(wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False))


def flowing(text: str) -> str:
    """A mail's text without the breaks of `plain`, for a page, which has a width of its own."""
    lines: list[str] = []
    last = ""
    for line in text.split("\n"):
        # Only a line that has no room for the next word was broken there. Links and items of lists are whole.
        first = line.split(" ", 1)[0]
        if lines and first and first != BULLET.strip() and " " in last and len(last) + 1 + len(first) > WIDTH:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        last = line
    return "\n".join(lines)


def plain_text(message: EmailMessage) -> str:
    """The text of a composed mail, without the CRs that its lines have on their way."""
    part = message.get_body(("plain",))
    return str(part.get_content()).replace("\r\n", "\n") if part else ""


def _address(text: str, name: str = "") -> Address:
    """A header's address. Python's own `addr_spec` would refuse what RFC 6532 allows before the @."""
    local, _, domain = text.rpartition("@")
    if not _ADDRESS.fullmatch(text):
        raise ValueError("this is no address")
    return Address(name, local, domain)


class Stamp(NamedTuple):
    """The headers that stay the same in every try, so that a mailbox recognizes a duplicate."""

    date: str
    message_id: str


def stamp_of(sender: str) -> Stamp:
    """A new stamp."""
    return Stamp(format_datetime(localtime(wall.utc())), make_msgid(domain=sender.rpartition("@")[2]))


def compose(
    mail: Mail, sender: str, stamp: Stamp | None = None, name: str = SENDER, body: HtmlBody | None = None
) -> EmailMessage:
    """The mail in its final form, with `body` after the text. Raises ValueError for an address or a subject that would
    break out of its header."""
    date, message_id = stamp or stamp_of(sender)
    message = EmailMessage(policy=SMTP)
    message["From"] = _address(sender, name)
    message["To"] = _address(mail.to)
    message["Subject"] = mail.subject.replace("=?", "= ?")  # an app's name must not be an encoded word either
    message["Date"] = date
    message["Message-ID"] = message_id
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: prevents out-of-office replies
    text = plain(mail.text)
    message.set_content(text, cte=_encoding(text))
    if body:
        message.add_alternative(body.html, subtype="html", cte=_encoding(body.html))
        for image in body.images:
            _, html = cast(list[EmailMessage], message.get_payload())  # the alternatives
            html.add_related(image.content, "image", image.kind, cid=f"<{image.cid}>", disposition="inline")
    if mail.language:  # RFC 3282; after the content, which takes its headers with it
        message["Content-Language"] = mail.language
    return message
