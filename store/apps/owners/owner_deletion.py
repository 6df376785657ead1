"""Deletion of an app or an API by its owner, who re-authenticates as for the deletion of an account."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from store.accounts.signin.factors import OwnFactors
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty
from store.accounts.signin.reauth import Reauth, ReauthFailed
from store.accounts.signin.sessions import Session, Sessions
from store.names import same_name
from store.phrases import Phrase
from store.results import Profile, Visitor, Warned


class OwnerDeletionForm(NamedTuple):
    """The typed fields: the name of the app or API confirms the deletion; `code` may be empty."""

    name: str
    password: str
    code: str


class Possessed(Protocol):
    """A registration of an app or an API."""

    @property
    def name(self) -> str:
        """What people see."""

    @property
    def client_id(self) -> str:
        """Its id."""


R = TypeVar("R", bound=Possessed)
R_co = TypeVar("R_co", bound=Possessed, covariant=True)


class Possession(Protocol[R_co]):
    """A person's apps, or their APIs."""

    async def find(self, session: Session, client_id: str) -> tuple[Profile, R_co]:
        """One of them. Raises SignedOut, Refused("not_found")."""

    async def delete(self, session: Session, client_id: str, visitor: Visitor) -> None:
        """Deletes one of them. Raises SignedOut, Unproved, Refused("not_found")."""


class Ended(NamedTuple, Generic[R]):
    """A registration whose tokens are dead, the new cookie of its owner's session, and the addresses for the
    warning."""

    registration: R
    cookie: str
    warned: Warned


class OwnerDeletion(Generic[R]):
    """Deletes apps, or APIs, of a signed-in owner; `noun` says which. Each method raises SignedOut, and
    Refused("not_found") for others' ones."""

    def __init__(
        self, noun: str, owned: Possession[R], sessions: Sessions, factors: OwnFactors, reauth: Reauth
    ) -> None:
        self._noun = noun
        self._owned = owned
        self._sessions = sessions
        self._factors = factors
        self._reauth = reauth

    async def challenge(self, session: Session, client_id: str) -> tuple[str, list[str]]:
        """A passkey challenge for this deletion, and the person's passkeys that may answer it."""
        await self._owned.find(session, client_id)
        return await self._reauth.challenge(session, self._purpose(client_id))

    async def with_password(
        self, session: Session, client_id: str, typed: OwnerDeletionForm, visitor: Visitor
    ) -> Ended[R]:
        """Deletes after a check of the password and, if the person has a second step, a code; without either, after a
        sign-in elsewhere. Raises ReauthFailed, Refused("rate_limited"), HasherBusy."""
        meant = await self._meant(session, client_id, typed.name)
        if typed.password or typed.code:
            cookie = await self._reauth.with_password(session, typed.password, typed.code, visitor)
        else:
            cookie = await self._reauth.with_proof(session)
        return await self._end(meant, cookie, visitor)

    async def with_passkey(
        self,
        session: Session,
        client_id: str,
        typed: str,
        relying_party: RelyingParty,
        challenge: str | None,
        answer: PasskeyResponse,
        visitor: Visitor,
    ) -> Ended[R]:
        """Deletes after the answer of a passkey that verified its holder. Raises ReauthFailed."""
        meant = await self._meant(session, client_id, typed)
        purpose = self._purpose(client_id)
        cookie = await self._reauth.with_passkey(session, relying_party, challenge, answer, visitor, purpose=purpose)
        return await self._end(meant, cookie, visitor)

    async def _meant(self, session: Session, client_id: str, typed: str) -> R:
        """The registration. Raises ReauthFailed unless its name was typed."""
        _, meant = await self._owned.find(session, client_id)
        if not same_name(typed, meant.name):
            raise ReauthFailed("confirm", Phrase("That’s not its name."))
        return meant

    async def _end(self, meant: R, cookie: str, visitor: Visitor) -> Ended[R]:
        # The session has a new id now, which the rest uses.
        session = self._sessions.open(cookie)
        assert session is not None
        await self._owned.delete(session, meant.client_id, visitor)
        return Ended(meant, cookie, (await self._factors.of(session)).warned)

    def _purpose(self, client_id: str) -> str:
        return f"delete-{self._noun.lower()}:{client_id}"
