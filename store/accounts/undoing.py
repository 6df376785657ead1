"""Links that take an account back: mailed after a change of address or a first second step, valid for 7 days.

Such a link is sealed like the others of store/accounts/links.py. One row has the open links of a person, in the form of
lua/include/accounts/undo.lua.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from store import keys, lifetimes
from store.accounts.addresses import Addresses
from store.accounts.identities import Identities
from store.accounts.links import FIRST_FACTOR, NEW_IDENTITY, over
from store.accounts.people import TAKEN
from store.app_stats import AppStats
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, fresh_epoch
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable
from store.lifetimes import GRACE, UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused
from store.results import NO_WARNING, Visitor, Warned, warned_of
from store.webhooks.relay_wakeup import RelayWakeup

log = logging.getLogger("latchkey.accounts")


@dataclass(frozen=True, slots=True)
class Undo:
    """A link that takes the account of `user` back: it replaces the address `new` with `old`. `used`: the link has been
    used; `first_factor`: the link was mailed after a first second step, and `identity` after a link to another server,
    not after a change of address; `since`: when that was (epoch ms). For an account taken back just now: `warned` as in
    `Profile`; the client ids of apps that were disconnected (`ended`), whose spending limit is lower again, or which
    are `paused` again; `own`: what happened to the person's own apps and APIs, by client id."""

    user: str
    old: str
    new: str
    used: bool
    first_factor: bool
    identity: bool = False
    since: int = 0
    warned: Warned = NO_WARNING
    ended: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    own: Mapping[str, Phrase] = field(default_factory=dict)


class Possessions(Protocol):
    """Apps, or APIs, of people."""

    async def take_back(self, user: str, since: int) -> dict[str, Phrase]:
        """Takes back those of a person whose account somebody else had from `since` on (epoch ms). Returns what was
        done, by client id. Raises StoreUnavailable."""


class Undoing:
    """Reads and uses links that take an account back."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        hasher: PasswordHasher,
        addresses: Addresses,
        identities: Identities,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        owned: Sequence[Possessions],
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._hasher = hasher
        self._addresses = addresses
        self._identities = identities
        self._app_stats = app_stats
        self._wakeup = wakeup
        self._owned = owned

    def _open(self, text: str) -> Token:
        token = self._sealer.open(TokenKind.UNDO, text)
        if token is None:
            raise over()
        return token

    async def look(self, text: str) -> Undo:
        """Reads a link that takes an account back. Raises Refused("invalid_request") for an expired link."""
        token = self._open(text)
        reply = await self._scripts.run("read_undo", keys.person(token.user), undo_id=token.id)
        if reply.word == "over":
            raise over()
        used = reply.word == "used"
        since = 0 if used else reply.number("at")
        after = token.generation == FIRST_FACTOR, token.generation == NEW_IDENTITY
        return Undo(token.user, token.client, reply.text("email"), used, *after, since)

    async def _take_back_own(self, user: str, since: int) -> dict[str, Phrase]:
        """What was done to the apps and APIs of a person, by client id."""
        done: dict[str, Phrase] = {}
        for theirs in self._owned:
            done |= await theirs.take_back(user, since)
        return done

    async def undo(self, text: str, visitor: Visitor) -> Undo:
        """Takes an account back, without a session if need be. Restores the address; the index kept its entry.

        Ends every session, the password, every token of an app and the links of later changes. Also ends the ways to
        sign in that were added in the 7 days before the link was mailed or since, and what apps were allowed since:
        connections end, limits are restored. Raises Refused("invalid_request").
        """
        token = self._open(text)
        user, old = token.user, token.client
        seen = await self.look(text)
        if seen.used:
            if seen.new != old:
                raise over()
            return seen
        hashed = self._hasher.unusable()
        if not await self._addresses.claim(old, user):
            raise Refused("invalid_request", TAKEN)
        # Registrations are in other slots. If an interruption follows them, the link still works and does the rest. A
        # second pass, after the account is back, undoes what a thief changed in between.
        own = await self._take_back_own(user, seen.since)
        reply = await self._scripts.run(
            "undo_change",
            {**keys.account_deletion(user), "window": keys.limit(user, f"{lifetimes.MAIL.name}-reset")},
            undo_id=token.id,
            password=hashed,
            doubt=UNDO_LINK,
            first_factor=token.generation,
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
        for name in reply.rows("unlinked"):
            await self._identities.release(name.decode(), user)
        try:
            own |= await self._take_back_own(user, seen.since)
        except StoreUnavailable:
            log.warning("account taken back, but its apps were checked only before that, not after")
        ended, lowered, paused = (
            tuple(one.decode() for one in reply.rows(name)) for name in ("left", "lowered", "paused")
        )
        for client in ended:
            self._app_stats.disconnected(client)
        self._wakeup.add(user)
        done = replace(seen, new=reply.text("email"), warned=warned_of(reply), own=own)
        return replace(done, ended=ended, lowered=lowered, paused=paused)
