"""Links that are mailed to a person: to confirm the address, to set a forgotten password, to change the address.

A link is a sealed text that names the person and the address it was mailed to. A key of the person holds the newest
link of each purpose and expires with the link. Older links do not work, and the change that a link makes uses it up.
Opening the page of a link changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from store import keys, lifetimes
from store.accounts.addresses import Addresses
from store.accounts.identities import Identities
from store.accounts.people import TAKEN
from store.accounts.signin.sessions import Session
from store.app_stats import AppStats
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, fresh_epoch, new_id
from store.engine.scripts import Scripts
from store.lifetimes import CHANGE_LINK, CONFIRM_LINK, DAY, FACTOR_LEFT, GRACE, PROOF, RESET_LINK, UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused, SignedOut, let_in, refuse_signed_out, refuse_unproved
from store.results import NO_CHOICE, NO_WARNING, Preferences, Visitor, Warned, warned_of
from store.webhooks.relay_wakeup import RelayWakeup

# The name of each kind in its key, and its lifetime in ms.
_PURPOSES = {
    TokenKind.CONFIRM: ("confirm", CONFIRM_LINK),
    TokenKind.RESET: ("reset", RESET_LINK),
    TokenKind.CHANGE: ("change", CHANGE_LINK),
}

MOST_UNDOS = 10  # recovery links of one person; beyond this number no change of address
FIRST_FACTOR = 1  # the number in the seal of a recovery link for a first second step; 0 for a change of address
NEW_IDENTITY = 2  # the same for a linked identity at another server


@dataclass(frozen=True, slots=True)
class Link:
    """A link to be mailed to `email`, for a person who reads like this."""

    text: str
    email: str
    preferences: Preferences = NO_CHOICE


@dataclass(frozen=True, slots=True)
class LinkDetails:
    """Details for the page of a link: the person, their address, the address that the link was mailed to, and their
    target page. `used`: the link has been used and cannot work again; otherwise `warned` is as in `Profile`."""

    user: str
    name: str
    email: str
    mailed_to: str
    target: str
    used: bool
    warned: Warned = NO_WARNING


@dataclass(frozen=True, slots=True)
class AddressChange:
    """A change of address. `again`: the change had been made before; `undo`: the link that brings the old address back,
    None if the old address was not confirmed; `warned` as in `Profile`."""

    old: str
    new: str
    again: bool
    undo: Link | None
    warned: Warned = NO_WARNING


class Links:
    """Issues and uses mailed links. `idle` is the idle lifetime of a session in ms."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        hasher: PasswordHasher,
        addresses: Addresses,
        identities: Identities,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        idle: int,
    ) -> None:
        self._scripts = scripts
        self._addresses = addresses
        self._identities = identities
        self._app_stats = app_stats
        self._wakeup = wakeup
        self._sealer = sealer
        self._hasher = hasher
        self._idle = idle

    async def to_confirm(
        self, user: str, email: str, target: str = "", *, again: bool = True, mailed: bool = True
    ) -> Link | None:
        """A link that confirms a person's address, valid for 24 hours; None if there is nothing to confirm. Without
        `again`, also None if an earlier link, `mailed` by a mail server, still works; that link then leads to `target`.
        Raises Refused("rate_limited") beyond 5 an hour."""
        return await self._issue(TokenKind.CONFIRM, user, email, email, target, again=again, mailed=mailed)

    async def to_reset(self, user: str, email: str, target: str = "") -> Link | None:
        """A link that sets a new password, valid for an hour; None if the address now has another account or the
        account is disabled. A link from the last hour that still works is returned again, valid for an hour from now.
        Raises Refused("rate_limited") beyond the limits of `SignIn.forgot`."""
        return await self._issue(TokenKind.RESET, user, email, email, target)

    async def to_change(
        self, session: Session, email: str, new: str, password: bytes, visitor: Visitor, *, mailed: bool = True
    ) -> Link:
        """A link, to be mailed to `new`, that makes `new` the person's address; valid for an hour. `password` is the
        verified raw hash; people with a second step confirm with that instead. Raises SignedOut, Unproved,
        Refused("access_denied") if the password has changed meanwhile, Refused("rate_limited") beyond 5 an hour."""
        purpose, lifetime = _PURPOSES[TokenKind.CHANGE]
        link_id = new_id()
        reply = await self._scripts.run(
            "issue_change",
            {
                **session.keys(),
                "link": keys.link(session.user, purpose),
                "window": keys.limit(session.user, f"{lifetimes.MAIL.name}-{purpose}"),
            },
            link_id=link_id,
            email=email,
            password=password,
            ttl=lifetime,
            mailed="1" if mailed else "0",
            limit=lifetimes.MAIL.limit,
            period=lifetimes.MAIL.period,
            idle=self._idle,
            proof=PROOF,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "rate_limited":
            let_in(lifetimes.MAIL, reply)
        if reply.word == "gone":
            raise SignedOut
        if reply.word == "stale":
            raise Refused("access_denied", Phrase("The password was changed in the meantime."))
        text = self._sealer.seal(Token(TokenKind.CHANGE, session.user, new, link_id, 0))
        return Link(text, new, Preferences.of(reply.text("preferences")))

    async def _issue(
        self,
        kind: TokenKind,
        user: str,
        email: str,
        mailed_to: str,
        target: str = "",
        *,
        again: bool = True,
        mailed: bool = True,
    ) -> Link | None:
        purpose, lifetime = _PURPOSES[kind]
        window = lifetimes.MAIL_RESET if kind is TokenKind.RESET else lifetimes.MAIL
        reply = await self._scripts.run(
            "issue_link",
            {
                **keys.person(user),
                "link": keys.link(user, purpose),
                "window": keys.limit(user, f"{window.name}-{purpose}"),
            },
            link_id=new_id(),
            email=email,
            ttl=lifetime,
            target=target,
            again="1" if again else "0",
            unless_confirmed="1" if kind is TokenKind.CONFIRM else "0",
            mailed="1" if mailed else "0",
            limit=window.limit,
            period=window.period,
            same=lifetime if kind is TokenKind.RESET else 0,
        )
        if reply.word == "rate_limited":
            let_in(window, reply)
        if reply.word != "ok":
            return None
        text = self._sealer.seal(Token(kind, user, mailed_to, reply.text("link_id"), 0))
        return Link(text, mailed_to, Preferences.of(reply.text("preferences")))

    def _open(self, kind: TokenKind, text: str) -> Token:
        token = self._sealer.open(kind, text)
        if token is None:
            raise over()
        return token

    def _keys(self, token: Token) -> dict[str, str]:
        return {**keys.person(token.user), "link": keys.link(token.user, _PURPOSES[token.kind][0])}

    def mailed_to(self, kind: TokenKind, text: str) -> str:
        """The address that a link was mailed to, even if the link works no longer; empty for a forged one. No I/O."""
        token = self._sealer.open(kind, text)
        return token.client if token else ""

    async def look(self, kind: TokenKind, text: str) -> LinkDetails:
        """The details of a link. Raises Refused("invalid_request") for a link that no longer works."""
        token = self._open(kind, text)
        reply = await self._scripts.run("read_link", self._keys(token), link_id=token.id)
        if reply.word == "over":
            raise over()
        if reply.word == "used":
            return LinkDetails(token.user, "", reply.text("email"), token.client, reply.text("target"), True)
        warned = warned_of(reply)
        return LinkDetails(
            token.user, reply.text("name"), warned.addresses[0], token.client, reply.text("target"), False, warned
        )

    async def confirm(self, session: Session, text: str, visitor: Visitor) -> str:
        """Confirms the address and returns the person's target page, or "". Only the signed-in person can: a click by
        the owner of an address must not confirm the account of a stranger who signed up with it. Raises SignedOut,
        Refused("invalid_request")."""
        token = self._open(TokenKind.CONFIRM, text)
        if token.user != session.user:
            raise _foreign()
        reply = await self._scripts.run(
            "confirm_address",
            {**self._keys(token), **session.keys()},
            link_id=token.id,
            email=token.client,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "over":
            raise over()
        return reply.text("target") if reply.word == "ok" else ""

    async def reset(self, text: str, password: str, visitor: Visitor) -> bool:
        """Sets the password; ends every session and every other link; confirms the address. If the address was not
        confirmed before, also removes second step and passkeys, disconnects every app, and returns True. Raises
        Refused("invalid_request"), HasherBusy."""
        seen = await self.look(TokenKind.RESET, text)  # an expired link costs no hash
        if seen.used:
            raise over()
        token = self._open(TokenKind.RESET, text)
        hashed = await self._hasher.hash(password, known=True)
        reply = await self._scripts.run(
            "reset_password",
            {**self._keys(token), **keys.outbox_keys(token.user[:3])},
            link_id=token.id,
            member=keys.member(token.user),
            password=hashed,
            prefix=keys.prefix(token.user),
            fresh_epoch=fresh_epoch(),
            grace=GRACE,
            lifts=DAY,
            left_at=FACTOR_LEFT,
            **visitor.fields(),
        )
        if reply.word == "over":
            raise over()
        for name in reply.rows("unlinked"):
            await self._identities.release(name.decode(), token.user)
        for client in reply.rows("left"):
            self._app_stats.disconnected(client.decode())
            self._wakeup.add(token.user)
        self._wakeup.add(token.user, reply.number("told") > 0)
        return reply.number("claimed") == 1

    async def change(self, session: Session, text: str, visitor: Visitor) -> AddressChange:
        """Changes the person's address to the one that the link was mailed to.

        The entry in the index is in another slot than the row. The steps are: reserve the entry (60 s), make it
        permanent, write the row, release the old entry or keep it for the link that brings it back. The old address
        works until the row is written, the new one afterwards. After an interruption the link works again, or does the
        rest. Raises SignedOut, Refused("invalid_request") for an expired link, for an address that now has an account,
        and for one change too many in a week.
        """
        token = self._open(TokenKind.CHANGE, text)
        if token.user != session.user:
            raise _foreign()
        user, new, undo_id = token.user, token.client, new_id()
        seen = await self.look(TokenKind.CHANGE, text)
        if seen.used and seen.email != new:
            raise over()
        if not await self._addresses.claim(new, user):
            raise Refused("invalid_request", TAKEN)
        reply = await self._scripts.run(
            "change_address",
            {**self._keys(token), **session.keys(), **keys.changed(user)},
            link_id=token.id,
            member=keys.member(user),
            email=new,
            idle=self._idle,
            undo_id=undo_id,
            lasts=UNDO_LINK,
            most=MOST_UNDOS,
            **visitor.fields(),
        )
        if reply.word in ("signed_out", "over", "full"):
            await self._addresses.free_stale(new)
        refuse_signed_out(reply)
        if reply.word == "over":
            raise over()
        if reply.word == "full":
            raise Refused(
                "invalid_request", Phrase("You changed your address too often this week. Try again in a few days.")
            )
        old, ends = reply.text("old"), reply.number("ends")
        if old != new:
            await self._addresses.hold(old, user, ends)
        again = reply.word == "already"
        undo = None if again or not ends else Link(self._sealer.seal(Token(TokenKind.UNDO, user, old, undo_id, 0)), old)
        return AddressChange(old, new, again, undo, warned_of(reply))


def over() -> Refused:
    """The error for a link that no longer works."""
    return Refused("invalid_request", Phrase("This link has expired or was already used. Only the newest link works."))


def _foreign() -> Refused:
    return Refused("invalid_request", Phrase("This link is for a different account than the one you're signed in to."))
