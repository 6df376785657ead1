"""How many mails may wait: in all, of notices, of one kind by one account, and asked for in one network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from outbound.mail.line import Rank
from outbound.mail.mail import Mail

MOST_WAITING, MOST_OTHERS, MOST_NOTICES = 1000, 850, 450
"""Mails that wait, at most; how many there may be for another one that takes nothing back; and how many of them may be
notices: mails without a link of their person's own. Whoever causes many notices keeps no link out, and whoever asks for
many links keeps out none that takes a change back. What lies between two of them is more than four networks and five
accounts fill, which a test says."""
MOST_ALIKE, MOST_UNDOS = 40, 10
"""Mails of one kind that one account causes and that wait: one notice goes to up to 11 addresses. The second number is
for mails that take a change back."""
MOST_ASKED = 40
"""Mails that wait and that somebody in one network asked for, signed in or not: so many that set a new password, and so
many of all other kinds together. Only a request for a new password may send none, and nobody learns of it from the
place that is left: it takes eight accounts to fill the first."""


class NoRoom(Exception):
    """Nobody in this network can ask for a mail now."""


class _Bound(NamedTuple):
    """A payer, how many mails may wait at its cost, and which these are, in words."""

    payer: tuple[str, str, bool]
    most: int
    words: str


class MailRoom:
    """Counts the mails that wait, and the requests for mails that are under way."""

    def __init__(self) -> None:
        self._mails, self._notices = 0, 0
        self._counts: Counter[tuple[str, str, bool]] = Counter()  # what is at zero is not in it
        self._held: Counter[tuple[str, str, bool]] = Counter()

    @property
    def empty(self) -> bool:
        """Whether nothing is counted, for anybody."""
        return not (self._mails or self._notices or self._counts or self._held)

    def refusal(self, mail: Mail) -> str:
        """Why a mail cannot wait; empty where it can."""
        most = MOST_WAITING if mail.undo else min(MOST_OTHERS, MOST_WAITING)
        if self._mails >= most:
            return f"{most} wait already"
        if mail.rank is Rank.NOTICE and self._notices >= MOST_NOTICES:
            return f"{MOST_NOTICES} notices wait already"
        full = (bound for bound in _bounds(mail) if self._counts[bound.payer] >= bound.most)
        return next((f"{bound.most} {bound.words} wait already" for bound in full), "")

    def enter(self, mail: Mail) -> None:
        """Counts a mail."""
        self._add(mail, 1)

    def leave(self, mail: Mail) -> None:
        """Counts it no longer."""
        self._add(mail, -1)

    def _add(self, mail: Mail, number: int) -> None:
        self._mails += number
        self._notices += number * (mail.rank is Rank.NOTICE)
        for bound in _bounds(mail):
            _count(self._counts, bound.payer, number)

    @contextmanager
    def hold(self, network: str, what: str) -> Iterator[None]:
        """Keeps a place for a mail that somebody asks for, until it is posted: a request that counts for whom the mail
        goes to must not end without the mail. Raises NoRoom."""
        asked = _asked(network, what)
        if self._counts[asked] + self._held[asked] >= MOST_ASKED:
            raise NoRoom
        if self._mails + self._held.total() >= min(MOST_OTHERS, MOST_WAITING):
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
    """What bounds a mail: its account, and the network where it was asked for, if it was."""
    most = MOST_UNDOS if mail.undo else MOST_ALIKE
    account = _Bound((mail.payer or mail.to, mail.what, mail.link), most, "of this kind by this account")
    if not mail.network:
        return (account,)
    return account, _Bound(_asked(mail.network, mail.what), MOST_ASKED, "asked for from this network")
