"""The end of an account by its person, who shows first, as at sign-in, who they are: with the password, where they have
a second step with that too, or with a passkey alone."""

from __future__ import annotations

from typing import NamedTuple

from store import keys
from store.factors import Challenges, OwnFactors
from store.lifetimes import CHALLENGE, FACTOR
from store.limits import Limits
from store.names import normalise_email
from store.passkeys import Answer, Party, check_use
from store.people import People
from store.refused import Refused, SignedOut, let_in, refuse_signed_out
from store.results import Visitor
from store.scripts import Scripts
from store.sessions import Session
from store.totp import TotpSecrets, read_typed

LEAVE = "leave"
WRONG_PASSKEY = "That passkey could not be used here. Try again."


class NotShown(Exception):
    """Nothing was deleted: the `part` of the form (`email`, `password`, `code` or `passkey`) is not right."""

    def __init__(self, part: str, text: str) -> None:
        super().__init__(part)
        self.part = part
        self.text = text


class Typed(NamedTuple):
    """What was typed: the account's address, which says that the deletion is meant; `code` may be empty."""

    email: str
    password: str
    code: str


class Leaving:
    """Each method raises SignedOut. `idle` is the idle lifetime of a session in ms."""

    def __init__(
        self,
        scripts: Scripts,
        people: People,
        factors: OwnFactors,
        secrets: TotpSecrets,
        challenges: Challenges,
        limits: Limits,
        idle: int,
    ) -> None:
        self._scripts = scripts
        self._people = people
        self._factors = factors
        self._secrets = secrets
        self._challenges = challenges
        self._limits = limits
        self._idle = idle

    async def challenge(self, session: Session) -> tuple[str, list[str]]:
        """A challenge for a passkey, and the passkeys of the person that may answer it."""
        factors = await self._factors.of(session)
        challenge = await self._challenges.issue(session.user, LEAVE)
        return challenge, [passkey.credential for passkey in factors.passkeys]

    async def with_password(self, session: Session, typed: Typed, counted: str, visitor: Visitor) -> None:
        """Deletes the account for its password and, where the person has a second step, a code of the authenticator
        app or a recovery code; both are guessed at within the limits of sign-in, `counted` is the address those count.
        Raises NotShown, Refused("rate_limited"), HasherBusy."""
        factors = await self._factors.of(session)
        email = factors.email
        _check_address(typed.email, email)
        await self._limits.sign_in(counted, email)
        credentials = await self._people.verify(email, typed.password)
        if credentials is None or credentials.user != session.user:
            raise NotShown("password", "That is not your password.")
        secret = self._secrets.open(session.user, factors.secret) if factors.secret else None
        code = read_typed(typed.code, secret, factors.now)
        reply = await self._scripts.run(
            "prove_with_code",
            {**session.keys(), "window": keys.limit(session.user, FACTOR.name)},
            password=credentials.password,
            secret=factors.secret or b"",
            step=code.step,
            digest=code.digest,
            limit=FACTOR.limit,
            period=FACTOR.period,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "stale":
            raise SignedOut
        if reply.word == "rate_limited":
            let_in(FACTOR, reply)
        if reply.word == "wrong":
            raise NotShown("code", "That code is not right, or was used before.")
        await self._people.delete(session.user, email)

    async def with_passkey(
        self, session: Session, typed: str, party: Party, challenge: str | None, answer: Answer, visitor: Visitor
    ) -> None:
        """Deletes the account for the answer of a passkey, which checked who holds it. Raises NotShown."""
        email = (await self._factors.of(session)).email
        _check_address(typed, email)
        found = await self._scripts.run("read_passkey", keys.person(session.user), credential=answer.credential)
        if found.word == "unknown" or answer.user not in (None, session.user):
            raise NotShown("passkey", WRONG_PASSKEY)
        try:
            opened = self._challenges.open(session.user, LEAVE, challenge)
            count = check_use(party, opened.text, answer, found.raw("facts"))
        except Refused as refusal:
            raise NotShown("passkey", refusal.description) from None
        reply = await self._scripts.run(
            "prove_with_passkey",
            {**session.keys(), "used": opened.used},
            credential=answer.credential,
            count=count,
            issued=opened.issued,
            lasts=CHALLENGE,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word != "ok":
            raise NotShown("passkey", WRONG_PASSKEY)
        await self._people.delete(session.user, email)


def _check_address(typed: str, email: str) -> None:
    """Raises NotShown unless this is the account's address, however it is spelt."""
    try:
        if normalise_email(typed) == email:
            return
    except ValueError:
        pass
    raise NotShown("email", "That is not the e-mail address of this account.")
