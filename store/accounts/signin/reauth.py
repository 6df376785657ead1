"""Re-authentication before a change of how a person signs in, and before the deletion of the account.

It works as at sign-in: with the password and, if there is one, the second step, or with a passkey alone.
"""

from __future__ import annotations

from contextlib import suppress

from store import keys
from store.accounts.identities import UpstreamIdentity
from store.accounts.people import Credentials, People
from store.accounts.signin.devices import Devices
from store.accounts.signin.factors import Challenges, OwnFactors
from store.accounts.signin.guesses import GuessNotice, WrongCode, guessed_by, refuse_guess
from store.accounts.signin.passkey_thread import PasskeyThread
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty
from store.accounts.signin.sessions import Session, Sessions
from store.accounts.signin.totp import TotpSecrets
from store.crypto.seal import new_id
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.lifetimes import CHALLENGE, OWN_PASSKEY, OWN_PASSWORD, PROOF
from store.limits import OWN_LIMITS, RateLimits, own_windows
from store.phrases import Phrase
from store.refused import Refused, SignedOut, let_in, refuse_signed_out
from store.results import Visitor

REAUTH = "confirm"
_WRONG_PASSWORD = Phrase("Incorrect password.")
NOT_YOURS = Phrase(
    "You can't confirm with that account. Either it isn't connected to yours here, or you have a "
    "password: then use the password."
)
_PASSKEY = Phrase("That passkey can't be used here. Try again.")


class ReauthFailed(Exception):
    """The re-authentication failed. `part`: the wrong part of the form, `email`, `password`, `code` or `passkey`;
    `notice`: the notice to mail to the person, if one is due."""

    def __init__(self, part: str, text: str, notice: GuessNotice | None = None) -> None:
        super().__init__(part)
        self.part = part
        self.text = text
        self.notice = notice


class Reauth:
    """Re-authenticates a signed-in person, and notes that in the session: with a second step it allows one change
    within 10 minutes. A session that is `moved` gets another id, so its previous cookie is worthless. Each method
    raises SignedOut."""

    def __init__(
        self,
        scripts: Scripts,
        people: People,
        sessions: Sessions,
        factors: OwnFactors,
        secrets: TotpSecrets,
        challenges: Challenges,
        limits: RateLimits,
        checks: PasskeyThread,
        devices: Devices,
    ) -> None:
        self._devices = devices
        self._scripts = scripts
        self._people = people
        self._sessions = sessions
        self._factors = factors
        self._secrets = secrets
        self._challenges = challenges
        self._limits = limits
        self._checks = checks

    async def challenge(self, session: Session, purpose: str = REAUTH) -> tuple[str, list[str]]:
        """A challenge for a passkey, and the person's passkeys that may answer it."""
        factors = await self._factors.of(session)
        challenge = await self._challenges.issue(session.user, purpose)
        return challenge, [passkey.credential for passkey in factors.passkeys]

    async def check_password(self, session: Session, email: str, password: str, visitor: Visitor) -> Credentials | None:
        """The credentials of the signed-in person with the address `email`, if the password is right. A wrong password
        gives None and is noted in the activity. Raises Refused("rate_limited"), HasherBusy, SignedOut."""
        async with await self._limits.own_password(session.user, session.session_id):
            found = await self._people.verify(email, password, known=True)
        if found is None or found.user != session.user:
            await self._sessions.mistyped(session, visitor)
            return None
        return found

    async def with_password(
        self, session: Session, password: str, code: str, visitor: Visitor, *, moved: bool = True
    ) -> str:
        """Re-authenticates with the password and, if there is a second step, a code of the authenticator app or a
        recovery code; returns the session's new cookie. A session that began with the last recovery code needs no code
        for 10 minutes, because none is left. A person without a password, who signed in at another server instead a
        moment ago, enters a code alone. Raises ReauthFailed, Refused("rate_limited"), HasherBusy."""
        factors = await self._factors.of(session)
        if factors.by_provider:
            credentials = await self._people.credentials(factors.email)
        else:
            credentials = await self.check_password(session, factors.email, password, visitor)
        if credentials is None:
            raise ReauthFailed("password", _WRONG_PASSWORD)
        typed = self._secrets.typed(session.user, code, factors.secret, factors.now)
        after = Session(session.user, new_id(), session.kept) if moved else session
        reply = await self._scripts.run(
            "prove_with_code",
            _keys(session, after),
            password=credentials.password,
            secret=factors.secret or b"",
            step=typed.step,
            digest=typed.digest,
            **guessed_by(self._devices.open(visitor.device), session.user),
            session_id=session.session_id,
            new_id=after.session_id,
            idle=self._sessions.idle,
            proof=PROOF,
            elsewhere="1" if factors.by_provider else "0",
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "stale":
            raise SignedOut
        try:
            refuse_guess(reply)
        except WrongCode as wrong:
            raise ReauthFailed("code", wrong.description, wrong.notice) from None
        return self._sessions.seal(Session(session.user, reply.text("session_id"), session.kept))

    async def with_proof(self, session: Session) -> str:
        """Takes a sign-in at another server within 10 minutes, for this session, of a person with neither a password
        nor a second step; returns the session's cookie. Raises SignedOut, ReauthFailed."""
        factors = await self._factors.of(session)
        if not factors.proved_elsewhere:
            missing = _WRONG_PASSWORD if factors.has_password else Phrase("Confirm it’s you")
            raise ReauthFailed("code" if factors.by_provider else "password", missing)
        return self._sessions.seal(session)

    async def with_identity(self, session: Session, identity: UpstreamIdentity) -> str:
        """Re-authenticates a person who has neither a password nor a passkey, and signed in with this identity just
        now; returns the session's new cookie. With an authenticator app, a code must follow. Raises
        Refused("access_denied") for another person's identity."""
        after = Session(session.user, new_id(), session.kept)
        reply = await self._scripts.run(
            "prove_with_identity",
            _keys(session, after),
            name=identity.name,
            text=identity.text,
            session_id=session.session_id,
            new_id=after.session_id,
            idle=self._sessions.idle,
        )
        refuse_signed_out(reply)
        if reply.word != "ok":
            self._sessions.security.note("confirmation_refused", person=session.user, detail="provider")
            raise Refused("access_denied", NOT_YOURS)
        return self._sessions.seal(after)

    async def with_passkey(
        self,
        session: Session,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        visitor: Visitor,
        *,
        purpose: str = REAUTH,
        moved: bool = True,
    ) -> str:
        """Re-authenticates with the answer of a passkey that verified its holder; returns the session's new cookie.
        Raises ReauthFailed, Refused("rate_limited") after too many wrong passwords and answers, or too many right
        answers, Refused("temporarily_unavailable") while too many answers are being checked."""
        windows = own_windows(session.user, session.session_id)
        found = await self._scripts.run(
            "try_passkey",
            {**session.keys(), **windows},
            credential=answer.credential,
            idle=self._sessions.idle,
            **OWN_LIMITS,
        )
        refuse_signed_out(found)
        if found.word == "rate_limited":
            let_in(OWN_PASSWORD, found)
        if found.word == "unknown" or answer.user not in (None, session.user):
            raise ReauthFailed("passkey", _PASSKEY)
        try:
            opened = self._challenges.open(session.user, purpose, challenge)
            count = await self._checks.check_use(session.user, relying_party, opened.text, answer, found.raw("facts"))
        except Refused as refusal:
            if refusal.code != "access_denied":
                with suppress(StoreError):
                    await self._limits.give_back(self._limits.of_session(session.user, session.session_id))
                raise
            self._sessions.security.note("passkey_refused", person=session.user, detail="answer")
            raise ReauthFailed("passkey", refusal.description) from None
        after = Session(session.user, new_id(), session.kept) if moved else session
        reply = await self._scripts.run(
            "prove_with_passkey",
            {
                **_keys(session, after),
                **windows,
                "used": opened.used,
                "confirmed": keys.limit(session.user, OWN_PASSKEY.name),
            },
            credential=answer.credential,
            count=count,
            issued=opened.issued,
            lasts=CHALLENGE,
            session_id=session.session_id,
            new_id=after.session_id,
            idle=self._sessions.idle,
            **OWN_LIMITS,
            most=OWN_PASSKEY.limit,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "rate_limited":
            let_in(OWN_PASSKEY, reply)
        if reply.word != "ok":
            raise ReauthFailed("passkey", _PASSKEY)
        return self._sessions.seal(after)


def _keys(session: Session, after: Session) -> dict[str, str]:
    return {**session.keys(), "new_session": keys.session(after.user, after.session_id)}
