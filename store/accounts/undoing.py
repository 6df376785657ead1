"""Links that take an account back: mailed with a change of its address or with its first second step, good for 7 days.

Such a link is sealed as the others of store/accounts/links.py are. What is open of a person stands in one row, as
lua/include/accounts/undo.lua has it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from store import keys, lifetimes
from store.accounts.addresses import Addresses
from store.accounts.links import FIRST_FACTOR, over
from store.accounts.people import TAKEN
from store.app_stats import AppStats
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, fresh_epoch
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable
from store.lifetimes import GRACE, UNDO_LINK
from store.refused import Refused
from store.results import Visitor, decoded, warned_of
from store.webhooks.relay_wakeup import RelayWakeup

log = logging.getLogger("latchkey.accounts")


@dataclass(frozen=True, slots=True)
class Undo:
    """A link that takes the account of `user` back: it makes `old` the address, and the person has `new`, or had;
    `used`: it has done its work; `first_factor`: it was mailed when a first second step was added, not after a change
    of address; `since`: when that was (epoch ms). Of an account that was taken back just now: `warned` as of `Profile`;
    the client ids of apps that were disconnected (`ended`) or whose spending limit is lower again; `own`: what was done
    to apps of the person's own, by client id."""

    user: str
    old: str
    new: str
    used: bool
    first_factor: bool
    since: int = 0
    warned: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)


class OwnApps(Protocol):
    """The apps that people have registered."""

    async def take_back(self, user: str, since: int) -> dict[str, str]:
        """Takes back those of a person, with whom somebody else was from `since` on (epoch ms). Returns what was done,
        by client id. Raises StoreUnavailable."""


class Undoing:
    """Looks at such links, and does what they say."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        hasher: PasswordHasher,
        addresses: Addresses,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        owned: OwnApps,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._hasher = hasher
        self._addresses = addresses
        self._app_stats = app_stats
        self._wakeup = wakeup
        self._owned = owned

    def _open(self, text: str) -> Token:
        token = self._sealer.open(TokenKind.UNDO, text)
        if token is None:
            raise over()
        return token

    async def look(self, text: str) -> Undo:
        """What a link says that takes an account back. Raises Refused("invalid_request") for one that is over."""
        token = self._open(text)
        reply = await self._scripts.run("read_undo", keys.person(token.user), undo_id=token.id)
        if reply.word == "over":
            raise over()
        used = reply.word == "used"
        since = 0 if used else reply.number("at")
        return Undo(token.user, token.client, reply.text("email"), used, token.generation == FIRST_FACTOR, since)

    async def undo(self, text: str, visitor: Visitor) -> Undo:
        """Takes an account back, signed in or not: the address is the one of then. Every session ends, the password,
        and every token of an app; so do the links of later changes, what was added to sign in with since 7 days before
        the link was mailed, and what apps were allowed since it was: connections end, limits are what they were. The
        entry in the index holds the old address. Raises Refused("invalid_request"), HasherBusy."""
        token = self._open(text)
        user, old = token.user, token.client
        seen = await self.look(text)  # no hash is made for a link that is over
        if seen.used:
            if seen.new != old:
                raise over()
            return seen
        hashed = await self._hasher.hash(secrets.token_urlsafe(32))
        if not (await self._addresses.reserve(old, user) and await self._addresses.keep(old, user)):
            raise Refused("invalid_request", TAKEN)
        # Registrations lie in other slots. Cut short behind them, the link works as before and does the rest; what a
        # thief still changes until the account is back is taken back after it.
        own = await self._owned.take_back(user, seen.since)
        reply = await self._scripts.run(
            "undo_change",
            {**keys.account_deletion(user), "window": keys.limit(user, f"{lifetimes.MAIL.name}-reset")},
            undo_id=token.id,
            password=hashed,
            doubt=UNDO_LINK,
            first_factor="1" if seen.first_factor else "0",
            prefix=keys.prefix(user),
            member=keys.member(user),
            fresh_epoch=fresh_epoch(),
            grace=GRACE,
            **visitor.fields(),
        )
        if reply.word == "over":
            await self._addresses.free_stale(old)
            raise over()
        if reply.word == "already":
            return replace(seen, new=old, used=True)
        freed = reply.rows("freed")
        for email, ends in zip(freed[::2], freed[1::2], strict=True):
            await self._addresses.hold(email.decode(), user, int(ends))
        try:
            own |= await self._owned.take_back(user, seen.since)
        except StoreUnavailable:
            log.warning("the apps of a person who took the account back were looked at before it, and not again")
        ended, lowered = decoded(reply.rows("left")), decoded(reply.rows("lowered"))
        for client in ended:
            self._app_stats.disconnected(client)
        self._wakeup.add(user)
        return replace(seen, new=reply.text("email"), warned=warned_of(reply), ended=ended, lowered=lowered, own=own)
