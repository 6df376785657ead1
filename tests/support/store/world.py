"""A person, a session and an app in a store: the start of store tests, without HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable
from typing import Any

from store import keys
from store.accounts.links import Link
from store.accounts.signin.sessions import Session
from store.apps.registration import Registration
from store.crypto.seal import Token, TokenKind
from store.names import SCOPES as ALL_SCOPES
from store.oauth.authorizations import AuthorizationRequest, Pending
from store.oauth.tokens import TokenResponse, s256
from store.refused import Refused, SignedOut, UnknownUser
from store.results import Caller, Visitor
from store.wiring import Store

PASSWORD = "correct horse battery"
CALLBACK = "https://app.example/cb"
VERIFIER = "v" * 43
SCOPES = ("profile", "data:read", "data:write")
VISITOR = Visitor("192.0.2.7", "Testing/1.0")

_numbers = itertools.count(1)


class World:
    """One signed-in person and one app on an open store; a store can have several worlds."""

    store: Store
    email: str
    user: str
    session: Session
    app: Registration
    secret: str | None
    codes: list[str]  # recovery codes that are left
    undo: Link | None = None  # of the factor that was added last

    @classmethod
    async def make(cls, store: Store, **app: Any) -> World:
        """A new world; `app` has fields of its registration."""
        self = cls()
        self.store = store
        self.codes = []
        number = next(_numbers)
        self.email = f"person{number}@example.com"
        self.user = await self.person(self.email)
        self.session = await self.sign_in()
        self.app, self.secret = await self.register(f"app-{number}", **app)
        return self

    async def person(self, email: str) -> str:
        """Another person's user id."""
        return await self.store.people.create(
            email, "Ada Lovelace", PASSWORD, verified=True, event="signed_up", visitor=VISITOR
        )

    async def register(self, client_id: str, **fields: Any) -> tuple[Registration, str | None]:
        """Another app."""
        facts: dict[str, Any] = {"name": "An App", "redirect_uris": (CALLBACK,), "scopes": SCOPES, **fields}
        return await self.store.apps.create(Registration(client_id, **facts))

    async def sign_in(self, email: str | None = None, password: str = PASSWORD) -> Session:
        """A session from a password sign-in."""
        credentials = await self.store.people.verify(email or self.email, password)
        if credentials is None:
            raise SignedOut
        session = self.store.sessions.open((await self.store.sessions.start(credentials, VISITOR)).cookie)
        assert session is not None
        return session

    def request(self, scopes: tuple[str, ...] = SCOPES, app: Registration | None = None) -> AuthorizationRequest:
        """An authorization request with PKCE."""
        app = app or self.app
        place = app.place(CALLBACK)
        return AuthorizationRequest(app.client_id, CALLBACK, scopes, "a-state", s256(VERIFIER), app.terms, place)

    async def pending(self, scopes: tuple[str, ...] = SCOPES, app: Registration | None = None) -> str:
        """The id of a request that waits for the person's decision."""
        begun = await self.store.authorizations.begin(self.session, self.request(scopes, app), always_ask=True)
        assert isinstance(begun, Pending)
        return begun.request_id

    async def code(
        self,
        scopes: tuple[str, ...] = SCOPES,
        app: Registration | None = None,
        ticked: tuple[str, ...] | None = None,
    ) -> str:
        """A code from the person's consent: to all of the scopes, or to those `ticked`."""
        decision = await self.store.authorizations.decide(
            self.session, app or self.app, await self.pending(scopes, app), allow=True, scopes=ticked, visitor=VISITOR
        )
        assert decision.code is not None
        return decision.code

    async def exchange(self, code: str, app: Registration | None = None) -> TokenResponse:
        """Exchanges a code as its app does."""
        return await self.store.tokens.exchange(app or self.app, code, CALLBACK, VERIFIER)

    async def refresh(self, refresh_token: str, *scopes: str) -> TokenResponse:
        """Rotates a refresh token."""
        return await self.store.tokens.refresh(self.app, refresh_token, scopes)

    async def tokens(self, scopes: tuple[str, ...] = SCOPES, app: Registration | None = None) -> TokenResponse:
        """Tokens, after the whole flow from the authorization request."""
        return await self.exchange(await self.code(scopes, app), app)

    async def revoke_app(self) -> None:
        """The person disconnects the app."""
        await self.store.grants.revoke(self.session, self.app.client_id, VISITOR, keeps_out=True)

    def caller(self, access_token: str) -> Caller:
        """The person that an access token belongs to."""
        token = self.store.tokens.open_access(access_token)
        assert token is not None
        return Caller.of(token, ALL_SCOPES)

    async def lives(self, access_token: str) -> bool:
        """Whether an access token works."""
        refusal = await refusal_of(self.store.identity.read(self.caller(access_token), " ".join(SCOPES)))
        assert refusal in (None, "invalid_token")
        return refusal is None

    async def fresh_window(self) -> None:
        """Empties the person's window, so that a test may make more than a hundred requests."""
        await self.store.client.delete(keys.limit(self.user, "oauth"))

    async def events(self) -> list[str]:
        """The audit trail, oldest first."""
        _, entries = await self.store.sessions.activity(self.session)
        return [entry.event for entry in reversed(entries)]

    def opened(self, kind: TokenKind, text: str) -> Token:
        """The content of one of our sealed strings."""
        token = self.store.sealer.open(kind, text)
        assert token is not None
        return token

    def rows(self, refresh_token: str) -> dict[str, str]:
        """The keys of the user, grant, family and access token that belong to a refresh token."""
        token = self.opened(TokenKind.REFRESH, refresh_token)
        return keys.token(token.user, token.client, token.id, token.generation)


async def to_change(store: Store, session: Session, new: str) -> Link:
    """The link for a new address, proved by the password or by the session's re-authentication."""
    profile = await store.sessions.profile(session)
    credentials = await store.people.credentials(profile.email)
    assert credentials is not None
    return await store.links.to_change(session, profile.email, new, credentials.password, VISITOR)


async def every_key(client: Any, pattern: str = "*") -> list[bytes]:
    """The names of a store's keys; in a cluster, those on every node."""
    return [key async for key in client.scan_iter(match=pattern, count=1000)]


async def refusal_of(call: Awaitable[object]) -> str | None:
    """The code of a refused call; None if it was not refused."""
    try:
        await call
    except Refused as refused:
        return refused.code
    except UnknownUser as unknown:
        return unknown.refusal.code
    return None
