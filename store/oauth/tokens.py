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
from store.crypto.dpop import DpopProof
from store.crypto.seal import Sealer, Token, TokenKind, fingerprint, fresh_epoch, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import ACCESS_TOKEN, DAY, REFRESH_TOKEN
from store.limits import RateLimits
from store.oauth.api_access import AllowedApis, ApiAccess
from store.oauth.budgets import Budget, told_budgets
from store.oauth.proofs import Proofs, demand_proof
from store.oauth.resources import MCP, OWN
from store.oauth.sign_in import STEPPED, SignInFacts, sign_in_of
from store.oauth.token_refusals import GONE_FOR_NOW, NO_TARGET, bad_code, bad_refresh_token, refuse_code, refuse_refresh
from store.refused import Refused, UnknownUser, let_in
from store.results import Window
from store.webhooks.relay_wakeup import RelayWakeup

MS_PER_SECOND = 1000


class TokenResponse(NamedTuple):
    """A token response (SPEC 2.2). `expires_in` is in seconds; `window` is None if no limit applies. `sign_in`: what an
    ID token says of the sign-in; None without the scope `openid`. `budgets`: what the token may spend."""

    access_token: str
    refresh_token: str
    expires_in: int
    scope: str
    window: Window | None = None
    sign_in: SignInFacts | None = None
    budgets: tuple[Budget, ...] = ()


def s256(verifier: str) -> str:
    """RFC 7636 4.6: base64url(SHA-256(verifier)) without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Tokens:
    """The token endpoint's operations, for an authenticated app. Refresh tokens end `refresh_days` after a sign-in,
    unless the app is registered with fewer days; 0: they do not end."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        limits: RateLimits,
        app_stats: AppStats,
        wakeup: RelayWakeup,
        bounds: Bounds,
        apis: ApiAccess,
        proofs: Proofs,
        refresh_days: int = 0,
    ) -> None:
        self._bounds = bounds
        self._proofs = proofs
        self._apis = apis
        self._scripts = scripts
        self._sealer = sealer
        self._limits = limits
        self._app_stats = app_stats
        self._wakeup = wakeup
        self.refresh_days = refresh_days

    def _lifetime(self, app: Registration) -> int:
        """The lifetime of this app's families in ms; 0: unlimited."""
        return app.refresh_days(self.refresh_days) * DAY

    def open_access(self, presented: str) -> Token | None:
        """Opens an access token; None for a text that is forged, mangled or of another kind. No I/O."""
        return self._sealer.open(TokenKind.ACCESS, presented)

    async def exchange(
        self,
        app: Registration,
        code: str,
        redirect_uri: str,
        verifier: str | None,
        proof: DpopProof | None = None,
        *,
        target: str = "",
        issuer: str = "",
        details: str = "",
    ) -> TokenResponse:
        """Exchanges a code for the first tokens of a family with the code's id. SPEC 4.3, RFC 6749 4.1.3. The access
        token is for `target` (`store/oauth/resources.py`); a JWT says that it is from `issuer`. `details`: the granted
        budgets that the request names, as scripts take them.

        With a proof, the tokens are bound to its key (RFC 9449 5). A used code kills that family (RFC 6749 4.1.2). A
        failed check does not change the code. Raises Refused("invalid_grant", "invalid_dpop_proof", "invalid_target",
        "invalid_authorization_details" or "rate_limited"), UnknownUser for a code that names no live grant.
        """
        token = self._sealer.open(TokenKind.CODE, code)
        if token is None or token.client != app.client_id:
            raise UnknownUser(bad_code())
        async with self._proofs.counted(proof):
            bound, group = self._bound(app, proof), self._limits.rates.oauth
            allowed = await self._apis.allowed(app, target)
            reply = await self._scripts.run(
                "exchange_code",
                {
                    **keys.token(token.user, token.client, token.id, 0),
                    "code": keys.code(token.user, token.id),
                    "window": keys.limit(token.user, group.name),
                    "audit": keys.audit(token.user),
                    "outbox": keys.outbox(token.user),
                },
                client=app.client_id,
                redirect_uri=redirect_uri,
                challenge=s256(verifier) if verifier is not None else "",
                registered=allowed.registered,
                access_ttl=ACCESS_TOKEN,
                refresh_ttl=REFRESH_TOKEN,
                lifetime=self._lifetime(app),
                limit=group.limit,
                period=group.period,
                terms=app.terms,
                member=keys.member(token.user),
                prefix=keys.prefix(token.user),
                family_id=token.id,
                most=self._bounds.families,
                target=target,
                apis=allowed.lifetimes,
                details=details,
                demanded=allowed.demanded,
                stepped=STEPPED if allowed.demanded else "",
                **bound,
            )
            if reply.word in ("dead", "replayed"):
                self._wakeup.add(token.user, reply.word == "replayed")
                raise UnknownUser(bad_code())
            window = let_in(group, reply)
            refuse_code(reply, window)
            lasts, sign_in = ACCESS_TOKEN // MS_PER_SECOND, sign_in_of(token.user, reply)
            issued = self._response(token, 0, reply.text("scope"), lasts, window, sign_in)
            issued = issued._replace(budgets=told_budgets(reply.rows("budgets")))
        return await self._in_its_form(issued, token.user, app, reply, allowed, issuer, bound["jkt"])

    async def refresh(
        self,
        app: Registration,
        refresh_token: str,
        scopes: Sequence[str],
        proof: DpopProof | None = None,
        *,
        target: str = "",
        issuer: str = "",
        details: str = "",
    ) -> TokenResponse:
        """Rotates a refresh token; `scopes` narrow this access token, empty means all. SPEC 3.1, RFC 6749 6. See
        `exchange` for `target`, `issuer` and `details`.

        With a proof, the tokens are bound to its key; that of a public app stays the family's only key (RFC 9449 5). A
        used or revoked token is a replay: every token of the pair dies. Raises Refused("invalid_grant",
        "invalid_dpop_proof", "invalid_target", "invalid_scope", "invalid_authorization_details" or "rate_limited"),
        UnknownUser for a token that names no live grant.
        """
        token = self._sealer.open(TokenKind.REFRESH, refresh_token)
        if token is None or token.client != app.client_id:
            raise UnknownUser(bad_refresh_token())
        async with self._proofs.counted(proof):
            bound = self._bound(app, proof)
            allowed = await self._apis.allowed(app, target)
            generation, group = token.generation + 1, self._limits.rates.oauth
            reply = await self._scripts.run(
                "rotate_refresh",
                {
                    **keys.token(token.user, token.client, token.id, generation),
                    "window": keys.limit(token.user, group.name),
                    "audit": keys.audit(token.user),
                    "outbox": keys.outbox(token.user),
                },
                client=app.client_id,
                generation=token.generation,
                wanted=" ".join(scopes),
                registered=allowed.registered,
                fresh_epoch=fresh_epoch(),
                retry_ms=app.refresh_retry_seconds * 1000,
                access_ttl=ACCESS_TOKEN,
                refresh_ttl=REFRESH_TOKEN,
                lifetime=self._lifetime(app),
                limit=group.limit,
                period=group.period,
                member=keys.member(token.user),
                target=target,
                apis=allowed.lifetimes,
                details=details,
                allowed=app.members_of,
                demanded=allowed.demanded,
                stepped=STEPPED if allowed.demanded else "",
                **bound,
            )
            if reply.word in GONE_FOR_NOW:
                raise UnknownUser(Refused("invalid_grant", GONE_FOR_NOW[reply.word]))
            if reply.word in ("dead", "replayed"):
                self._wakeup.add(token.user, reply.word == "replayed")
                raise UnknownUser(bad_refresh_token())
            if reply.word == "other_key":
                raise UnknownUser(Refused("invalid_grant", "The refresh token is bound to another key."))
            window = let_in(group, reply)
            refuse_refresh(reply, window)
            lasts, sign_in = reply.number("expires_in"), sign_in_of(token.user, reply)
            issued = self._response(token, generation, reply.text("scope"), lasts, window, sign_in)
            issued = issued._replace(budgets=told_budgets(reply.rows("budgets")))
        return await self._in_its_form(issued, token.user, app, reply, allowed, issuer, bound["jkt"])

    async def mint(
        self, user: str, app: Registration, scopes: Sequence[str], *, api: str = "", jkt: str = "", issuer: str = ""
    ) -> TokenResponse:
        """Grants and issues tokens for the operator, as a consent to the stored scopes and an exchange would: a live
        grant keeps its other scopes. `api`: the API (its client id), MCP, or empty; `jkt`: the
        thumbprint of the key that the tokens are bound to, or empty. A JWT says that it is from `issuer`.

        Raises Refused("not_found") if the person is not active, Refused("access_denied") if they have the most apps
        allowed, Refused("invalid_dpop_proof") without a key if the app's tokens are bound to keys,
        Refused("invalid_target") if the app gets no tokens for the API, StoreUnavailable."""
        if not jkt:
            demand_proof(app, None)
        allowed = await self._apis.allowed(app, api or OWN)
        if api not in ("", MCP) and api not in allowed.apis:
            raise Refused("invalid_target", NO_TARGET)
        row_ttl = allowed.apis[api].token_lifetime * MS_PER_SECOND if api in allowed.apis else ACCESS_TOKEN
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
            api=api,
            row_ttl=row_ttl,
            jkt=jkt,
            binds="1" if app.public else "",
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such active person.")
        if reply.word == "full":
            raise Refused("access_denied", "This person has as many apps as one may have: see person_grant_limit.")
        if reply.number("connected"):
            self._app_stats.connected(app.client_id)
        issued = self._response(token, 0, reply.text("scope"), row_ttl // MS_PER_SECOND, None)
        return await self._in_its_form(issued, user, app, reply, allowed, issuer, jkt)

    async def revoke(
        self, app: Registration | None, presented: str, *, authenticated: bool = True, issuer: str = ""
    ) -> Window:
        """Ends an access token, or a refresh token with its family (SPEC 4.5, RFC 7009). Does not reveal the outcome.
        With `app`, only that app's tokens are affected; `authenticated`: the app proved its identity, as far as its
        kind can. Otherwise a superseded refresh token ends nothing. A JWT from `issuer` ends for those who ask about
        it. Raises Refused("rate_limited"), and StoreUnavailable, because a revocation that did not happen is never
        acknowledged."""
        sealed = await self._apis.sealed_in(presented, issuer)
        token = self._sealer.open(TokenKind.ACCESS, sealed) or self._sealer.open(TokenKind.REFRESH, sealed)
        if token is None:
            return await self._limits.invented_token(presented)
        if app is not None and token.client != app.client_id:
            # Counted in the window of the same string without credentials, so the figures reveal nothing either.
            return await self._limits.foreign_token(token.user, presented)
        proven, group = app is not None and authenticated, self._limits.rates.oauth
        reply = await self._scripts.run(
            "revoke_token",
            {
                **keys.token(token.user, token.client, token.id, token.generation),
                "presented": keys.presented(token.user, fingerprint(presented)),
                "window": keys.limit(token.user, group.name),
                "audit": keys.audit(token.user),
                "outbox": keys.outbox(token.user),
            },
            kind="access" if token.kind is TokenKind.ACCESS else "refresh",
            client=token.client,
            limit=group.limit,
            period=group.period,
            member=keys.member(token.user),
            generation=token.generation,
            authenticated="1" if proven else "",
        )
        self._wakeup.add(token.user, not proven)
        return let_in(group, reply)

    def _bound(self, app: Registration, proof: DpopProof | None) -> dict[str, str]:
        """The scripts' arguments about the key of a proof. Raises Refused("invalid_dpop_proof") without one, if the app
        needs it."""
        demand_proof(app, proof)
        return {"jkt": proof.jkt if proof else "", "binds": "1" if app.public else ""}

    def _response(
        self,
        token: Token,
        generation: int,
        scope: str,
        expires_in: int,
        window: Window | None,
        sign_in: SignInFacts | None = None,
    ) -> TokenResponse:
        issued = Token(TokenKind.ACCESS, token.user, token.client, token.id, generation)
        access, refresh = self._sealer.seal_as((TokenKind.ACCESS, TokenKind.REFRESH), issued)
        return TokenResponse(access, refresh, expires_in, scope, window, sign_in)

    async def _in_its_form(
        self,
        response: TokenResponse,
        user: str,
        app: Registration,
        reply: Reply,
        allowed: AllowedApis,
        issuer: str,
        jkt: str,
    ) -> TokenResponse:
        """The response with the access token in the form that its API wants."""
        row = reply.rows("api")
        if not row or row[0] == MCP.encode():
            return response
        token, lasts = await self._apis.for_person(
            app, user, response.access_token, response.scope, row, allowed, issuer, jkt
        )
        return response._replace(access_token=token, expires_in=min(response.expires_in, lasts))
