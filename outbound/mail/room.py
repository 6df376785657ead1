"""How many mails may wait: in all, of notices, of one kind by one account, and from one network."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from outbound.mail.line import Rank
from outbound.mail.mail import Mail

MOST_WAITING, MOST_OTHERS, MOST_NOTICES = 1000, 870, 400
"""The limits of waiting mails: in all, for mails without an undo link, and for notices, which have no link of their own
and which nobody asked for. So an account that causes many notices can't keep links out, and a client that asks for many
links can't keep out undo links. The gaps between the limits are larger than four networks and five accounts can fill; a
test checks this. Many accounts can fill the places of notices, or those of undo links: then the account with the most
of them loses one to an account with fewer."""
MOST_UNDOS_IN_ALL = MOST_WAITING - MOST_OTHERS
MOST_UNDOS_OF_NETWORK = MOST_UNDOS_IN_ALL // 10
"""Places for undo links that were not tried yet, of changes that visitors of one network made. A change without such a
place is refused. So a thief with many accounts can't delay the undo link of the theft for long, nor keep others from
their changes: accounts are cheap, but networks are not."""
SPARE_UNDOS = 10
"""Places beyond all others, for undo links with a reserved place: the mail that was to lose its own may be on its
way by then."""
MOST_ALIKE, MOST_UNDOS = 40, 10
"""Waiting mails of one kind that one account caused. One notice goes to up to 11 addresses. The second number is for
mails with an undo link."""
MOST_ASKED = 40
"""Waiting mails that one network asked for, signed in or not: this many that set a new password, and this many of all
other kinds together. So whoever asks for sign-ups keeps nobody in the network from a new password."""
RESETS = ("reset", "no_account")
"""The mails to an address for which somebody asked to set a new password, with an account and without. They must take
the same places: the places that are left would reveal accounts."""


MOST_AFTER_UNDOS = MOST_UNDOS_OF_NETWORK
"""Waiting links that set a new password after an undo link, of visitors of one network. Whoever changes and undoes the
addresses of many accounts takes no places of other people's links. A person whose link gets no place can ask for it."""


class NoRoom(Exception):
    """No such mail can wait now."""


class _Bound(NamedTuple):
    """A payer, its limit of waiting mails, and their description."""

    payer: tuple[str, str, bool]
    most: int
    words: str


@dataclass(eq=False, slots=True)
class Waiting:
    """A mail that waits. `tried`: it was tried before; `sending`: it is being sent now."""

    mail: Mail
    tried: bool = False
    sending: bool = False


class MailRoom:
    """Counts waiting mails and requests for mails."""

    def __init__(self) -> None:
        self._waiting: dict[Waiting, None] = {}  # in the order of arrival
        self._undos, self._notices = 0, 0
        self._counts: Counter[tuple[str, str, bool]] = Counter()  # has no zeros
        self._reserved: Counter[tuple[str, str, bool]] = Counter()
        self._reserved_undos: list[Mail] = []

    @property
    def empty(self) -> bool:
        """Whether all counts are zero."""
        return not (
            self._waiting or self._undos or self._notices or self._counts or self._reserved or self._reserved_undos
        )

    def refusal(self, mail: Mail) -> str:
        """Why the mail cannot wait; empty if it can, perhaps in the place of `loser`."""
        full = (bound for bound in _bounds(mail) if self._counts[bound.payer] >= bound.most)
        if reason := next((f"{bound.most} {bound.words} wait already" for bound in full), ""):
            return reason
        reason = self._total_refusal(mail)
        return "" if reason and (self._has_place(mail) or self._weakest(mail)) else reason

    def _has_place(self, mail: Mail) -> bool:
        return any(_account(one) == _account(mail) for one in self._reserved_undos)

    def _total_refusal(self, mail: Mail) -> str:
        if mail.undo:
            return f"{MOST_UNDOS_IN_ALL} with an undo link wait already" if self._undos >= MOST_UNDOS_IN_ALL else ""
        if mail.rank is Rank.NOTICE and self._notices >= MOST_NOTICES:
            return f"{MOST_NOTICES} notices wait already"
        return f"{MOST_OTHERS} without an undo link wait already" if self._others >= MOST_OTHERS else ""

    def loser(self, mail: Mail) -> Waiting | None:
        """The waiting mail whose place this one gets; None if it needs none or gets none. Only undo links and notices
        change places, each with their like. The account with the most of them loses its newest: a thief who makes more
        changes to an account can't push out the link that undoes the first. Among accounts with equally many, those
        come first whose newest was tried before, and then the lot decides, so nobody can choose whose mail goes."""
        return self._weakest(mail) if self._total_refusal(mail) else None

    def _weakest(self, mail: Mail) -> Waiting | None:
        if mail.rank is Rank.LINK:
            return None
        like = [one for one in self._waiting if one.mail.rank is mail.rank]
        counts = Counter(one.mail.account for one in like)
        newest = {one.mail.account: one for one in like}.values()

        def weight(one: Waiting) -> tuple[int, bool]:
            return counts[one.mail.account], one.tried

        def may_lose(one: Waiting) -> bool:
            more = counts[one.mail.account] - counts[mail.account]
            # An undo link's change is made already, so each is tried once.
            return not one.sending and (more > 1 or (more == 1 and (one.tried or not mail.undo)))

        here = [one for one in newest if may_lose(one)]
        most = max(map(weight, here), default=None)
        return secrets.choice([one for one in here if weight(one) == most]) if here else None

    @property
    def _others(self) -> int:
        """Waiting mails without an undo link. Those with one have places of their own and keep no others out."""
        return len(self._waiting) - self._undos

    def enter(self, mail: Mail) -> Waiting:
        """Counts a mail."""
        waiting = Waiting(mail)
        self._waiting[waiting] = None
        self._add(mail, 1)
        return waiting

    def leave(self, waiting: Waiting) -> None:
        """Stops counting a mail, unless it has left before."""
        if waiting in self._waiting:
            del self._waiting[waiting]
            self._add(waiting.mail, -1)

    def _add(self, mail: Mail, number: int) -> None:
        self._undos += number * mail.undo
        self._notices += number * (mail.rank is Rank.NOTICE)
        for bound in _bounds(mail):
            _count(self._counts, bound.payer, number)

    @contextmanager
    def reserve(self, network: str, what: str) -> Iterator[None]:
        """Reserves room for a requested mail until it is posted: a request that counts for the mail's recipient must
        not end without the mail. Raises NoRoom."""
        asked = _asked(network, what)
        if self._counts[asked] + self._reserved[asked] >= MOST_ASKED:
            raise NoRoom
        if self._others + self._reserved.total() >= MOST_OTHERS:
            raise NoRoom
        _count(self._reserved, asked, 1)
        try:
            yield
        finally:
            _count(self._reserved, asked, -1)

    @contextmanager
    def reserve_undo(self, user: str, what: str, origin: str) -> Iterator[None]:
        """Reserves room for a mail with an undo link before the change that it undoes: 130 accounts can fill all places
        with mails that nobody has tried yet, and whoever has somebody's password would make the change while they do.
        `origin`: the network of the visitor. Raises NoRoom."""
        mail = Mail(what, "", "", "", link=True, undo=True, payer=user, origin=origin)
        taken = self._undos + len(self._reserved_undos)
        if self.refusal(mail) or taken >= MOST_UNDOS_IN_ALL + SPARE_UNDOS:
            raise NoRoom
        if taken >= MOST_UNDOS_IN_ALL and not self._weakest(mail):
            raise NoRoom
        if self._untried_undos(origin) >= MOST_UNDOS_OF_NETWORK:
            raise NoRoom
        self._reserved_undos.append(mail)
        try:
            yield
        finally:
            self._reserved_undos.remove(mail)

    def _untried_undos(self, origin: str) -> int:
        """Undo links of this network that delay other first tries, and reserved places."""
        untried = [one.mail for one in self._waiting if one.mail.undo and (one.sending or not one.tried)]
        return sum(mail.origin == origin for mail in (*untried, *self._reserved_undos))


def _count(counts: Counter[tuple[str, str, bool]], payer: tuple[str, str, bool], number: int) -> None:
    counts[payer] += number
    if not counts[payer]:
        del counts[payer]


def _asked(network: str, what: str) -> tuple[str, str, bool]:
    return network, "reset" if what in RESETS else "", False


def _account(mail: Mail) -> tuple[str, str, bool]:
    return mail.payer or mail.to, mail.what, mail.link


def _bounds(mail: Mail) -> tuple[_Bound, ...]:
    """The limits of a mail: its account's, and that of the network that asked for it or caused a link, if there is
    one."""
    most = MOST_UNDOS if mail.undo else MOST_ALIKE
    account = _Bound(_account(mail), most, "of this kind by this account")
    if not mail.network:
        if mail.origin and mail.rank is Rank.LINK:
            return account, _Bound(
                (mail.origin, "after undo", True), MOST_AFTER_UNDOS, "after undo links of this network"
            )
        return (account,)
    return account, _Bound(_asked(mail.network, mail.what), MOST_ASKED, "asked for from this network")
