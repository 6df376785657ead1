"""ID tokens. OpenID Connect Core 2, 3.1.3.6, 12.2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from store.clock import wall
from store.crypto.jose.algorithms import half_hash
from store.crypto.jose.claims import audiences
from store.crypto.jose.refusal import JoseError
from store.crypto.signing_keys import Signer, SigningKeys
from store.oauth.tokens import TokenResponse
from store.refused import Refused
from store.results import Profile

LIFETIME = 3600
"""Seconds."""
TYPE = "JWT"


class IdTokens:
    """Writes ID tokens, and reads them as hints."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    async def signer(self, algorithm: str) -> Signer:
        """The key that signs now. Raises StoreUnavailable."""
        return await self._keys.for_signing(algorithm)

    async def hinted(self, hint: str, issuer: str, client_id: str) -> str:
        """The `sub` of an ID token of this app that was sent as `id_token_hint`, however old (Core 3.1.2.1). Raises
        Refused("invalid_request") for anything else."""
        try:
            found = await self._keys.verify(hint, types=(TYPE,))
            if found.claims.get("iss") != issuer or client_id not in audiences(found.claims):
                raise JoseError("audience")
            sub = found.claims.get("sub")
        except JoseError:
            raise Refused("invalid_request", "id_token_hint is no ID token of this app.") from None
        if not isinstance(sub, str):
            raise Refused("invalid_request", "id_token_hint is no ID token of this app.")
        return sub


def claims_of(profile: Profile, scopes: Iterable[str], picture: str) -> dict[str, Any]:
    """The claims about a person that scopes give (SPEC 2.3; Core 5.4), without `sub`. `picture` is its address."""
    held = set(scopes)
    claims: dict[str, Any] = {}
    if held & {"profile", "email"}:
        claims |= {"email": profile.email, "email_verified": profile.email_verified}
    if "profile" in held:
        claims |= {"name": profile.name, "picture": picture}
    return claims


def id_token_claims(
    response: TokenResponse, client_id: str, algorithm: str, issuer: str, picture: str
) -> dict[str, Any]:
    """The claims of the ID token that goes with a token response of an OpenID sign-in."""
    sign_in, now = response.sign_in, int(wall.time())
    assert sign_in is not None
    claims: dict[str, Any] = {
        "iss": issuer,
        "sub": sign_in.profile.user,
        "aud": client_id,
        "exp": now + LIFETIME,
        "iat": now,
        "auth_time": sign_in.auth_time,
        "sid": sign_in.sid,
        "acr": sign_in.acr,
        "amr": list(sign_in.amr),
        "azp": client_id,
        "at_hash": half_hash(algorithm, response.access_token),
        **claims_of(sign_in.profile, response.scope.split(" "), picture),
    }
    if sign_in.nonce:
        claims["nonce"] = sign_in.nonce
    return claims
