"""Logout tokens: tell an app that a session has ended. OpenID Connect Back-Channel Logout 1.0, 2.4."""

from __future__ import annotations

from store.crypto.seal import new_id
from store.crypto.signing_keys import SigningKeys

LIFETIME = 120
"""Seconds. 4: a captured token should not work for long."""
TYPE = "logout+jwt"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


class LogoutTokens:
    """Writes logout tokens, with the keys that sign ID tokens."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    async def sign(self, issuer: str, client_id: str, sub: str, sid: str, algorithm: str, now: int) -> str:
        """A new token for an app, valid for two minutes from `now` (epoch seconds). Raises StoreUnavailable."""
        signer = await self._keys.for_signing(algorithm)
        claims = {
            "iss": issuer,
            "aud": client_id,
            "sub": sub,
            "sid": sid,
            "iat": now,
            "exp": now + LIFETIME,
            "jti": new_id(),
            "events": {EVENT: {}},
        }
        return signer.sign(claims, TYPE)
