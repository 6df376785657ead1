"""Deletion of an app by its owner, who re-authenticates as for the deletion of an account."""

from __future__ import annotations

from typing import NamedTuple

from store.accounts.signin.factors import OwnFactors
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty
from store.accounts.signin.reauth import Reauth, ReauthFailed
from store.accounts.signin.sessions import Session, Sessions
from store.apps.owned import OwnedApps
from store.apps.registration import Registration
from store.names import same_name
from store.results import Visitor


class AppDeletionForm(NamedTuple):
    """The typed fields: the app's name confirms the deletion; `code` may be empty."""

    name: str
    password: str
    code: str


class Ended(NamedTuple):
    """An app whose tokens are dead, the new cookie of its owner's session, and the addresses for the warning."""

    app: Registration
    cookie: str
    warned: tuple[str, ...]


class AppEnding:
    """Deletes apps of a signed-in owner. Each method raises SignedOut, and Refused("not_found") for others' apps."""

    def __init__(self, owned: OwnedApps, sessions: Sessions, factors: OwnFactors, reauth: Reauth) -> None:
        self._owned = owned
        self._sessions = sessions
        self._factors = factors
        self._reauth = reauth

    async def challenge(self, session: Session, client_id: str) -> tuple[str, list[str]]:
        """A passkey challenge for the deletion of this app, and the person's passkeys that may answer it."""
        await self._owned.find(session, client_id)
        return await self._reauth.challenge(session, _purpose(client_id))

    async def with_password(self, session: Session, client_id: str, typed: AppDeletionForm, visitor: Visitor) -> Ended:
        """Deletes the app after a check of the password and, if the person has a second step, a code. Raises
        ReauthFailed, Refused("rate_limited"), HasherBusy."""
        app = await self._meant(session, client_id, typed.name)
        cookie = await self._reauth.with_password(session, typed.password, typed.code, visitor)
        return await self._end(app, cookie, visitor)

    async def with_passkey(
        self,
        session: Session,
        client_id: str,
        typed: str,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        visitor: Visitor,
    ) -> Ended:
        """Deletes the app after the answer of a passkey that verified its holder. Raises ReauthFailed."""
        app = await self._meant(session, client_id, typed)
        purpose = _purpose(client_id)
        cookie = await self._reauth.with_passkey(session, relying_party, challenge, answer, visitor, purpose=purpose)
        return await self._end(app, cookie, visitor)

    async def _meant(self, session: Session, client_id: str, typed: str) -> Registration:
        """The app. Raises ReauthFailed unless its name was typed."""
        _, app = await self._owned.find(session, client_id)
        if not same_name(typed, app.name):
            raise ReauthFailed("confirm", "That is not the app's name.")
        return app

    async def _end(self, app: Registration, cookie: str, visitor: Visitor) -> Ended:
        # The session has a new id now, which the rest uses.
        session = self._sessions.open(cookie)
        assert session is not None
        await self._owned.delete(session, app.client_id, visitor)
        return Ended(app, cookie, (await self._factors.of(session)).warned)


def _purpose(client_id: str) -> str:
    return f"delete-app:{client_id}"
