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
of them loses one to an account with fewer. For notices, that is an account of the network with the most."""
MOST_UNDOS_IN_ALL = MOST_WAITING - MOST_OTHERS
MOST_UNDOS_OF_NETWORK = MOST_UNDOS_IN_ALL // 10
"""Places for undo links that were not tried yet, of changes that visitors of one network made. A change without such a
place is refused. Accounts are cheap, but networks are not."""
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
        self._reserved_undos: Counter[tuple[str, str, bool]] = Counter()
        self._reserved_origins: Counter[tuple[str, str, bool]] = Counter()

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
        return mail.undo and self._reserved_undos[_account(mail)] > 0

    def _total_refusal(self, mail: Mail) -> str:
        if mail.undo:
            return f"{MOST_UNDOS_IN_ALL} with an undo link wait already" if self._undos >= MOST_UNDOS_IN_ALL else ""
        if mail.rank is Rank.NOTICE and self._notices >= MOST_NOTICES:
            return f"{MOST_NOTICES} notices wait already"
        return f"{MOST_OTHERS} without an undo link wait already" if self._others >= MOST_OTHERS else ""

    def loser(self, mail: Mail) -> Waiting | None:
        """The waiting mail whose place this one gets; None if it needs none or gets none. Only undo links and notices
        change places, each with their like."""
        return self._weakest(mail) if self._total_refusal(mail) else None

    def _weakest(self, mail: Mail) -> Waiting | None:
        like = [one for one in self._waiting if one.mail.rank is mail.rank]
        if mail.rank is Rank.NOTICE:
            return _weakest_notice(mail, like)
        return _weakest_undo(mail, like) if mail.undo else None

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
        mail = Mail(what, "", "", "", link=True, undo=True, payer=user)
        taken = self._undos + self._reserved_undos.total()
        if self.refusal(mail) or taken >= MOST_UNDOS_IN_ALL + SPARE_UNDOS:
            raise NoRoom
        if taken >= MOST_UNDOS_IN_ALL and not self._weakest(mail):
            raise NoRoom
        if origin and self._untried_undos(origin) >= MOST_UNDOS_OF_NETWORK:
            raise NoRoom
        account, network = _account(mail), (origin, "", True)
        _count(self._reserved_undos, account, 1)
        _count(self._reserved_origins, network, 1)
        try:
            yield
        finally:
            _count(self._reserved_undos, account, -1)
            _count(self._reserved_origins, network, -1)

    def _untried_undos(self, origin: str) -> int:
        """Undo links of this network that delay those of others, and reserved places."""
        undos = [one for one in self._waiting if one.mail.undo and one.mail.origin == origin]
        return sum(one.sending or not one.tried for one in undos) + self._reserved_origins[origin, "", True]


def _weakest_undo(mail: Mail, undos: list[Waiting]) -> Waiting | None:
    """The account with the most loses one: one that was tried before, and the newest of those. Accounts with equally
    many change places only if that mail was tried: its change is made already, so every undo link is tried once."""
    counts = Counter(one.mail.account for one in undos)
    here = [one for one in undos if not one.sending]
    if not here:
        return None
    found = max(reversed(here), key=lambda one: (counts[one.mail.account], one.tried))
    more = counts[found.mail.account] - counts[mail.account]
    return found if more > 1 or (more == 1 and found.tried) else None


def _weakest_notice(mail: Mail, notices: list[Waiting]) -> Waiting | None:
    """The network with the most loses one, of its account with the most: one that was tried before, or one by lot. So a
    network full of accounts keeps no other's notice out, and whoever fills it can't choose whose notice goes. Without
    fewer notices of its network, or of its account, a mail gets no place of others."""
    networks = Counter(one.mail.paid_by.network for one in notices)
    accounts = Counter(one.mail.account for one in notices)

    def weight(one: Waiting) -> tuple[int, int, bool]:
        return networks[one.mail.paid_by.network], accounts[one.mail.account], one.tried

    here = [one for one in notices if not one.sending]
    if not here:
        return None
    most = max(map(weight, here))
    fair = most[0] > networks[mail.paid_by.network] + 1 or most[1] > accounts[mail.account]
    return secrets.choice([one for one in here if weight(one) == most]) if fair else None


def _count(counts: Counter[tuple[str, str, bool]], payer: tuple[str, str, bool], number: int) -> None:
    counts[payer] += number
    if not counts[payer]:
        del counts[payer]


def _asked(network: str, what: str) -> tuple[str, str, bool]:
    return network, "reset" if what in RESETS else "", False


def _account(mail: Mail) -> tuple[str, str, bool]:
    return mail.payer or mail.to, mail.what, mail.link


def _bounds(mail: Mail) -> tuple[_Bound, ...]:
    """The limits of a mail: its account's, and that of the network that asked for it, if there is one."""
    most = MOST_UNDOS if mail.undo else MOST_ALIKE
    account = _Bound(_account(mail), most, "of this kind by this account")
    if not mail.network:
        return (account,)
    return account, _Bound(_asked(mail.network, mail.what), MOST_ASKED, "asked for from this network")
