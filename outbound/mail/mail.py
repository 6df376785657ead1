"""A mail that waits to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from outbound.mail.line import Payer, Rank


class InlineImage(NamedTuple):
    """A picture in a mail, which its HTML names by `cid`. `kind`: its format, as in image/png."""

    cid: str
    kind: str
    content: bytes


class HtmlBody(NamedTuple):
    """A mail as HTML, with its pictures."""

    html: str
    images: tuple[InlineImage, ...] = ()


class Dress(Protocol):
    """How mails look in HTML. It is made when a mail is sent, because a thousand mails may wait in memory."""

    async def body(self, mail: Mail) -> HtmlBody:
        """The mail as HTML. May raise anything."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail. `text` has paragraphs with blank lines between them, in lines of any length. `what` is a word for the
    log. `link`: the mail has a link that no other mail has. `undo`: its link undoes a change. `payer`: the id of the
    account that caused the mail; if empty, the mail counts for its recipient. `network`: the network that asked for it,
    if anybody may ask. `origin`: the network of the visitor who caused a mail that nobody asked for. `language`: the
    tag of the language of subject and text. `dress`: makes the HTML; without it the mail is text alone. `logo`: the
    client id of the app that the mail is about, and the id of the app's logo."""

    what: str
    to: str
    subject: str
    text: str
    link: bool = False
    undo: bool = False
    payer: str = ""
    network: str = ""
    origin: str = ""
    language: str = ""
    dress: Dress | None = field(default=None, compare=False, repr=False)
    logo: tuple[str, str] | None = None

    @property
    def rank(self) -> Rank:
        """The importance of the mail at shutdown. All mails that anybody may ask for are alike: if a mail that says
        that there is an account were a notice, its turn would tell so too."""
        return Rank.UNDO if self.undo else Rank.LINK if self.link or self.network else Rank.NOTICE

    @property
    def account(self) -> str:
        """The account that the mail counts for, or the recipient."""
        return self.payer or self.to

    @property
    def paid_by(self) -> Payer:
        """Whose turns the mail takes. Mails that a network asked for take one turn after the other: the order of those
        to different accounts would reveal accounts."""
        if self.network:
            return Payer(self.network, self.network)
        return Payer(self.origin or self.account, self.account)
