"""Introspection: tells an app or an API whether a token is live. RFC 7662."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

from store import keys
from store.apps.api_record import ApiRegistration
from store.apps.apis import Apis
from store.apps.apps import Apps
from store.apps.registration import Registration
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint
from store.engine.scripts import Reply, Scripts
from store.lifetimes import ACCESS_TOKEN, DAY
from store.oauth.api_access import ApiAccess
from store.oauth.budgets import SPEND, Budget, told_budgets
from store.oauth.exchange.token_exchange import act_of
from store.oauth.proofs import may_present
from store.oauth.resources import MCP, MCP_PATH, plain_names, registered_at
from store.oauth.sign_in import level_and_time
from store.oauth.subjects import Subjects
from store.oauth.tokens import MS_PER_SECOND


class LiveToken(NamedTuple):
    """A live token, as its own app or API may know it. `audience` is the identifier of the resource that it is for,
    empty for Latchkey itself. `expires` and `issued` are in seconds since 1970; `issued` is None for a refresh token.
    `acr` and `auth_time` (seconds) are of the person's sign-in, empty and None if it is not known. `jkt` is the
    thumbprint of the key that an access token is bound to, empty for a bearer token. `budgets`: what it may
    spend here; `act`: who acts, None unless it is delegated (RFC 8693 4.1)."""

    is_access: bool
    client: str
    sub: str
    scope: str
    audience: str
    expires: int
    issued: int | None
    acr: str = ""
    auth_time: int | None = None
    jkt: str = ""
    budgets: tuple[Budget, ...] = ()
    act: dict[str, Any] | None = None


class Introspection:
    """Looks tokens up without changing anything. Every look-up is one script, which makes the same reads for a live, a
    dead and an invented token. Refresh tokens end `refresh_days` after a sign-in; 0: they do not end."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        access: ApiAccess,
        subjects: Subjects,
        apps: Apps,
        apis: Apis,
        refresh_days: int = 0,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._access = access
        self._subjects = subjects
        self._apps = apps
        self._apis = apis
        self._refresh_days = refresh_days

    async def by_app(self, app: Registration, presented: str, issuer: str) -> LiveToken | None:
        """The token, if it is a live one of this app. Raises StoreUnavailable."""
        sealed = await self._access.sealed_in(presented, issuer) if "." in presented else presented
        token = self._open(sealed)
        theirs = token is not None and token.client == app.client_id
        looked_up = token if theirs and token is not None else _invented(presented, app.client_id)
        reply = await self._look_up(looked_up, "*", app.refresh_days(self._refresh_days) * DAY)
        if not theirs or reply.word == "dead":
            return None
        sub = app.client_id
        if reply.word == "live":
            sub = await self._subjects.of(app.client_id, app.sector, looked_up.user, reply.text("entered"))
        audience = f"{issuer}{MCP_PATH}" if reply.text("api") == MCP else ""
        if audience and not self._apis.mcp:
            return None
        if reply.text("api") and not audience:
            api = await self._apis.active(reply.text("api"))
            return _for_api(app, api, sub, reply) if api else None
        scope = _shown_scope(reply.text("scope"), app.grantable, app.api_scopes)
        if not scope:
            return None
        is_access, expires = looked_up.kind is TokenKind.ACCESS, reply.number("expires") // MS_PER_SECOND
        issued = expires - ACCESS_TOKEN // MS_PER_SECOND if is_access else None
        sign_in = level_and_time(reply.text("signed"))
        jkt = reply.text("jkt")
        if is_access and not may_present(app, jkt):
            return None
        budgets = told_budgets(reply.rows("budgets")) if SPEND in scope.split() else ()
        act = act_of(app, reply.text("act")) if reply.word == "live" else None
        return LiveToken(is_access, app.wire_id, sub, scope, audience, expires, issued, *sign_in, jkt, budgets, act)

    async def by_api(self, api: ApiRegistration, presented: str, issuer: str) -> LiveToken | None:
        """The token, if it is a live access token for this API. Raises StoreUnavailable."""
        sealed = await self._access.sealed_in(presented, issuer)
        token = self._sealer.open(TokenKind.ACCESS, sealed) or _invented(presented, api.client_id)
        reply = await self._look_up(token, api.client_id, 0)
        if reply.word == "dead":
            return None
        # Only the API that the token is for learns something of the app, also by the time of this look-up.
        app = await self._apps.active(token.client)
        if app is None:
            return None
        sub = app.client_id
        if reply.word == "live":
            sub = await self._subjects.at_api(api.sector, app.sector, token.user)
        return _for_api(app, api, sub, reply)

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


def _for_api(app: Registration, api: ApiRegistration, sub: str, reply: Reply) -> LiveToken | None:
    """A token of the app for the API, with the scopes that both still have."""
    names = registered_at(app, api)
    scope = " ".join(name for name in reply.text("scope").split() if name in names)
    expires, issued = reply.number("expires") // MS_PER_SECOND, reply.number("issued")
    # No grant ends such a token with its app: one from before the registration is of a deleted app with this client id.
    if reply.word == "itself" and issued < app.created_at // MS_PER_SECOND:
        return None
    # A token that the app has for itself comes from nobody's sign-in.
    sign_in = level_and_time(reply.text("signed") if reply.word == "live" else "")
    facts = (sub, scope, api.identifier, expires, issued, *sign_in, reply.text("jkt"))
    act = act_of(app, reply.text("act")) if reply.word == "live" else None
    return LiveToken(True, app.wire_id, *facts, act=act) if scope and may_present(app, reply.text("jkt")) else None


# Few sign-ins of an app differ in their scopes.
@lru_cache(maxsize=1024)
def _shown_scope(given: str, grantable: tuple[str, ...], api_scopes: tuple[str, ...]) -> str:
    """The names of those scopes that the app still has."""
    return " ".join(plain_names([scope for scope in given.split() if scope in grantable or scope in api_scopes]))


def _invented(presented: str, client: str) -> Token:
    """A token without rows, in a slot drawn from the bytes of what was presented."""
    user = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Token(TokenKind.ACCESS, user, client, fingerprint(presented), 0)
