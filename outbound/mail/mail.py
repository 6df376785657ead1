"""A mail that waits to be sent."""

from __future__ import annotations

from dataclasses import dataclass

from outbound.mail.line import Rank


@dataclass(frozen=True, slots=True)
class Mail:
    """A plain-text mail. `what` is a word for the log. `link`: the mail has a link that no other mail has. `undo`: its
    link undoes a change. `payer`: the id of the account that caused the mail; if empty, the mail counts for its
    recipient. `network`: the network that asked for it, if anybody may ask."""

    what: str
    to: str
    subject: str
    text: str
    link: bool = False
    undo: bool = False
    payer: str = ""
    network: str = ""

    @property
    def rank(self) -> Rank:
        """The importance of the mail at shutdown. All mails that anybody may ask for are alike: if a mail that says
        that there is an account were a notice, its turn would tell so too."""
        return Rank.UNDO if self.undo else Rank.LINK if self.link or self.network else Rank.NOTICE

    @property
    def paid_by(self) -> str:
        """The owner of the queue: the network that asked, or the account, or the recipient."""
        return self.network or self.payer or self.to
