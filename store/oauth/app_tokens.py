"""Access tokens that apps get for themselves, for APIs alone: `client_credentials`. RFC 6749 4.4."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from store import keys
from store.apps.apis import Apis
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Scripts
from store.lifetimes import SECOND
from store.oauth.api_access import ApiAccess, ApiToken
from store.oauth.portions import Portions
from store.oauth.proofs import Proofs, demand_proof
from store.oauth.resources import api_of, held_for_itself, is_at, meant_api, scopes_at
from store.refused import Refused
from store.results import Window


class AppToken(NamedTuple):
    """An access token without a refresh token. `expires_in` is in seconds."""

    access_token: str
    expires_in: int
    scope: str
    window: Window


def principal_of(client_id: str) -> str:
    """The id under which an app's own tokens are stored. It has the form of a user id, and no person has it, so no
    person's data answers to these tokens."""
    return hashlib.sha256(f"app {client_id}".encode()).hexdigest()[:32]


class AppTokens:
    """Issues the tokens, for an authenticated confidential app."""

    def __init__(
        self, scripts: Scripts, sealer: Sealer, apis: Apis, access: ApiAccess, windows: Portions, proofs: Proofs
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._apis = apis
        self._access = access
        self.windows = windows
        self._proofs = proofs

    async def issue(
        self, app: Registration, target: str, names: Sequence[str], issuer: str, proof: DpopProof | None = None
    ) -> AppToken:
        """A token for an API: `target` (`store/oauth/resources.py`), or the one that has the scopes. With a proof, it
        is bound to its key. Raises Refused("unauthorized_client", "invalid_target", "invalid_scope",
        "invalid_dpop_proof" or "rate_limited"), StoreUnavailable."""
        window = await self.windows.take(app.client_id, app.calls_per_minute)
        try:
            return await self._issue(app, target, names, issuer, proof, window)
        except Refused as refusal:
            refusal.window = window
            raise

    async def _issue(
        self,
        app: Registration,
        target: str,
        names: Sequence[str],
        issuer: str,
        proof: DpopProof | None,
        window: Window,
    ) -> AppToken:
        # RFC 6749 4.4: only a confidential app proves who it is. Nobody chose one that registered itself.
        if app.public or app.origin or not app.api_scopes:
            raise Refused("unauthorized_client")
        names = tuple(dict.fromkeys(names))  # a long list may have one name many times
        target = api_of(app, target) if target else meant_api(app, names)
        api = await self._apis.active(target) if any(is_at(scope, target) for scope in app.api_scopes) else None
        if api is None or not app.rules.allows(api.jwt_alg):
            raise Refused("invalid_target", "There is no such resource for this grant.")
        having = held_for_itself(app, api)
        if not having:
            raise Refused("unauthorized_client", "Only people give this app a token for this resource.")
        scope = " ".join(scopes_at(having, names))
        token = Token(TokenKind.ACCESS, principal_of(app.client_id), app.client_id, new_id(), 0)
        access = keys.token(token.user, token.client, token.id, token.generation)["access"]
        ttl = api.token_lifetime * SECOND
        signers = await self._access.signers([api])
        demand_proof(app, proof)
        if proof is not None:
            await self._proofs.use(proof)
        jkt = proof.jkt if proof else ""
        reply = await self._scripts.run(
            "issue_app_token", {"access": access}, api=api.client_id, scope=scope, ttl=ttl, jkt=jkt
        )
        issued = reply.number("issued")
        # RFC 9068 2.2: the subject of a token without a person is the app.
        sealed, ends = self._sealer.seal(token), issued + api.token_lifetime
        made = ApiToken(api, app.client_id, app.client_id, sealed, scope, issued, ends, jkt=jkt)
        return AppToken(self._access.wire_form(made, issuer, signers), api.token_lifetime, scope, window)
