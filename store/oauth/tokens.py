"""The token endpoint and revocation: exchange, rotation, replay. SPEC 3.1, 3.2, 4.3, 4.5."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from store import keys
from store.app_stats import AppStats
from store.apps.registration import Registration
from store.bounds import Bounds
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint, fresh_epoch, new_id
from store.engine.scripts import Scripts
from store.lifetimes import ACCESS_TOKEN, DAY, OAUTH, REFRESH_TOKEN
from store.limits import RateLimits
from store.refused import Refused, let_in
from store.results import Window
from store.webhooks.relay_wakeup import RelayWakeup

MS_PER_SECOND = 1000


class TokenResponse(NamedTuple):
    """SPEC 2.2. `expires_in` is in seconds; `window` is None where no limit applies."""

    access_token: str
    refresh_token: str
    expires_in: int
    scope: str
    window: Window | None = None


class UnknownUser(Exception):
    """The grant presented names no live one, so the request counts against its address, not against a person."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def s256(verifier: str) -> str:
    """RFC 7636 4.6: base64url(SHA-256(verifier)) without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Tokens:
    """What apps do with codes and tokens. The app was authenticated before. `refresh_days` after a sign-in its refresh
    tokens end, unless the app is registered with fewer; 0: they do not."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        limits: RateLimits,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        bounds: Bounds,
        refresh_days: int = 0,
    ) -> None:
        self._bounds = bounds
        self._scripts = scripts
        self._sealer = sealer
        self._limits = limits
        self._app_stats = app_stats
        self._wakeup = wakeup
        self.refresh_days = refresh_days

    def _lifetime(self, app: Registration) -> int:
        """The ms after which a family of this app ends; 0: never."""
        return app.refresh_days(self.refresh_days) * DAY

    def open_access(self, presented: str) -> Token | None:
        """What an access token says, or None for anything forged, mangled or of another kind. No I/O."""
        return self._sealer.open(TokenKind.ACCESS, presented)

    async def exchange(self, app: Registration, code: str, redirect_uri: str, verifier: str | None) -> TokenResponse:
        """SPEC 4.3, RFC 6749 4.1.3: the first tokens of the family that takes the code's id.

        A used code kills that family (RFC 6749 4.1.2). A failed check leaves the code as it was. Raises
        Refused("invalid_grant" or "rate_limited"), UnknownUser for a code that names no live grant.
        """
        token = self._sealer.open(TokenKind.CODE, code)
        if token is None or token.client != app.client_id:
            raise UnknownUser(_bad_code())
        reply = await self._scripts.run(
            "exchange_code",
            {
                **keys.token(token.user, token.client, token.id, 0),
                "code": keys.code(token.user, token.id),
                "window": keys.limit(token.user, OAUTH.name),
                "audit": keys.audit(token.user),
                "outbox": keys.outbox(token.user),
            },
            client=app.client_id,
            redirect_uri=redirect_uri,
            challenge=s256(verifier) if verifier is not None else "",
            registered=" ".join(app.scopes),
            access_ttl=ACCESS_TOKEN,
            refresh_ttl=REFRESH_TOKEN,
            lifetime=self._lifetime(app),
            limit=OAUTH.limit,
            period=OAUTH.period,
            terms=app.terms,
            member=keys.member(token.user),
            prefix=keys.prefix(token.user),
            family_id=token.id,
            most=self._bounds.families,
        )
        if reply.word in ("dead", "replayed"):
            self._wakeup.add(token.user, reply.word == "replayed")
            raise UnknownUser(_bad_code())
        window = let_in(OAUTH, reply)
        if reply.word == "redirect_mismatch":
            # RFC 6749 4.1.3: identical to the one of the authorization request.
            raise Refused("invalid_grant", "redirect_uri differs from the authorization request's.", window=window)
        if reply.word == "verifier_mismatch":
            # RFC 7636 4.6; RFC 9700 4.8.2: a verifier for a code without a challenge is a downgrade.
            raise Refused("invalid_grant", "code_verifier does not fit the authorization request.", window=window)
        if reply.word == "scope_withdrawn":
            raise Refused("invalid_grant", "The person has withdrawn the scopes of this code.", window=window)
        return self._response(token, 0, reply.text("scope"), ACCESS_TOKEN // MS_PER_SECOND, window)

    async def refresh(self, app: Registration, refresh_token: str, scopes: Sequence[str]) -> TokenResponse:
        """SPEC 3.1, RFC 6749 6: rotates a refresh token; `scopes` narrow this access token, empty means all.

        A used or revoked token is a replay: every token of the pair dies. Raises Refused("invalid_grant",
        "invalid_scope" or "rate_limited"), UnknownUser for a token that names no live grant.
        """
        token = self._sealer.open(TokenKind.REFRESH, refresh_token)
        if token is None or token.client != app.client_id:
            raise UnknownUser(_bad_refresh_token())
        generation = token.generation + 1
        reply = await self._scripts.run(
            "rotate_refresh",
            {
                **keys.token(token.user, token.client, token.id, generation),
                "window": keys.limit(token.user, OAUTH.name),
                "audit": keys.audit(token.user),
                "outbox": keys.outbox(token.user),
            },
            client=app.client_id,
            generation=token.generation,
            wanted=" ".join(scopes),
            registered=" ".join(app.scopes),
            fresh_epoch=fresh_epoch(),
            retry_ms=app.refresh_retry_seconds * 1000,
            access_ttl=ACCESS_TOKEN,
            refresh_ttl=REFRESH_TOKEN,
            lifetime=self._lifetime(app),
            limit=OAUTH.limit,
            period=OAUTH.period,
            member=keys.member(token.user),
        )
        if reply.word in ("dead", "replayed"):
            self._wakeup.add(token.user, reply.word == "replayed")
            raise UnknownUser(_bad_refresh_token())
        window = let_in(OAUTH, reply)
        if reply.word == "invalid_scope":
            raise Refused("invalid_scope", "A refresh cannot widen the scope.", window=window)
        if reply.word == "scope_withdrawn":
            raise Refused("invalid_grant", "The person has withdrawn the scopes of this token.", window=window)
        return self._response(token, generation, reply.text("scope"), reply.number("expires_in"), window)

    async def mint(self, user: str, app: Registration, scopes: Sequence[str]) -> TokenResponse:
        """Grants and issues tokens as a consent and an exchange would, by the operator's act. A live grant keeps its
        other scopes. Raises
        Refused("not_found") where the person is not active, Refused("access_denied") where they have as many apps as
        one may have."""
        token = Token(TokenKind.REFRESH, user, app.client_id, new_id(), 0)
        reply = await self._scripts.run(
            "mint_token",
            {
                **keys.person(user),
                **keys.hosted(user, app.client_id),
                **keys.token(user, app.client_id, token.id, 0),
                **keys.outbox_keys(user[:3]),
                "app_users": keys.shard_app_users(user[:3], app.client_id),
            },
            member=keys.member(user),
            client=app.client_id,
            scope=" ".join(scopes),
            fresh_epoch=fresh_epoch(),
            access_ttl=ACCESS_TOKEN,
            refresh_ttl=REFRESH_TOKEN,
            lifetime=self._lifetime(app),
            prefix=keys.prefix(user),
            shard=keys.shard_prefix(user),
            most_apps=self._bounds.grants,
            family_id=token.id,
            most_families=self._bounds.families,
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such active person.")
        if reply.word == "full":
            raise Refused("access_denied", "This person has as many apps as one may have: see person_grant_limit.")
        if reply.number("connected"):
            self._app_stats.connected(app.client_id)
        return self._response(token, 0, " ".join(scopes), ACCESS_TOKEN // MS_PER_SECOND, None)

    async def revoke(self, app: Registration | None, presented: str, *, authenticated: bool = True) -> Window:
        """SPEC 4.5, RFC 7009: ends an access token, or a refresh token with its family. Says nothing of what became of
        it. With `app` only that app's tokens are touched; `authenticated` says whether it was proven to be that app, as
        far as an app of its kind can. Without that, a superseded refresh token ends nothing. Raises
        Refused("rate_limited"), StoreUnavailable: a revocation is never acknowledged that did not happen."""
        token = self._sealer.open(TokenKind.ACCESS, presented) or self._sealer.open(TokenKind.REFRESH, presented)
        if token is None:
            return await self._limits.invented_token(presented)
        if app is not None and token.client != app.client_id:
            # Counted where the same string counts without credentials: the figures tell nothing of it either.
            return await self._limits.foreign_token(token.user, presented)
        proven = app is not None and authenticated
        reply = await self._scripts.run(
            "revoke_token",
            {
                **keys.token(token.user, token.client, token.id, token.generation),
                "presented": keys.presented(token.user, fingerprint(presented)),
                "window": keys.limit(token.user, OAUTH.name),
                "audit": keys.audit(token.user),
                "outbox": keys.outbox(token.user),
            },
            kind="access" if token.kind is TokenKind.ACCESS else "refresh",
            client=token.client,
            limit=OAUTH.limit,
            period=OAUTH.period,
            member=keys.member(token.user),
            generation=token.generation,
            authenticated="1" if proven else "",
        )
        self._wakeup.add(token.user, not proven)
        return let_in(OAUTH, reply)

    def _response(
        self, token: Token, generation: int, scope: str, expires_in: int, window: Window | None
    ) -> TokenResponse:
        issued = Token(TokenKind.ACCESS, token.user, token.client, token.id, generation)
        access, refresh = self._sealer.seal_as((TokenKind.ACCESS, TokenKind.REFRESH), issued)
        return TokenResponse(access, refresh, expires_in, scope, window)


def _bad_code() -> Refused:
    return Refused("invalid_grant", "The code is expired, used, or not one of this app's.")


def _bad_refresh_token() -> Refused:
    return Refused("invalid_grant", "The refresh token is expired, used, revoked, or not one of this app's.")
