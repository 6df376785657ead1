"""Sign-in with a second step after the password, and with a passkey alone."""

from __future__ import annotations

import json
from typing import NamedTuple

from store import keys
from store.accounts.links import FIRST_FACTOR, Link
from store.accounts.signin.devices import Device
from store.accounts.signin.factors import MOST_UNDOS, Added, Challenges
from store.accounts.signin.guesses import guessed_by, refuse_guess
from store.accounts.signin.passkey_thread import PasskeyThread
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty, credentials_of, decode, encode
from store.accounts.signin.sessions import Session, Sessions, SignedIn
from store.accounts.signin.totp import TotpSecrets, new_recovery_codes, read_typed
from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.errors import StoreError
from store.lifetimes import CHALLENGE, SECOND_STEP, SECOND_STEP_SETUP, UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Suspended
from store.results import Visitor

SIGN_IN = "sign-in"
SET_UP = "set-up"
HAS_STEP = Phrase("Your account already has two-step verification. Sign in with it.")
TOO_LATE = Phrase("That took too long. Try again.")
_PASSKEY = Phrase("We don't recognize that passkey. Sign in with your password instead.")


class Half(NamedTuple):
    """A sign-in whose password was right; not a session. It has the person, the session epoch at that time, the time
    (epoch ms), the first session epoch whose known devices are still known, empty if an earlier release began the
    sign-in, and `first`: how it began, `pwd` or `up` (at another server)."""

    user: str
    session_epoch: str
    at: str
    devices_since: str = ""
    first: str = "pwd"

    def knows(self, device: Device | None) -> bool:
        """Whether a browser is a known device of the person, apart from its age, which the store checks. No I/O."""
        if device is None or device.user != self.user:
            return False
        since = int(self.devices_since or self.session_epoch)
        return since <= int(device.session_epoch) <= int(self.session_epoch)


class SecondStepOptions(NamedTuple):
    """The possible second steps: a code of the authenticator app with the sealed `secret`, or one of these passkeys."""

    now: int
    secret: bytes | None
    credentials: list[str]


class SecondStep:
    """Finishes sign-ins. Every method raises SignedOut if the sign-in has expired: 5 minutes after the password, or
    after a change of the password, the person's status or the session epoch."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        secrets: TotpSecrets,
        challenges: Challenges,
        sessions: Sessions,
        checks: PasskeyThread,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._secrets = secrets
        self._challenges = challenges
        self._sessions = sessions
        self._checks = checks

    def open(self, text: str | None) -> Half | None:
        """The sign-in in a sealed text, or None for a forged or foreign text. No I/O."""
        token = self._sealer.open(TokenKind.SECOND_STEP, text) if text else None
        return Half(token.user, *token.client.split(" ")) if token else None

    async def options(self, half: Half) -> SecondStepOptions:
        """The second steps that the person may answer with."""
        return await self._read(half, SECOND_STEP)

    async def with_code(
        self, half: Half, code: str, visitor: Visitor, device: Device | None = None, *, kept: bool = True
    ) -> SignedIn:
        """Starts a session for a code of the app or a recovery code. Raises WrongCode for a wrong or used code, or if
        no code counts any more; Refused("rate_limited") during a pause, KeyMissing without the secret's key."""
        options = await self.options(half)
        typed = self._secrets.typed(half.user, code, options.secret, options.now)
        session = Session(half.user, new_id(), kept)
        reply = await self._scripts.run(
            "finish_with_code",
            session.keys(),
            session_id=session.session_id,
            session_epoch=half.session_epoch,
            at=half.at,
            lasts=SECOND_STEP,
            secret=options.secret or b"",
            step=typed.step,
            digest=typed.digest,
            method="otp" if half.first == "pwd" else f"{half.first}+otp",
            **guessed_by(device, half.user),
            idle=self._sessions.idle,
            lifetime=self._sessions.lasts(session),
            **self._sessions.room(session.user),
            **visitor.fields(),
        )
        _refuse_over(reply)
        refuse_guess(reply)
        return self._sessions.signed_in(session, reply, half.session_epoch, device)

    async def start_setup(self, half: Half) -> str:
        """A new secret for an authenticator app, sealed for a form: unused until one of its codes is right. Raises
        Refused("invalid_request") if the person has a second step."""
        await self._now_for_setup(half)
        return encode(self._secrets.make(half.user))

    def open_secret(self, half: Half, sealed: str) -> bytes:
        """Opens the secret that a form sends back. Raises Refused("invalid_request") for a forged one."""
        try:
            return self._secrets.open(half.user, decode(sealed))
        except (ValueError, StoreError):
            raise Refused("invalid_request", Phrase("This form has expired. Start again.")) from None

    async def set_up(
        self, half: Half, sealed: str, code: str, visitor: Visitor, device: Device | None = None, *, kept: bool = True
    ) -> tuple[SignedIn, Added]:
        """Starts a session for the first code of a new authenticator app. Raises Refused: "access_denied" for a wrong
        code, "invalid_request" for a forged secret, and if the person has a second step."""
        typed = read_typed(code, self.open_secret(half, sealed), await self._now_for_setup(half))
        if not typed.step:
            raise Refused("access_denied", Phrase("That code is wrong or was already used. Enter the code shown now."))
        return await self._finish_setup(
            "finish_with_setup",
            half,
            Session(half.user, new_id(), kept),
            {},
            visitor,
            device,
            secret=decode(sealed),
            step=typed.step,
            method="otp" if half.first == "pwd" else f"{half.first}+otp",
        )

    async def setup_challenge(self, half: Half) -> str:
        """A challenge for the first passkey of this person. Raises Refused("invalid_request") if the person has a
        second step."""
        await self._now_for_setup(half)
        return await self._challenges.issue(half.user, SET_UP)

    async def set_up_passkey(
        self,
        half: Half,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        name: str,
        visitor: Visitor,
        device: Device | None = None,
        *,
        kept: bool = True,
    ) -> tuple[SignedIn, Added]:
        """Starts a session for a person's first passkey, which the browser made. Raises Refused: "access_denied" for an
        invalid answer, "invalid_request" if the person has a second step, "temporarily_unavailable" while too many
        answers are being checked, "rate_limited" while too many of this person's are."""
        opened = self._challenges.open(half.user, SET_UP, challenge)
        await self._now_for_setup(half)
        made = await self._checks.check_new(half.user, relying_party, opened.text, answer, name)
        return await self._finish_setup(
            "finish_with_new_passkey",
            half,
            Session(half.user, new_id(), kept),
            {"used": opened.used},
            visitor,
            device,
            credential=made.credential,
            facts=made.facts,
            count=made.counter,
            issued=opened.issued,
            challenge_lasts=CHALLENGE,
            method=f"{half.first}+passkey",
        )

    async def _finish_setup(
        self,
        name: str,
        half: Half,
        session: Session,
        more: dict[str, str],
        visitor: Visitor,
        device: Device | None,
        **args: str | bytes | int,
    ) -> tuple[SignedIn, Added]:
        """Runs the script that adds a person's first second step and starts the session. Raises SignedOut, Refused."""
        (codes, digests), undo_id = new_recovery_codes(), new_id()
        reply = await self._scripts.run(
            name,
            {**session.keys(), **more},
            session_id=session.session_id,
            session_epoch=half.session_epoch,
            at=half.at,
            lasts=SECOND_STEP_SETUP,
            digests=json.dumps(digests),
            undo_id=undo_id,
            undo_lasts=UNDO_LINK,
            undo_most=MOST_UNDOS,
            idle=self._sessions.idle,
            lifetime=self._sessions.lasts(session),
            **self._sessions.room(session.user),
            **visitor.fields(),
            **args,
        )
        _refuse_over(reply)
        if reply.word == "present":
            raise Refused("invalid_request", HAS_STEP)
        if reply.word == "used":
            raise Refused("access_denied", TOO_LATE)
        email = reply.text("undo")
        undo = self._sealer.seal(Token(TokenKind.UNDO, half.user, email, undo_id, FIRST_FACTOR)) if email else ""
        added = Added(codes if reply.number("begun") else [], Link(undo, email) if email else None)
        return self._sessions.signed_in(session, reply, half.session_epoch, device), added

    async def _now_for_setup(self, half: Half) -> int:
        """The store's time, epoch ms. Raises SignedOut, Refused("invalid_request") if the person has a second step."""
        options = await self._read(half, SECOND_STEP_SETUP)
        if options.secret or options.credentials:
            raise Refused("invalid_request", HAS_STEP)
        return options.now

    async def _read(self, half: Half, lasts: int) -> SecondStepOptions:
        """The second steps of a person whose half sign-in is younger than `lasts` ms. Raises SignedOut."""
        reply = await self._scripts.run(
            "read_second_step",
            keys.person(half.user),
            session_epoch=half.session_epoch,
            at=half.at,
            lasts=lasts,
        )
        _refuse_over(reply)
        return SecondStepOptions(
            reply.number("now"), reply.raw("secret") or None, credentials_of(reply.rows("credentials"))
        )

    async def challenge(self, half: Half | None) -> str:
        """A challenge for a passkey of this person or, for None, of anybody."""
        return await self._challenges.issue(half.user if half else NOBODY, SIGN_IN)

    async def with_passkey(
        self,
        half: Half | None,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        visitor: Visitor,
        device: Device | None = None,
        *,
        kept: bool = True,
    ) -> SignedIn:
        """Starts a session for the answer of a passkey. Without a password before, the answer itself names its person.
        Raises Refused("access_denied"), Suspended, Refused("temporarily_unavailable") while too many answers are being
        checked, Refused("rate_limited") while too many of this person's are."""
        opened = self._challenges.open(half.user if half else NOBODY, SIGN_IN, challenge)
        user = half.user if half else answer.user
        if user is None or (answer.user is not None and answer.user != user):
            raise Refused("access_denied", _PASSKEY)
        if half:
            await self.options(half)
        found = await self._scripts.run("read_passkey", keys.person(user), credential=answer.credential)
        if found.word == "unknown":
            raise Refused("access_denied", _PASSKEY)
        try:
            count = await self._checks.check_use(user, relying_party, opened.text, answer, found.raw("facts"))
        except Refused as refusal:
            if refusal.code == "access_denied":
                self._sessions.security.note("passkey_refused", person=user, detail="answer")
            raise
        if found.word == "suspended":
            raise Suspended(found.text("suspended_reason"))
        session = Session(user, new_id(), kept)
        session_epoch = half.session_epoch if half else found.text("session_epoch")
        reply = await self._scripts.run(
            "finish_with_passkey",
            # The mark is with the person who answers, whoever the challenge was for.
            {**session.keys(), "used": keys.used_challenge(user, opened.id)},
            session_id=session.session_id,
            session_epoch=session_epoch,
            credential=answer.credential,
            count=count,
            method=f"{half.first}+passkey" if half else "passkey",
            issued=opened.issued,
            lasts=CHALLENGE,
            idle=self._sessions.idle,
            lifetime=self._sessions.lasts(session),
            **self._sessions.room(session.user),
            **visitor.fields(),
        )
        _refuse_over(reply)
        if reply.word == "used":
            raise Refused("access_denied", TOO_LATE)
        if reply.word == "regressed":
            raise Refused(
                "access_denied", Phrase("That passkey may have been copied, so we refused it. Sign in a different way.")
            )
        return self._sessions.signed_in(session, reply, session_epoch, device)


def _refuse_over(reply: Reply) -> None:
    if reply.word == "over":
        raise SignedOut
