"""Deletion of an account by its person, who first re-authenticates as at sign-in: with the password and, if they have
one, the second step, or with a passkey alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from store.accounts.people import People
from store.accounts.signin.factors import OwnFactors
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty
from store.accounts.signin.reauth import Reauth, ReauthFailed
from store.accounts.signin.sessions import Session
from store.names import normalise_email
from store.phrases import Phrase
from store.results import Visitor, Warned

PURPOSE = "leave"


class DeletionForm(NamedTuple):
    """The typed fields: the account's address confirms the deletion; `code` may be empty."""

    email: str
    password: str
    code: str


class AccountDeletion:
    """Deletes a signed-in person's account. `is_last_admin`: whether nobody else administers this server. Each method
    raises SignedOut. Methods that delete the account return whom to warn."""

    def __init__(
        self,
        people: People,
        factors: OwnFactors,
        reauth: Reauth,
        is_last_admin: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._is_last_admin = is_last_admin
        self._people = people
        self._factors = factors
        self._reauth = reauth

    async def challenge(self, session: Session) -> tuple[str, list[str]]:
        """A challenge for a passkey, and the person's passkeys that may answer it."""
        return await self._reauth.challenge(session, PURPOSE)

    async def with_password(self, session: Session, typed: DeletionForm, visitor: Visitor) -> Warned:
        """Deletes the account after a check of its password and, if the person has a second step, a code, as in
        `Reauth.with_password`; without either, after a sign-in elsewhere, as in `Reauth.with_proof`. Raises
        ReauthFailed, Refused("rate_limited"), HasherBusy."""
        warned = await self._check_meant(session, typed.email)
        if typed.password or typed.code:
            await self._reauth.with_password(session, typed.password, typed.code, visitor, moved=False)
        else:
            await self._reauth.with_proof(session)
        await self._people.delete(session.user)
        return warned

    async def with_passkey(
        self,
        session: Session,
        typed: str,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        visitor: Visitor,
    ) -> Warned:
        """Deletes the account after the answer of a passkey that verified its holder. Raises ReauthFailed."""
        warned = await self._check_meant(session, typed)
        await self._reauth.with_passkey(
            session, relying_party, challenge, answer, visitor, purpose=PURPOSE, moved=False
        )
        await self._people.delete(session.user)
        return warned

    async def _check_meant(self, session: Session, typed: str) -> Warned:
        """Whom to warn. Raises ReauthFailed unless the account's address was typed, in any form, and for the last
        admin of this server."""
        if await self._is_last_admin(session.user):
            raise ReauthFailed(
                "email", Phrase("You’re the last administrator here. Give that role to someone else first.")
            )
        try:
            factors = await self._factors.of(session)
            if normalise_email(typed) == factors.email:
                return factors.warned
        except ValueError:
            pass
        raise ReauthFailed("email", Phrase("That isn't the e-mail address of this account."))
