"""Callers: people, apps, and tokens of every kind, live and dead."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from dev.fuzz.issuers import trust
from dev.fuzz.target import Target
from store import keys
from store.accounts.links import Link
from store.accounts.signin.passkeys import decode
from store.accounts.signin.sessions import SecondStepNeeded, Session
from store.accounts.signin.totp import STEP, TotpSecrets, code_at
from store.apps.client_keys import registered_keys
from store.apps.registration import Registration
from store.crypto.jose.algorithms import ES256
from store.crypto.jose.private import PrivateKey
from store.crypto.seal import Token, TokenKind, new_id
from store.documents.documents import Conditions
from store.names import SCOPES
from store.oauth.authorizations import AuthorizationRequest, Pending
from store.oauth.resources import MCP
from store.oauth.tokens import TokenResponse, s256
from store.results import Caller, Visitor
from store.wiring import Store

PASSWORD, CALLBACK, VERIFIER = "correct horse battery", "https://app.example/callback", "v" * 43
READS = ("profile", "credits:read", "apps:read", "data:read")
"""Scopes that allow no change."""
CREDITS = 10**9
VISITOR = Visitor("192.0.2.7", "Fuzzing/1.0")


@dataclass
class Cast:
    """`bearers` are the headers of every kind of caller, by name. Each scope has its own app and token, because a later
    grant to one app takes scopes from the earlier grant."""

    store: Store
    ada: str = ""
    bea: str = ""
    app: Registration = field(init=False)
    key: PrivateKey = field(init=False)
    """The key of `key_app`, which proves itself by it."""
    key_app: Registration = field(init=False)
    signing: PrivateKey = field(init=False)
    """The server's own key, so that its readers take the signature of a wrong token for right."""
    base_url: str = ""
    secret: str = ""
    reader: str = ""
    """A live read-only access token."""
    assistant: str = ""
    """A live read-only access token for the MCP server."""
    everything: str = ""
    """A live access token with every scope."""
    operator_key: str = ""
    """A live key of an admin, for the management interface and SCIM."""
    auditor_key: str = ""
    """A live key with which nothing can be changed."""
    admin: str = ""
    """The cookie of a live session of an admin, who signed in with a second step."""
    session: str = ""
    ended: str = ""
    """Cookies of a live session and of a dead one."""
    bearers: dict[str, dict[str, str]] = field(default_factory=dict)
    carries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The scopes that have a live token."""

    @classmethod
    async def make(cls, target: Target) -> Cast:
        """All callers, created on an empty store."""
        cast = cls(target.store, base_url=target.base_url)
        cast.ada, cast.bea = await cast.person("ada@example.com"), await cast.person("bea@example.com")
        cast.app, secret = await cast.register("web-app")
        assert secret
        cast.secret = secret
        cast.key = PrivateKey.generate(ES256)
        jwks = registered_keys(orjson.dumps({"keys": [cast.key.public.to_jwk()]}))
        trust(target.site, "web-app", cast.key.public)
        facts = Registration("key-app", "An App", (CALLBACK,), SCOPES, private_key_jwt=True, jwks=jwks)
        cast.key_app, _ = await cast.store.apps.create(facts)
        await cast.store.credits.grant(cast.ada, CREDITS)
        await cast.store.signing_keys.published()  # the first reader of the set makes the keys
        cast.signing = (await cast.store.signing_keys.for_signing(ES256)).key
        cast.session, cast.ended = await cast.sign_in("ada@example.com"), cast.sealed(TokenKind.SESSION)
        _, cast.operator_key = await cast.store.operator_keys.create("admin", name="A key")
        _, cast.auditor_key = await cast.store.operator_keys.create("auditor", name="Another key")
        cast.admin = await cast.sign_in_admin("olive@example.com")
        live = await cast.mint("all-scopes", SCOPES)
        cast.everything = live.access_token
        await cast.keep("all-scopes", cast.ada)
        await cast.keep("reader", cast.bea)
        # Bea has no credits: an AI call with her token is read completely and then refused.
        cast.reader = (await cast.mint("reader", (*READS, "credits:spend"), cast.bea)).access_token
        cast.assistant = (await cast.mint("assistant", READS, cast.bea, api=MCP)).access_token
        cast.bearers = {"none": {}, "all scopes": bearer(live.access_token)}
        for scope in SCOPES:
            cast.bearers[scope] = bearer((await cast.mint(f"only-{scope.replace(':', '-')}", (scope,))).access_token)
        cast.bearers |= await cast._dead()
        cast.bearers |= {
            "another person's": bearer((await cast.mint("all-scopes", SCOPES, cast.bea)).access_token),
            "another app's": bearer((await cast.mint("another-app", SCOPES)).access_token),
            "a refresh token": bearer(live.refresh_token),
            "a session": bearer(cast.session),
            "a session cookie": {"Cookie": f"latchkey_session={cast.session}"},
            "another scheme": {"Authorization": f"Basic {live.access_token}"},
            "garbage": bearer("garbage"),
            "garbage of the form": bearer("lk_at_" + "A" * 90),
            "nothing behind Bearer": {"Authorization": "Bearer"},
        }
        everything = ("all scopes", "another person's", "another app's")
        cast.carries = {**dict.fromkeys(everything, SCOPES), **{scope: (scope,) for scope in SCOPES}}
        return cast

    async def _dead(self) -> dict[str, dict[str, str]]:
        """Tokens that were live once."""
        expired, revoked = await self.mint("expired", SCOPES), await self.mint("revoked", SCOPES)
        await self.store.client.pexpire(self.rows(expired)["access"], 1)  # as if its hour were over
        await self.store.tokens.revoke(None, revoked.access_token)
        withdrawn, disabled = await self.mint("withdrawn", SCOPES), await self.mint("disabled", SCOPES)
        session = self.store.sessions.open(self.session)
        assert session
        await self.store.grants.revoke(session, "withdrawn", VISITOR)
        await self.store.apps.update("disabled", status="disabled")
        dead = {"expired": expired, "revoked": revoked, "disconnected": withdrawn, "app disabled": disabled}
        return {name: bearer(tokens.access_token) for name, tokens in dead.items()}

    async def person(self, email: str) -> str:
        """A person's user id."""
        create = self.store.people.create
        return await create(email, "Ada Lovelace", PASSWORD, verified=True, event="signed_up", visitor=VISITOR)

    async def register(self, client_id: str) -> tuple[Registration, str | None]:
        """An app that may ask for everything."""
        facts = Registration(client_id, "An App", (CALLBACK,), SCOPES, device_grant=True)
        return await self.store.apps.create(facts)

    async def mint(self, client_id: str, scopes: tuple[str, ...], user: str = "", api: str = "") -> TokenResponse:
        """Tokens of an app; registers the app if needed."""
        app = await self.store.apps.active(client_id) or (await self.register(client_id))[0]
        return await self.store.tokens.mint(user or self.ada, app, scopes, api=api)

    async def keep(self, client_id: str, user: str) -> None:
        """A document that exists."""
        tokens = await self.mint(client_id, SCOPES, user)
        token = self.store.tokens.open_access(tokens.access_token)
        assert token
        caller = Caller.of(token, SCOPES)
        await self.store.documents.write(caller, "data:write", "notes", "n1", b'{"a":[1]}', Conditions("", False))

    async def sign_in(self, email: str) -> str:
        """The cookie of a session whose person has just re-authenticated: the window for that is small."""
        credentials = await self.store.people.verify(email, PASSWORD)
        assert credentials
        cookie = (await self.store.sessions.start(credentials, VISITOR)).cookie
        session = self.store.sessions.open(cookie)
        assert session
        seconds, _ = await self.store.client.time()
        row = keys.session(session.user, session.session_id)
        await self.store.client.hset(row, "proved_at", str(seconds * 1000))
        return cookie

    async def sign_in_admin(self, email: str) -> str:
        """The cookie of a new admin's session, as if its person had used a second step."""
        user, cookie = await self.person(email), await self.sign_in(email)
        await self.store.role_holders.give(user, "admin")
        session = self.store.sessions.open(cookie)
        assert session
        await self.store.client.hset(session.keys()["session"], "method", "otp")
        return cookie

    async def pending(self) -> str:
        """The id of an authorization request that waits for Ada's decision."""
        begun = await self.store.authorizations.begin(self.session_of(), self._request(), always_ask=True)
        assert isinstance(begun, Pending)
        return begun.request_id

    async def code(self) -> str:
        """An authorization code from Ada's consent."""
        decide = self.store.authorizations.decide
        decided = await decide(
            self.session_of(), self.app, await self.pending(), allow=True, scopes=None, visitor=VISITOR
        )
        assert decided.code
        return decided.code

    def _request(self) -> AuthorizationRequest:
        place = self.app.place(CALLBACK)
        return AuthorizationRequest("web-app", CALLBACK, SCOPES, "a-state", s256(VERIFIER), self.app.terms, place)

    def session_of(self) -> Session:
        """Ada's session."""
        session = self.store.sessions.open(self.session)
        assert session
        return session

    async def unconfirmed(self) -> str:
        """An account whose address is unconfirmed."""
        create = self.store.people.create
        return await create("cleo@example.com", "Cleo", PASSWORD, verified=False, event="signed_up", visitor=VISITOR)

    async def change_link(self, session: Session, email: str, new: str) -> Link:
        """A link that makes `new` the address of the person with the address `email`."""
        credentials = await self.store.people.credentials(email)
        assert credentials
        return await self.store.links.to_change(session, email, new, credentials.password, VISITOR)

    async def undo_link(self) -> Link | None:
        """A link that restores the old address of a person who has changed it."""
        email = "erin@example.com"
        await self.store.people.create(email, "Erin", PASSWORD, verified=True, event="signed_up", visitor=VISITOR)
        credentials = await self.store.people.verify(email, PASSWORD)
        assert credentials
        session = self.store.sessions.open((await self.store.sessions.start(credentials, VISITOR)).cookie)
        assert session
        link = await self.change_link(session, email, "erin@example.net")
        return (await self.store.links.change(session, link.text, VISITOR)).undo

    async def half_signed_in(self) -> str:
        """A sign-in that waits for its second step."""
        user = await self.person("emmy@example.com")
        session = self.store.sessions.open(await self.sign_in("emmy@example.com"))
        assert session
        sealed = self.store.factors.new_secret(user)
        secret = TotpSecrets(self.store.keys).open(user, decode(sealed))
        seconds, _ = await self.store.client.time()
        await self.store.factors.enable_totp(session, sealed, code_at(secret, seconds * 1000 // STEP), VISITOR)
        try:
            await self.sign_in("emmy@example.com")
        except SecondStepNeeded as needed:
            return needed.text
        raise AssertionError("no second step")

    def sealed(self, kind: TokenKind, client: str = "") -> str:
        """An authentic but dead token: nothing in the store belongs to it."""
        return self.store.sealer.seal(Token(kind, self.ada, client, new_id(), 0))

    def rows(self, tokens: TokenResponse) -> dict[str, str]:
        """The store keys of tokens."""
        token = self.store.tokens.open_access(tokens.access_token)
        assert token
        return keys.token(token.user, token.client, token.id, token.generation)


def bearer(token: str) -> dict[str, str]:
    """The header that presents a token."""
    return {"Authorization": f"Bearer {token}"}
