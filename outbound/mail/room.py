"""How many mails may wait: in all, of notices, of one kind by one account, and from one network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from outbound.mail.line import Rank
from outbound.mail.mail import Mail

MOST_WAITING, MOST_OTHERS, MOST_NOTICES = 1000, 870, 400
"""The limits of waiting mails: in all, for mails without an undo link, and for notices, which have no link of their own
and which nobody asked for. So an account that causes many notices can't keep links out, and a client that asks for many
links can't keep out undo links. The gaps between the limits are larger than four networks and five accounts can fill; a
test checks this."""
MOST_ALIKE, MOST_UNDOS = 40, 10
"""Waiting mails of one kind that one account caused. One notice goes to up to 11 addresses. The second number is for
mails with an undo link."""
MOST_ASKED = 40
"""Waiting mails that one network asked for, signed in or not: this many that set a new password, and this many of all
other kinds together. Only a request for a new password may send no mail. A blank mail then takes the place and the
turn, so the remaining room doesn't reveal that."""


class NoRoom(Exception):
    """Nobody in this network can ask for a mail now."""


class _Bound(NamedTuple):
    """A payer, its limit of waiting mails, and their description."""

    payer: tuple[str, str, bool]
    most: int
    words: str


class MailRoom:
    """Counts waiting mails and requests for mails."""

    def __init__(self) -> None:
        self._mails, self._undos, self._notices = 0, 0, 0
        self._counts: Counter[tuple[str, str, bool]] = Counter()  # has no zeros
        self._held: Counter[tuple[str, str, bool]] = Counter()

    @property
    def empty(self) -> bool:
        """Whether all counts are zero."""
        return not (self._mails or self._notices or self._counts or self._held)

    def refusal(self, mail: Mail) -> str:
        """Why the mail cannot wait; empty if it can."""
        if self._mails >= MOST_WAITING:
            return f"{MOST_WAITING} wait already"
        if not mail.undo and self._others >= MOST_OTHERS:
            return f"{MOST_OTHERS} without an undo link wait already"
        if mail.rank is Rank.NOTICE and self._notices >= MOST_NOTICES:
            return f"{MOST_NOTICES} notices wait already"
        full = (bound for bound in _bounds(mail) if self._counts[bound.payer] >= bound.most)
        return next((f"{bound.most} {bound.words} wait already" for bound in full), "")

    @property
    def _others(self) -> int:
        """Waiting mails without an undo link. Those with one have places of their own and keep no others out."""
        return self._mails - self._undos

    def enter(self, mail: Mail) -> None:
        """Counts a mail."""
        self._add(mail, 1)

    def leave(self, mail: Mail) -> None:
        """Stops counting a mail."""
        self._add(mail, -1)

    def _add(self, mail: Mail, number: int) -> None:
        self._mails += number
        self._undos += number * mail.undo
        self._notices += number * (mail.rank is Rank.NOTICE)
        for bound in _bounds(mail):
            _count(self._counts, bound.payer, number)

    @contextmanager
    def hold(self, network: str, what: str) -> Iterator[None]:
        """Reserves room for a requested mail until it is posted: a request that counts for the mail's recipient must
        not end without the mail. Raises NoRoom."""
        asked = _asked(network, what)
        if self._counts[asked] + self._held[asked] >= MOST_ASKED:
            raise NoRoom
        held = self._held.total()
        if self._others + held >= MOST_OTHERS or self._mails + held >= MOST_WAITING:
            raise NoRoom
        _count(self._held, asked, 1)
        try:
            yield
        finally:
            _count(self._held, asked, -1)


def _count(counts: Counter[tuple[str, str, bool]], payer: tuple[str, str, bool], number: int) -> None:
    counts[payer] += number
    if not counts[payer]:
        del counts[payer]


def _asked(network: str, what: str) -> tuple[str, str, bool]:
    return network, "reset" if what == "reset" else "", False


def _bounds(mail: Mail) -> tuple[_Bound, ...]:
    """The limits of a mail: its account's, and that of the network that asked for it, if there is one."""
    most = MOST_UNDOS if mail.undo else MOST_ALIKE
    account = _Bound((mail.payer or mail.to, mail.what, mail.link), most, "of this kind by this account")
    if not mail.network:
        return (account,)
    return account, _Bound(_asked(mail.network, mail.what), MOST_ASKED, "asked for from this network")
