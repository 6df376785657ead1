"""A mail that waits to be sent."""

from __future__ import annotations

from dataclasses import dataclass

from outbound.mail.line import Payer, Rank


@dataclass(frozen=True, slots=True)
class Mail:
    """A plain-text mail. `what` is a word for the log. `link`: the mail has a link that no other mail has. `undo`: its
    link undoes a change. `payer`: the id of the account that caused the mail; if empty, the mail counts for its
    recipient. `network`: the network that asked for it, if anybody may ask. `origin`: the network of the visitor who
    caused a mail that nobody asked for. `language`: the tag of the language of subject and text."""

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
