"""Access that an issuer of assertions gives an app for a person, without a page. RFC 7523 2.1."""

from __future__ import annotations

from typing import NamedTuple

from store import keys
from store.accounts.addresses import Addresses
from store.app_stats import AppStats
from store.apps.apis import Apis
from store.apps.registration import Registration
from store.bounds import Bounds
from store.crypto.dpop import DpopProof
from store.crypto.seal import Sealer, Token, TokenKind, fresh_epoch, new_id
from store.engine.scripts import Scripts
from store.lifetimes import ACCESS_TOKEN, SECOND
from store.oauth.api_access import ApiAccess
from store.oauth.assertions.asked_access import SPENDS, asked_access
from store.oauth.assertions.id_jag import AssertionClaims
from store.oauth.assertions.issuers import TrustedIssuer
from store.oauth.budgets import Budget, told_budgets
from store.oauth.proofs import Proofs, demand_proof
from store.oauth.resources import MCP
from store.refused import Refused

_REFUSALS = {
    "unknown": "The assertion names nobody who may use this app here.",
    "kept_out": "This app was disconnected for the person. Only they can allow it again, in a browser.",
    "not_allowed": "The person has not allowed this app yet. Ask them, in a browser.",
    "left_out": "The person has not allowed these scopes. Only they can, in a browser.",
    "used": "The assertion was used before: get a new one for each request.",
    "full": "The person has as many apps as one may have.",
}


class AssertedToken(NamedTuple):
    """An access token without a refresh token. `expires_in` is in seconds; `budgets`: what it may spend, if the person
    granted budgets."""

    access_token: str
    expires_in: int
    scope: str
    budgets: tuple[Budget, ...]


class AssertionGrants:
    """Gives tokens for assertions that were checked, to an authenticated confidential app."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        addresses: Addresses,
        app_stats: AppStats,
        bounds: Bounds,
        apis: Apis,
        access: ApiAccess,
        proofs: Proofs,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._addresses = addresses
        self._app_stats = app_stats
        self._bounds = bounds
        self._apis = apis
        self._access = access
        self._proofs = proofs

    async def issue(
        self,
        app: Registration,
        trusted: TrustedIssuer,
        claims: AssertionClaims,
        target: str,
        names: tuple[str, ...],
        base_url: str,
        proof: DpopProof | None = None,
    ) -> AssertedToken:
        """An access token for the person and the resource of an assertion, which it uses up. The grant of the app gets
        its scopes. `target` and `names` as in `asked_access`. With a proof, the token is bound to its key. Raises
        Refused("invalid_grant", "invalid_target", "invalid_scope" or "invalid_dpop_proof"), StoreUnavailable."""
        demand_proof(app, proof)
        # The draft, 8.6.1: an assertion that is bound to a key counts with its proof alone.
        if claims.jkt and (proof is None or proof.jkt != claims.jkt):
            raise Refused("invalid_grant", "The assertion is bound to a key: send a DPoP proof of it.")
        asked = await asked_access(app, trusted, claims, target, names, base_url, self._apis)
        user = await self._addresses.find(claims.email)
        if user is None or claims.user not in ("", user):
            raise Refused("invalid_grant", _REFUSALS["unknown"])
        async with self._proofs.counted(proof):
            allowed = await self._access.allowed(app, asked.api)
            api = allowed.apis.get(asked.api)
            lasts = api.token_lifetime * SECOND if api else ACCESS_TOKEN
            token = Token(TokenKind.ACCESS, user, app.client_id, new_id(), 0)
            jkt = proof.jkt if proof else ""
            reply = await self._scripts.run(
                "accept_assertion",
                {
                    **keys.person(user),
                    **keys.hosted(user, app.client_id),
                    **keys.token(user, app.client_id, token.id, 0),
                    **keys.outbox_keys(user[:3]),
                    "app_users": keys.shard_app_users(user[:3], app.client_id),
                    "redeemed": keys.redeemed(user, claims.digest),
                },
                email=claims.email,
                issuer=trusted.issuer,
                kept=claims.kept,
                implied="1" if trusted.implied else "",
                scope=" ".join(asked.scopes),
                spend_limit=str(trusted.spend_limit) if SPENDS in asked.scopes else "",
                api=asked.api,
                lasts=lasts,
                jkt=jkt,
                client=app.client_id,
                member=keys.member(user),
                prefix=keys.prefix(user),
                shard=keys.shard_prefix(user),
                fresh_epoch=fresh_epoch(),
                access_ttl=ACCESS_TOKEN,
                family_id=token.id,
                most_apps=self._bounds.grants,
                most_families=self._bounds.families,
                allowed=app.members_of,
            )
            if reply.word != "ok":
                raise Refused("invalid_grant", _REFUSALS[reply.word])
        if reply.number("connected"):
            self._app_stats.connected(app.client_id)
        sealed, scope, row = self._sealer.seal(token), reply.text("scope"), reply.rows("api")
        if row and row[0] != MCP.encode():
            sealed, _ = await self._access.for_person(app, user, sealed, scope, row, allowed, base_url, jkt)
        return AssertedToken(sealed, lasts // SECOND, scope, told_budgets(reply.rows("budgets")))
