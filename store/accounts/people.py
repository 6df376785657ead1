"""People: accounts, their e-mail index, invitations and passwords.

The index entry of an e-mail address is in another slot than the person's row, so creating an account takes three
steps: reserve the address (60 s), write the row, confirm the address if it is still ours
(`store/accounts/addresses.py`).
A crash after any step leaves no half-working account.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.audit.security_log import SecurityLog
from store.accounts.groups import described
from store.accounts.identities import Identities
from store.accounts.signin.hash_prices import HashPrices
from store.app_stats import AppStats
from store.crypto.passwords import HasherBusy, PasswordHasher
from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, new_id, new_user_id
from store.engine.background import working
from store.engine.scripts import Reply, Scripts
from store.errors import wrapped
from store.lifetimes import INVITE, SAME_INVITE
from store.phrases import Phrase
from store.refused import Refused, Suspended
from store.results import NO_CHOICE, Preferences, Visitor, unheard
from store.webhooks.relay_wakeup import RelayWakeup

TAKEN = Phrase("There's already an account with this e-mail address.")
ABOUT_TO_BEGIN = 3600  # seconds


@dataclass(frozen=True, slots=True)
class Credentials:
    """The stored values that a sign-in is checked against. The new session records `session_epoch`; the person's row
    then gets `rehash`, the password at the present cost, unless empty. `suspended_reason`: why the operator suspended
    the account, if so."""

    user: str
    password: bytes
    active: bool
    session_epoch: str
    rehash: bytes = b""
    preferences: Preferences = NO_CHOICE
    suspended_reason: str = ""


def credentials_of(user: str, reply: Reply) -> Credentials:
    """The credentials in the answer of a script that read them."""
    active = reply.raw("status") == b"active"
    preferences = Preferences.of(reply.text("preferences")) if "preferences" in reply.fields else NO_CHOICE
    reason = reply.text("suspended_reason") if "suspended_reason" in reply.fields else ""
    epoch = reply.text("session_epoch")
    return Credentials(user, reply.raw("password"), active, epoch, preferences=preferences, suspended_reason=reason)


class Invited(NamedTuple):
    """An opened invitation: its e-mail address, and the person's target page or ""."""

    email: str
    target: str


class People:
    """Creates, finds and deletes accounts. `part_with` takes a person out of the teams of apps; `external_ids`: the ids
    that an outside directory gave people."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        sealer: Sealer,
        hasher: PasswordHasher,
        addresses: Addresses,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        security: SecurityLog,
        part_with: Callable[[str], Awaitable[None]],
        identities: Identities,
        prices: HashPrices,
    ) -> None:
        self._identities = identities
        self.external_ids = identities.external
        self._part_with = part_with
        self._prices = prices
        self._client = client
        self._security = security
        self._scripts = scripts
        self._addresses = addresses
        self._app_stats = app_stats
        self._wakeup = wakeup
        self._sealer = sealer
        self._hasher = hasher

    async def create(
        self,
        email: str,
        name: str,
        password: str | None,
        *,
        verified: bool,
        event: str,
        visitor: Visitor,
        groups: Sequence[str] = (),
        user: str = "",
        external_id: str = "",
        suspended: tuple[str, str] = ("", ""),
    ) -> str:
        """Creates an account and returns its user id, which is `user` if given.

        `email` and `groups` are normalised already; `password`: None for an account without one; `verified`: the
        address is known to be this person's; `external_id`: reserved already; `suspended`: the reason and the note of
        an account that begins suspended. Raises Refused("invalid_request") if the address has an account,
        HasherBusy, StoreUnavailable.
        """
        hashed = self._hasher.unusable() if password is None else await self._hasher.hash(password)
        user = user or new_user_id()
        if not await self._addresses.reserve(email, user):
            raise Refused("invalid_request", TAKEN)
        await self._scripts.run(
            "create_user",
            {**keys.person(user), **keys.changed(user)},
            member=keys.member(user),
            email=email,
            email_verified="1" if verified else "0",
            name=name,
            password=hashed,
            event=event,
            groups="\n".join(groups),
            external_id=external_id,
            reason=suspended[0],
            note=suspended[1],
            **visitor.fields(),
        )
        if groups:
            self._security.note("groups_changed_by_operator", person=user, detail=described((), groups))
        if not await self._addresses.keep(email, user):
            await self.delete(user)
            raise Refused("invalid_request", TAKEN)
        return user

    async def find(self, email: str) -> str | None:
        """The user id in the index for an address; the caller's script checks it against the row."""
        return await self._addresses.find(email)

    async def credentials(self, email: str) -> Credentials | None:
        """The credentials for a sign-in with this address, or None if there is no such account."""
        await self._prices.fresh()
        user = await self.find(email)
        # An address without an account gets the same call, for a random user: the timing must reveal nothing.
        reply = await self._scripts.run("read_credentials", keys.person(user or new_user_id()), email=email)
        if user is None or reply.word != "ok":
            return None
        return credentials_of(user, reply)

    async def verify(
        self, email: str, password: str, *, known: bool = False, refused: str = "confirmation_refused"
    ) -> Credentials | None:
        """The credentials if the password is right and the account is active; otherwise logs the security event
        `refused`. A missing account costs the same work. Raises Suspended for the right password of an account that is
        not active, HasherBusy, StoreUnavailable."""
        return await self.judge(await self.credentials(email), email, password, known=known, refused=refused)

    async def judge(
        self, found: Credentials | None, email: str, password: str, *, known: bool, refused: str
    ) -> Credentials | None:
        """As `verify`, for credentials read before; `known`: a known device, with its own places in the password
        pool."""
        stored, like = (found.password, None) if found else (None, self._prices.like(email))
        right = await self._hasher.verify(password, stored, known=known, like=like)
        if found is None or not right or not found.active:
            why = "unknown" if found is None else "password" if not right else "disabled"
            self._security.note(refused, person=found.user if found else "", typed=email, detail=why)
            if found and right:
                raise Suspended(found.suspended_reason)
            return None
        if self._hasher.needs_rehash(found.password):
            with suppress(HasherBusy):  # the next sign-in hashes it
                rehash = await self._hasher.hash(password, known=known)
                self._prices.replaced(found.password)
                return replace(found, rehash=rehash)
        return found

    async def delete(self, user: str, progress: Callable[[int], None] = unheard) -> None:
        """Deletes an account: first its row, which kills every token and session, next its data in bounded steps, and
        last the address that the row named. `finish_deletions` continues an interrupted deletion. Calls `progress` with
        the number of apps disconnected so far."""
        disconnected, parted = 0, False
        await self._scripts.run("begin_leaving", {"leaving": keys.DELETIONS}, user_id=user, at="", seen="")
        word = "more"
        while word == "more":
            reply = await self._scripts.run(
                "delete_user",
                keys.account_deletion(user),
                member=keys.member(user),
                prefix=keys.prefix(user),
                shard=keys.shard_prefix(user),
                steps=100,
            )
            for client in reply.rows("left"):
                self._app_stats.disconnected(client.decode())
                disconnected += 1
            progress(disconnected)
            word = reply.word
            if word == "more" and not parted:
                await self._part_with(user)
                parted = True
        self._wakeup.add(user)
        for email in filter(None, (reply.text("email"), *map(bytes.decode, reply.rows("held")))):
            await self._addresses.release(email, user)
            with wrapped():
                await self._client.delete(keys.invite(email))
        for name in reply.rows("identities_held"):
            await self._identities.release(name.decode(), user)
        if external_id := reply.text("external_id"):
            await self.external_ids.release(external_id, user)
        with wrapped():
            await self._client.delete(keys.person(user)["leaving"])
            await self._client.hdel(keys.ROLE_HOLDERS, user)
            await self._client.zrem(keys.DELETIONS, user)

    async def half_deleted(self, user: str) -> bool:
        """Whether the deletion of this account has begun and not finished."""
        known = keys.person(user)
        with wrapped():
            if await self._client.hexists(known["user"], "status"):
                return False
            listed = bool(await self._client.sismember(known["users"], keys.member(user)))
            return listed or bool(await self._client.exists(known["leaving"]))

    async def finish_deletions(self, age: int = 0) -> None:
        """Continues deletions that were interrupted at least `age` seconds ago, and begins planned ones that are due. A
        deletion interrupted before its first write is dropped."""
        with wrapped():
            seconds, _ = await self._client.time()
            begun: list[Any] = await self._client.zrange(keys.DELETIONS, "-inf", seconds, byscore=True, withscores=True)
        for user, since in ((one.decode(), int(score)) for one, score in begun):
            state = await self._scripts.run("claim_deletion", keys.person(user), member=keys.member(user))
            if state.word == "due" or (state.word == "begun" and seconds - since >= age):
                with working("delete account"):
                    await self.delete(user)
            elif state.word == "later":
                await self.plan(user, state.number("at") // 1000, seen=since)
            # A younger deletion may be about to begin in another process.
            elif state.word == "none" and seconds - since > ABOUT_TO_BEGIN:
                await self.plan(user, 0, seen=since)

    async def plan(self, user: str, at: int, seen: int | None = None) -> None:
        """Lists a deletion that begins at a time (s), if the person's row has a plan for it; 0 takes it off the list.
        `seen`: only in the place of this time."""
        known, before = {"leaving": keys.DELETIONS}, "" if seen is None else seen
        await self._scripts.run("begin_leaving", known, user_id=user, at=at, seen=before)

    async def invite(self, email: str, target: str = "") -> str:
        """An invitation: a sealed text. Its holder can sign up with this address, once, within 7 days, and continue to
        `target`."""
        invite_id = new_id()
        with wrapped():
            await self._client.set(keys.invite(email), f"{invite_id} {target}", px=INVITE)
        return self._sealed(email, invite_id)

    async def invite_again(self, email: str, target: str = "") -> str:
        """As `invite`, but the same invitation again if there is one of the last hour: a stranger who asks must not end
        the one that the person is about to open. It ends when it would have ended."""
        key = keys.invite(email)
        with wrapped():
            left, kept = await self._client.pttl(key), await self._client.get(key)
            if isinstance(kept, bytes) and left > INVITE - SAME_INVITE:
                invite_id = kept.decode().partition(" ")[0]
                # Only while it is there: it may just have been used.
                if await self._client.set(key, f"{invite_id} {target}", xx=True, keepttl=True):
                    return self._sealed(email, invite_id)
        return await self.invite(email, target)

    def _sealed(self, email: str, invite_id: str) -> str:
        return self._sealer.seal(Token(TokenKind.INVITE, NOBODY, email, invite_id, 0))

    async def invited(self, invite: str) -> Invited | None:
        """Opens an invitation; None if it has expired, was used or never existed."""
        token = self._sealer.open(TokenKind.INVITE, invite)
        if token is None:
            return None
        with wrapped():
            newest = await self._client.get(keys.invite(token.client))
        kept = newest.decode() if isinstance(newest, bytes) else ""
        invite_id, _, target = kept.partition(" ")
        return Invited(token.client, target) if invite_id == token.id else None
