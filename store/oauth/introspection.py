"""Introspection: tells an app or an API whether a token is live. RFC 7662."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from store import keys
from store.apps.registration import Registration
from store.crypto.pairwise import Pairwise
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint
from store.engine.scripts import Reply, Scripts
from store.lifetimes import ACCESS_TOKEN, DAY
from store.oauth.tokens import MS_PER_SECOND


class LiveToken(NamedTuple):
    """A live token, as its own app or API may know it. `expires` and `issued` are in seconds since 1970; `issued` is
    None for a refresh token."""

    is_access: bool
    client: str
    sub: str
    scope: str
    expires: int
    issued: int | None


class Introspection:
    """Looks tokens up without changing anything. Every look-up is one script, which makes the same reads for a live, a
    dead and an invented token. Refresh tokens end `refresh_days` after a sign-in; 0: they do not end."""

    def __init__(self, scripts: Scripts, sealer: Sealer, pairwise: Pairwise, refresh_days: int = 0) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._pairwise = pairwise
        self._refresh_days = refresh_days

    async def by_app(self, app: Registration, presented: str) -> LiveToken | None:
        """The token, if it is a live one of this app. Raises StoreUnavailable."""
        token = self._open(presented)
        theirs = token is not None and token.client == app.client_id
        looked_up = token if theirs and token is not None else _invented(presented, app.client_id)
        reply = await self._look_up(looked_up, app.refresh_days(self._refresh_days) * DAY)
        if not theirs or reply.word == "dead":
            return None
        scope = " ".join(scope for scope in reply.text("scope").split() if scope in app.scopes)
        if not scope:
            return None
        is_access, expires = looked_up.kind is TokenKind.ACCESS, reply.number("expires") // MS_PER_SECOND
        sub = await self._pairwise.of(app.client_id, looked_up.user, reply.text("entered"))
        issued = expires - ACCESS_TOKEN // MS_PER_SECOND if is_access else None
        return LiveToken(is_access, app.client_id, sub, scope, expires, issued)

    async def by_api(self, client_id: str, presented: str) -> LiveToken | None:
        """None: no token is for an API yet. Raises StoreUnavailable."""
        await self._look_up(_invented(presented, client_id), 0)
        return None

    def _open(self, presented: str) -> Token | None:
        return self._sealer.open(TokenKind.ACCESS, presented) or self._sealer.open(TokenKind.REFRESH, presented)

    async def _look_up(self, token: Token, lifetime: int) -> Reply:
        return await self._scripts.run(
            "introspect_token",
            keys.token(token.user, token.client, token.id, token.generation),
            kind="access" if token.kind is TokenKind.ACCESS else "refresh",
            generation=token.generation,
            client=token.client,
            lifetime=lifetime,
        )


def _invented(presented: str, client: str) -> Token:
    """A token without rows, in a slot drawn from the bytes of what was presented."""
    user = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Token(TokenKind.ACCESS, user, client, fingerprint(presented), 0)
