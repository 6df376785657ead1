"""The end of an account by its person, who shows first, as at sign-in, who they are: with the password, where they have
a second step with that too, or with a passkey alone."""

from __future__ import annotations

from typing import NamedTuple

from store.accounts.people import People
from store.accounts.signin.factors import OwnFactors
from store.accounts.signin.passkeys import Answer, Party
from store.accounts.signin.reauth import Confirming, NotShown
from store.accounts.signin.sessions import Session
from store.names import normalise_email
from store.results import Visitor

LEAVE = "leave"


class Typed(NamedTuple):
    """What was typed: the account's address, which says that the deletion is meant; `code` may be empty."""

    email: str
    password: str
    code: str


class Leaving:
    """Each method raises SignedOut. What deletes the account returns where that is to be told, as `warned` of
    `Profile`."""

    def __init__(self, people: People, factors: OwnFactors, confirming: Confirming) -> None:
        self._people = people
        self._factors = factors
        self._confirming = confirming

    async def challenge(self, session: Session) -> tuple[str, list[str]]:
        """A challenge for a passkey, and the passkeys of the person that may answer it."""
        return await self._confirming.challenge(session, LEAVE)

    async def with_password(self, session: Session, typed: Typed, visitor: Visitor) -> tuple[str, ...]:
        """Deletes the account for its password and, where the person has a second step, a code, as
        `Confirming.with_password` takes them. Raises NotShown, Refused("rate_limited"), HasherBusy."""
        warned = await self._check_meant(session, typed.email)
        await self._confirming.with_password(session, typed.password, typed.code, visitor, moved=False)
        await self._people.delete(session.user)
        return warned

    async def with_passkey(
        self, session: Session, typed: str, party: Party, challenge: str | None, answer: Answer, visitor: Visitor
    ) -> tuple[str, ...]:
        """Deletes the account for the answer of a passkey, which checked who holds it. Raises NotShown."""
        warned = await self._check_meant(session, typed)
        await self._confirming.with_passkey(session, party, challenge, answer, visitor, purpose=LEAVE, moved=False)
        await self._people.delete(session.user)
        return warned

    async def _check_meant(self, session: Session, typed: str) -> tuple[str, ...]:
        """Where the person is warned. Raises NotShown unless the account's address was typed, however it is spelt."""
        try:
            factors = await self._factors.of(session)
            if normalise_email(typed) == factors.email:
                return factors.warned
        except ValueError:
            pass
        raise NotShown("email", "That is not the e-mail address of this account.")
