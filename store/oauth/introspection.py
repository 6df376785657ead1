"""Introspection: tells an app or an API whether a token is live. RFC 7662."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from store import keys
from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import ApiScopeName
from store.apps.apis import Apis
from store.apps.apps import Apps
from store.apps.registration import Registration
from store.crypto.jose.refusal import JoseError
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint
from store.crypto.signing_keys import SigningKeys
from store.engine.scripts import Reply, Scripts
from store.lifetimes import ACCESS_TOKEN, DAY
from store.oauth.app_tokens import AT_JWT
from store.oauth.subjects import Subjects
from store.oauth.tokens import MS_PER_SECOND


class LiveToken(NamedTuple):
    """A live token, as its own app or API may know it. `audience` is the identifier of the API that it is for, empty
    for Latchkey itself. `expires` and `issued` are in seconds since 1970; `issued` is None for a refresh token."""

    is_access: bool
    client: str
    sub: str
    scope: str
    audience: str
    expires: int
    issued: int | None


class Introspection:
    """Looks tokens up without changing anything. Every look-up is one script, which makes the same reads for a live, a
    dead and an invented token. Refresh tokens end `refresh_days` after a sign-in; 0: they do not end."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        signing: SigningKeys,
        subjects: Subjects,
        apps: Apps,
        apis: Apis,
        refresh_days: int = 0,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._signing = signing
        self._subjects = subjects
        self._apps = apps
        self._apis = apis
        self._refresh_days = refresh_days

    async def by_app(self, app: Registration, presented: str, issuer: str) -> LiveToken | None:
        """The token, if it is a live one of this app. Raises StoreUnavailable."""
        token = self._open(await self._sealed(presented, issuer))
        theirs = token is not None and token.client == app.client_id
        looked_up = token if theirs and token is not None else _invented(presented, app.client_id)
        reply = await self._look_up(looked_up, "*", app.refresh_days(self._refresh_days) * DAY)
        if not theirs or reply.word == "dead":
            return None
        if reply.text("api"):
            api = await self._apis.active(reply.text("api"))
            return _of_app(app, api, reply) if api else None
        scope = " ".join(scope for scope in reply.text("scope").split() if scope in app.grantable)
        if not scope:
            return None
        is_access, expires = looked_up.kind is TokenKind.ACCESS, reply.number("expires") // MS_PER_SECOND
        sub = await self._subjects.of(app.client_id, app.sector, looked_up.user, reply.text("entered"))
        issued = expires - ACCESS_TOKEN // MS_PER_SECOND if is_access else None
        return LiveToken(is_access, app.client_id, sub, scope, "", expires, issued)

    async def by_api(self, api: ApiRegistration, presented: str, issuer: str) -> LiveToken | None:
        """The token, if it is a live access token for this API. Raises StoreUnavailable."""
        sealed = await self._sealed(presented, issuer)
        token = self._sealer.open(TokenKind.ACCESS, sealed) or _invented(presented, api.client_id)
        reply = await self._look_up(token, api.client_id, 0)
        # Only the API that the token is for learns something of the app, also by the time of this look-up.
        app = await self._apps.active(token.client) if reply.word == "live" else None
        return _of_app(app, api, reply) if app else None

    async def _sealed(self, presented: str, issuer: str) -> str:
        """The sealed token in a JWT access token of ours; any other text unchanged. RFC 9068 4."""
        if presented.count(".") != 2:
            return presented
        try:
            claims = (await self._signing.verify(presented, types=(AT_JWT,))).claims
        except JoseError:
            return presented
        # The row decides when it ends.
        return str(claims["jti"]) if claims.get("iss") == issuer and "jti" in claims else presented

    def _open(self, presented: str) -> Token | None:
        return self._sealer.open(TokenKind.ACCESS, presented) or self._sealer.open(TokenKind.REFRESH, presented)

    async def _look_up(self, token: Token, audience: str, lifetime: int) -> Reply:
        return await self._scripts.run(
            "introspect_token",
            keys.token(token.user, token.client, token.id, token.generation),
            kind="access" if token.kind is TokenKind.ACCESS else "refresh",
            generation=token.generation,
            client=token.client,
            lifetime=lifetime,
            audience=audience,
        )


def _of_app(app: Registration, api: ApiRegistration, reply: Reply) -> LiveToken | None:
    """A token that the app has for itself at the API, with the scopes that both still have."""
    having = [name for name in api.scope_names() if ApiScopeName(api.client_id, name).qualified in app.api_scopes]
    scope = " ".join(name for name in reply.text("scope").split() if name in having)
    expires, issued = reply.number("expires") // MS_PER_SECOND, reply.number("issued")
    # RFC 9068 5: the subject of a token without a person is the app.
    return LiveToken(True, app.client_id, app.client_id, scope, api.identifier, expires, issued) if scope else None


def _invented(presented: str, client: str) -> Token:
    """A token without rows, in a slot drawn from the bytes of what was presented."""
    user = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Token(TokenKind.ACCESS, user, client, fingerprint(presented), 0)
