"""A mail of ours, as it waits to be sent."""

from __future__ import annotations

from dataclasses import dataclass

from outbound.mail.line import Rank


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail of ours: plain text. `what` is a word for the log; `link`: it has a link that only this mail has; `undo`:
    one that takes a change back. `payer`: the id of the account that caused it, where there is one; else it counts for
    whom it goes to. `network`: where it was asked for, if anybody may ask for one."""

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
        """What it is worth when the server ends."""
        return Rank.UNDO if self.undo else Rank.LINK if self.link else Rank.NOTICE

    @property
    def paid_by(self) -> str:
        """Whose mails wait for one another: the network that asked, else the account, else whom it goes to."""
        return self.network or self.payer or self.to
