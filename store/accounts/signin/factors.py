"""Factors other than the password, as a signed-in person manages them: authenticator app, passkeys, recovery codes.

`store/accounts/signin/second_step.py` signs people in with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from redis.asyncio import Redis

from store import keys
from store.accounts.identities import LinkedIdentity, linked_identities
from store.accounts.links import FIRST_FACTOR, Link
from store.accounts.signin.passkey_thread import PasskeyThread
from store.accounts.signin.passkeys import (
    MOST,
    Passkey,
    PasskeyResponse,
    RelyingParty,
    decode,
    encode,
    passkeys_of,
    renamed,
)
from store.accounts.signin.sessions import Session
from store.accounts.signin.totp import TotpSecrets, new_recovery_codes, read_typed
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.errors import StoreError, wrapped
from store.lifetimes import CHALLENGE, PROOF, UNDO_LINK
from store.moments import at, epoch_ms
from store.phrases import Phrase
from store.refused import Refused, Unproved, refuse_signed_out, refuse_unproved
from store.results import Preferences, Visitor, Warned, warned_of

REGISTER = "register"
MOST_UNDOS = 3  # links that undo a first second step, for one address


@dataclass(frozen=True, slots=True)
class Factors:
    """A person's factors. `proved`: the person re-authenticated recently, so they may change them; `recovered`: the
    session recently began with the last recovery code, so no code can be required; `by_provider`: a person with an
    authenticator app and no password recently signed in at another server for this session: only a code is missing;
    `now` is in epoch ms; `warned` as in
    `Profile`."""

    user: str
    warned: Warned
    name: str
    now: int
    proved: bool
    recovered: bool
    secret: bytes | None
    since: datetime | None
    passkeys: tuple[Passkey, ...]
    codes: int
    identities: tuple[LinkedIdentity, ...] = ()
    has_password: bool = True
    by_provider: bool = False

    @property
    def email(self) -> str:
        """The person's address."""
        return self.warned.addresses[0]

    @property
    def preferences(self) -> Preferences:
        """How the person reads."""
        return self.warned.preferences

    @property
    def second(self) -> bool:
        """Whether a sign-in with the password needs a second step."""
        return self.secret is not None or bool(self.passkeys)

    @property
    def proved_elsewhere(self) -> bool:
        """Whether a person with neither a password nor a second step recently signed in at another server for this
        session: nothing is missing."""
        return self.proved and not self.has_password and not self.second

    @property
    def asks_code(self) -> bool:
        """Whether re-authentication with the password also needs a code."""
        return self.second and not self.recovered


@dataclass(frozen=True, slots=True)
class Added:
    """A factor was added. `codes`: recovery codes, if the person had none; `undo`: the link that can undo this for 7
    days, if the factor is the first and the person's address is confirmed."""

    codes: list[str]
    undo: Link | None


@dataclass(frozen=True, slots=True)
class Challenge:
    """An opened challenge: its person, its purpose, and the time of issue (epoch ms)."""

    user: str
    purpose: str
    id: str
    issued: int
    text: str

    @property
    def used(self) -> str:
        """The key that marks the challenge as answered."""
        return keys.used_challenge(self.user, self.id)


class Challenges:
    """Challenges for passkeys: sealed, so the store keeps none before its answer."""

    def __init__(self, client: Redis, sealer: Sealer) -> None:
        self._client = client
        self._sealer = sealer

    async def issue(self, user: str, purpose: str) -> str:
        """A challenge for a person (or for nobody yet), valid for 5 minutes."""
        with wrapped():
            issued = epoch_ms(*await self._client.time())
        return self._sealer.seal(Token(TokenKind.CHALLENGE, user, f"{purpose} {issued}", new_id(), 0))

    def open(self, user: str, purpose: str, text: str | None) -> Challenge:
        """Opens a challenge. Raises Refused("access_denied") if its person or purpose differs."""
        token = self._sealer.open(TokenKind.CHALLENGE, text) if text else None
        if token is None or token.user != user or not token.client.startswith(purpose + " "):
            raise Refused("access_denied", Phrase("That took too long. Try again."))
        assert text is not None
        return Challenge(user, purpose, token.id, int(token.client.rpartition(" ")[2]), text)


class OwnFactors:
    """A signed-in person's own factors. Each change raises SignedOut, and Unproved unless the person re-authenticated
    in this session within 10 minutes: with the password, or with the second step if there is one, and in that case
    once for each change. `checks` are the threads that check passkey answers; `idle` is in ms."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        secrets: TotpSecrets,
        challenges: Challenges,
        checks: PasskeyThread,
        idle: int,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._secrets = secrets
        self._challenges = challenges
        self._checks = checks
        self._idle = idle

    async def _run(self, name: str, session: Session, more: dict[str, str], /, **args: str | bytes | int) -> Reply:
        reply = await self._scripts.run(name, {**session.keys(), **more}, idle=self._idle, proof=PROOF, **args)
        refuse_signed_out(reply)
        refuse_unproved(reply)
        return reply

    async def _add(
        self, name: str, session: Session, more: dict[str, str], /, **args: str | bytes | int
    ) -> tuple[Reply, Added]:
        (codes, digests), undo_id = new_recovery_codes(), new_id()
        reply = await self._run(
            name,
            session,
            more,
            digests=json.dumps(digests),
            undo_id=undo_id,
            undo_lasts=UNDO_LINK,
            undo_most=MOST_UNDOS,
            **args,
        )
        if reply.word != "ok":
            return reply, Added([], None)
        email = reply.text("undo")
        sealed = self._sealer.seal(Token(TokenKind.UNDO, session.user, email, undo_id, FIRST_FACTOR)) if email else ""
        return reply, Added(codes if reply.number("begun") else [], Link(sealed, email) if email else None)

    async def of(self, session: Session) -> Factors:
        """The person's factors. Raises SignedOut."""
        reply = await self._run("read_factors", session, {})
        sealed, since = reply.raw("secret"), reply.number("since")
        return Factors(
            session.user,
            warned_of(reply),
            reply.text("name"),
            reply.number("now"),
            reply.number("proved") == 1,
            reply.number("recovered") == 1,
            sealed or None,
            at(since) if since else None,
            passkeys_of(reply.rows("rows")),
            reply.number("codes"),
            linked_identities(reply.rows("identities_known")),
            reply.number("password_known") == 1,
            bool(sealed) and reply.number("elsewhere") == 1 and reply.number("password_known") != 1,
        )

    def new_secret(self, user: str) -> str:
        """A new authenticator secret, sealed for a form: unused until one of its codes is right."""
        return encode(self._secrets.make(user))

    def open_secret(self, user: str, sealed: str) -> bytes:
        """Opens the secret that a form sends back. Raises Refused("invalid_request") for a forged one."""
        try:
            return self._secrets.open(user, decode(sealed))
        except (ValueError, StoreError):
            raise Refused("invalid_request", Phrase("This form has expired. Start again.")) from None

    async def enable_totp(self, session: Session, sealed: str, code: str, visitor: Visitor) -> Added:
        """Enables an authenticator app. Raises Refused: "access_denied" for a wrong code, "invalid_request"."""
        secret = self.open_secret(session.user, sealed)
        typed = read_typed(code, secret, (await self.of(session)).now)
        if not typed.step:
            raise Refused("access_denied", Phrase("That code is wrong or was already used. Enter the code shown now."))
        reply, added = await self._add(
            "enable_totp", session, {}, secret=decode(sealed), step=typed.step, **visitor.fields()
        )
        if reply.word == "present":
            raise Refused("invalid_request", Phrase("You already have an authenticator app."))
        return added

    async def disable_totp(self, session: Session, visitor: Visitor) -> None:
        """Disables the authenticator app, if there is one."""
        await self._run("disable_totp", session, {}, **visitor.fields())

    async def renew_recovery(self, session: Session, visitor: Visitor) -> list[str]:
        """Replaces the recovery codes and returns the new ones. Raises Refused("invalid_request") if the person has no
        second step."""
        codes, digests = new_recovery_codes()
        reply = await self._run("renew_recovery", session, {}, digests=json.dumps(digests), **visitor.fields())
        if reply.word == "absent":
            raise Refused(
                "invalid_request",
                Phrase(
                    "You can have recovery codes only with an authenticator app or a passkey. Add one of those first."
                ),
            )
        return codes

    async def challenge(self, session: Session) -> str:
        """A challenge for a new passkey. Raises SignedOut, Unproved."""
        if not (await self.of(session)).proved:
            raise Unproved
        return await self._challenges.issue(session.user, REGISTER)

    async def add_passkey(
        self,
        session: Session,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        name: str,
        visitor: Visitor,
    ) -> Added:
        """Adds a passkey. Raises Refused("access_denied") for an invalid answer, Refused("invalid_request") beyond the
        most passkeys, Refused("temporarily_unavailable") while too many answers are being checked,
        Refused("rate_limited") while too many of this person's are."""
        opened = self._challenges.open(session.user, REGISTER, challenge)
        made = await self._checks.check_new(session.user, relying_party, opened.text, answer, name)
        reply, added = await self._add(
            "add_passkey",
            session,
            {"used": opened.used},
            credential=made.credential,
            facts=made.facts,
            count=made.counter,
            issued=opened.issued,
            lasts=CHALLENGE,
            most=MOST,
            **visitor.fields(),
        )
        if reply.word == "used":
            raise Refused("access_denied", Phrase("That took too long. Try again."))
        if reply.word == "present":
            raise Refused("invalid_request", Phrase("You already have this passkey."))
        if reply.word == "full":
            raise Refused(
                "invalid_request",
                Phrase(
                    "You have %(most)s passkeys, and that's the limit. Remove one that you no longer use.", most=MOST
                ),
            )
        return added

    async def remove_passkey(self, session: Session, credential: str, visitor: Visitor) -> None:
        """Removes a passkey. Raises Refused("not_found")."""
        reply = await self._run("remove_passkey", session, {}, credential=credential, **visitor.fields())
        if reply.word == "not_found":
            raise Refused("not_found", Phrase("We couldn't find that passkey. It may already be removed."))

    async def rename_passkey(self, session: Session, credential: str, name: str, visitor: Visitor) -> None:
        """Gives a passkey another name. Raises Refused("not_found")."""
        found = await self._scripts.run("read_passkey", keys.person(session.user), credential=credential)
        before = b"" if found.word == "unknown" else found.raw("facts")
        reply = await self._run(
            "rename_passkey",
            session,
            {},
            credential=credential,
            before=before,
            facts=renamed(before, name) if before else b"",
            **visitor.fields(),
        )
        if reply.word == "not_found":
            raise Refused("not_found", Phrase("We couldn't find that passkey. It may already be removed."))
