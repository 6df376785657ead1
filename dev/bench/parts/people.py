"""People by the hundred thousand, created by the product's own scripts: accounts, consents, tokens, sessions, codes,
credits, documents. Expensive steps such as password hashing are left out; stored values keep their real size."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from dev.bench.parts.filling import document, name_of
from dev.bench.parts.pipes import Call, Pipe
from store import keys
from store.apps.client_ids import new_client_id
from store.apps.registration import Registration
from store.credits.credits import Bookkeeping
from store.crypto.cipher import Cipher
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint, fresh_epoch, new_id, new_user_id
from store.engine.connect import unix_url
from store.lifetimes import CREDIT_KEY, DAY, REFRESH_TOKEN
from store.oauth.tokens import s256
from store.wiring import Store

CALLBACK = "https://app.example.com/callback"
SCOPES = ("profile", "credits:read", "credits:spend", "data:read", "data:write")
VERIFIER = "a-code-verifier-of-the-least-length-there-is-43"
AGENT = "Chrome on Linux"
PASSWORD_BYTES = 56
"""The size of a stored password hash."""

T = TypeVar("T")
_LIVE = DAY
"""ms that access tokens and codes live here: longer than a measurement."""
_NO_LIMIT = 10**12
_MINUTE = 60_000


class Lineage(NamedTuple):
    """A refresh token family of a person."""

    user: str
    family: str


class Crowd:
    """The people of one store and the app that they use; `socket_path` is the store's."""

    def __init__(self, socket_path: str, ring: KeyRing, app: Registration, secret: str) -> None:
        self.app = app
        self.secret = secret
        self._socket_path = socket_path
        self._sealer = Sealer(Keys(ring))
        self._cipher = Cipher(Keys(ring))

    @classmethod
    def gather(cls, socket_path: str, ring: KeyRing, scopes: tuple[str, ...] = SCOPES) -> Crowd:
        """Starts without people; registers a confidential app, with hosted storage if it has scopes of data."""
        app, secret = asyncio.run(_register(socket_path, ring, scopes))
        return cls(socket_path, ring, app, secret)

    def sign_up(self, count: int, shards: int = len(keys.SHARDS)) -> list[str]:
        """Creates accounts, spread over shards, with their addresses in the index. Returns the user ids."""
        users = [_user_id(number % shards) for number in range(count)]
        with Pipe(self._socket_path) as pipe:
            pipe.send(("SET", keys.email(self.address(user)), user) for user in users)
            pipe.run("create_user", (_account(user) for user in users))
            # No measurement that uses these people looks for them by name.
            pipe.send(("DEL", notes) for notes in {keys.changed(user)["changed"] for user in users})
        return users

    def consent(self, users: Iterable[str], *, access_ttl: int = _LIVE) -> list[Lineage]:
        """Gives each person a grant, if there is none, and a new family with its first access token."""
        made = [Lineage(user, new_id()) for user in users]
        client, place, scopes = self.app.client_id, self.app.place(CALLBACK), " ".join(self.app.scopes)
        with Pipe(self._socket_path) as pipe:
            pipe.run("mint_token", (self._mint(one, access_ttl) for one in made))
            # A consent remembers the redirect URI; tokens that the operator mints have none.
            pipe.send(("HSET", keys.grant(one.user, client), place, f"1 {scopes}") for one in made)
            if "openid" in self.app.scopes:
                # A code says how the person signed in; tokens that the operator mints do not.
                signed = f"{new_id()} {int(time.time())} pwd "
                pipe.send(
                    ("HSET", keys.token(one.user, client, one.family, 0)["family"], "signed", signed) for one in made
                )
        return made

    def bind(self, lineages: Sequence[Lineage], thumbprints: Sequence[str]) -> None:
        """Binds the first access token of each family to the key with this thumbprint, as `bound_row` of the scripts
        writes it."""
        with Pipe(self._socket_path) as pipe:
            pipe.send(
                (
                    "SET",
                    keys.token(one.user, self.app.client_id, one.family, 0)["access"],
                    f"*{jkt}",
                    "XX",
                    "KEEPTTL",
                )
                for one, jkt in zip(lineages, thumbprints, strict=True)
            )

    def sign_in(self, users: Iterable[str]) -> list[str]:
        """Creates a browser session for each person. Returns the cookies."""
        made = [(user, new_id()) for user in users]
        with Pipe(self._socket_path) as pipe:
            pipe.run("start_session", (_session(user, session) for user, session in made))
        return [self._sealer.seal(Token(TokenKind.SESSION, user, "", session, 0)) for user, session in made]

    def pay(self, users: Iterable[str], amount: int) -> None:
        """Gives each person credits, in micro-dollars."""
        with Pipe(self._socket_path) as pipe:
            pipe.run("grant_credit", (_credit(user, amount) for user in users))

    def codes(self, cookies: Iterable[str]) -> list[str]:
        """Creates an authorization code for each session, from a remembered consent."""
        made = [(session, new_id()) for session in map(self._opened, cookies)]
        with Pipe(self._socket_path) as pipe:
            pipe.run("begin_authorization", (self._code(session, code) for session, code in made), ("remembered",))
        return [
            self._sealer.seal(Token(TokenKind.CODE, session.user, self.app.client_id, code, 0))
            for session, code in made
        ]

    def write(self, lineages: Iterable[Lineage], documents: int, size: int, *, first: int = 0) -> None:
        """Writes documents of `size` bytes for each lineage, numbered from `first`."""
        content = document(size)
        with Pipe(self._socket_path) as pipe:
            numbers = range(first, first + documents)
            pipe.run("write_document", self._writes(lineages, numbers, content), ("created",))

    def access(self, lineage: Lineage) -> str:
        """The first access token of a family."""
        return self._seal(TokenKind.ACCESS, lineage)

    def refresh(self, lineage: Lineage) -> str:
        """The first refresh token of a family."""
        return self._seal(TokenKind.REFRESH, lineage)

    @staticmethod
    def address(user: str) -> str:
        """A person's e-mail address: 23 bytes, an average length."""
        return f"{user[:11]}@example.com"

    def _seal(self, kind: TokenKind, lineage: Lineage) -> str:
        return self._sealer.seal(Token(kind, lineage.user, self.app.client_id, lineage.family, 0))

    def _opened(self, cookie: str) -> Token:
        token = self._sealer.open(TokenKind.SESSION, cookie)
        assert token is not None
        return token

    def _mint(self, lineage: Lineage, access_ttl: int) -> Call:
        user, client = lineage.user, self.app.client_id
        return {
            **keys.person(user),
            **keys.hosted(user, client),
            **keys.outbox_keys(user[:3]),
            **keys.token(user, client, lineage.family, 0),
            "app_users": keys.shard_app_users(user[:3], client),
        }, {
            "member": keys.member(user),
            "client": client,
            "scope": " ".join(self.app.scopes),
            "fresh_epoch": fresh_epoch(),
            "access_ttl": access_ttl,
            "refresh_ttl": REFRESH_TOKEN,
            "lifetime": 0,
            "prefix": keys.prefix(user),
            "shard": keys.shard_prefix(user),
            "most_apps": _NO_LIMIT,
            "family_id": lineage.family,
            "most_families": _NO_LIMIT,
            "api": "",
            "row_ttl": access_ttl,
            "jkt": "",
            "binds": "",
        }

    def _code(self, session: Token, code: str) -> Call:
        user, client = session.user, self.app.client_id
        return {
            **keys.person(user),
            "session": keys.session(user, session.id),
            "grant": keys.grant(user, client),
            "request": keys.request(user, code),
            "code": keys.code(user, code),
            "window": keys.limit(user, "fill"),
            "outbox": keys.outbox(user),
        }, {
            "scope": " ".join(self.app.scopes),
            "redirect_uri": CALLBACK,
            "challenge": s256(VERIFIER),
            "state": "",
            "always_ask": "0",
            "request_ttl": _LIVE,
            "code_ttl": _LIVE,
            "idle": _LIVE,
            "terms": self.app.terms,
            "place": self.app.place(CALLBACK),
            "limit": _NO_LIMIT,
            "period": _MINUTE,
            "client": client,
            "fresh": -1,
            "since": 0,
            "since_lasts": 0,
            "methods": "",
            "nonce": "",
            "acr": "",
            "fresh_sid": "",
            "mode": "",
            "pushed": "",
            "api": "",
            "jkt": "",
            "member": keys.member(user),
            "details": "",
            "allowed": "",
        }

    def _writes(self, lineages: Iterable[Lineage], numbers: Sequence[int], content: bytes) -> Iterator[Call]:
        client = self.app.client_id
        for user, family in lineages:
            key = {
                **keys.token(user, client, family, 0),
                **keys.hosted(user, client),
                "window": keys.limit(user, "fill", client),
            }
            for number in numbers:
                name = name_of(number)
                yield (
                    key,
                    {
                        "needed": "data:write",
                        "limit": _NO_LIMIT,
                        "period": _MINUTE,
                        "name": name,
                        "collection": name.partition("/")[0],
                        "sealed": self._cipher.seal(user, client, name, content),
                        "size": len(content),
                        "if_match": "",
                        "if_none": "*",
                        "max_documents": _NO_LIMIT,
                        "max_collections": _NO_LIMIT,
                        "max_bytes": _NO_LIMIT,
                        "usages": keys.usage_prefix(user),
                        "person_documents": _NO_LIMIT,
                        "person_bytes": _NO_LIMIT,
                        "full": "",
                        "counted": "",
                        "proof": "",
                    },
                )


async def _register(socket_path: str, ring: KeyRing, scopes: tuple[str, ...]) -> tuple[Registration, str]:
    hasher = PasswordHasher(8192, 1, workers=1, queue=1)
    store = await Store.open(
        unix_url(socket_path), Keys(ring), hasher, timeout=30, connections=2, session_idle=60, session_lifetime=60
    )
    try:
        wanted = Registration(
            new_client_id(),
            "Bench",
            (CALLBACK,),
            scopes,
            hosted_storage=bool(Registration.data_scopes(scopes)),
            id_token_alg="ES256",
        )
        app, secret = await store.apps.create(wanted)
    finally:
        await store.close()
    assert secret is not None
    return app, secret


def _user_id(shard: int) -> str:
    """A new user id in a shard."""
    return keys.SHARDS[shard] + new_user_id()[3:]


def _account(user: str) -> Call:
    return {**keys.person(user), **keys.changed(user)}, {
        "member": keys.member(user),
        "email": Crowd.address(user),
        "email_verified": "1",
        "name": "Ada Lovelace",
        "password": os.urandom(PASSWORD_BYTES),
        "event": "signed_up",
        "address": "192.0.2.1",
        "agent": AGENT,
        "groups": "",
        **dict.fromkeys(("external_id", "reason", "note"), ""),
    }


def _session(user: str, session: str) -> Call:
    return {**keys.person(user), "session": keys.session(user, session), "outbox": keys.outbox(user)}, {
        "session_id": session,
        "required": "",
        "session_epoch": "1",
        "idle": _LIVE,
        "lifetime": 30 * DAY,
        "rehash": "",
        "session_prefix": keys.session_prefix(user),
        "member": keys.member(user),
        "most_sessions": _NO_LIMIT,
        "address": "192.0.2.1",
        "agent": AGENT,
    }


def _credit(user: str, amount: int) -> Call:
    books = Bookkeeping()
    return {**keys.person(user), **keys.idempotency(user, "", fingerprint(new_id()))}, {
        "amount": amount,
        "reason": "",
        "digest": fingerprint(new_id()),
        "first": "",
        "max_paid": _NO_LIMIT,
        "keep": CREDIT_KEY,
        "retention": books.retention,
        "most": books.entries,
        "detail": "",
    }


def cycled(items: Sequence[T], first: int, count: int) -> list[T]:
    """`count` items, starting at `first` and wrapping around at the end."""
    return [items[(first + number) % len(items)] for number in range(count)]
