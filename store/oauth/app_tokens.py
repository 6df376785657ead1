"""Access tokens that apps get for themselves, for APIs alone: `client_credentials`. RFC 6749 4.4."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from store import keys
from store.apps.api_record import JWT_FORMAT, ApiRegistration
from store.apps.apis import Apis
from store.apps.registration import Registration
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.crypto.signing_keys import SigningKeys
from store.engine.scripts import Scripts
from store.lifetimes import SECOND
from store.oauth.portions import Portions
from store.oauth.resources import meant_api, scopes_at
from store.refused import Refused
from store.results import Window

AT_JWT = "at+jwt"
"""The type of a JWT access token (RFC 9068 2.1)."""


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

    def __init__(self, scripts: Scripts, sealer: Sealer, signing: SigningKeys, apis: Apis, windows: Portions) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._signing = signing
        self._apis = apis
        self.windows = windows

    async def issue(self, app: Registration, resource: str | None, names: Sequence[str], issuer: str) -> AppToken:
        """A token for an API: the one with the identifier `resource`, or the one that has the scopes. Raises
        Refused("unauthorized_client", "invalid_target", "invalid_scope" or "rate_limited"), StoreUnavailable."""
        window = await self.windows.take(app.client_id)
        try:
            return await self._issue(app, resource, names, issuer, window)
        except Refused as refusal:
            refusal.window = window
            raise

    async def _issue(
        self, app: Registration, resource: str | None, names: Sequence[str], issuer: str, window: Window
    ) -> AppToken:
        # RFC 6749 4.4: only a confidential app proves who it is.
        if app.public or not app.api_scopes:
            raise Refused("unauthorized_client")
        if resource is None:
            api = await self._apis.active(meant_api(app, names))
        else:
            api = await self._apis.named(resource)
        if api is None:
            raise Refused("invalid_target", "There is no such resource for this grant.")
        scope = " ".join(scopes_at(app, api, names))
        token = Token(TokenKind.ACCESS, principal_of(app.client_id), app.client_id, new_id(), 0)
        access = keys.token(token.user, token.client, token.id, token.generation)["access"]
        ttl = api.token_lifetime * SECOND
        reply = await self._scripts.run("issue_app_token", {"access": access}, api=api.client_id, scope=scope, ttl=ttl)
        sealed, issued = self._sealer.seal(token), reply.number("issued")
        if api.token_format == JWT_FORMAT:
            signer = await self._signing.for_signing(api.signing_alg)
            sealed = signer.sign(_claims(app, api, sealed, scope, issued, issuer), AT_JWT)
        return AppToken(sealed, api.token_lifetime, scope, window)


def _claims(
    app: Registration, api: ApiRegistration, sealed: str, scope: str, issued: int, issuer: str
) -> dict[str, str | int]:
    """The claims of RFC 9068 2.2. `jti` is the sealed token, by which introspection and revocation find the row."""
    return {
        "iss": issuer,
        "aud": api.identifier,
        "sub": app.client_id,
        "client_id": app.client_id,
        "iat": issued,
        "exp": issued + api.token_lifetime,
        "jti": sealed,
        "scope": scope,
    }
