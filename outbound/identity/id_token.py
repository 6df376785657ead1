"""The checks of an ID token from an identity provider. OpenID Connect Core 3.1.3.7, 3.1.3.8."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from outbound.identity.providers import Provider
from store.crypto.jose import claims as checks
from store.crypto.jose import jws
from store.crypto.jose.algorithms import half_hash
from store.crypto.jose.jwk import PublicKey
from store.crypto.jose.refusal import JoseError

LONGEST = 16 * 2**10
"""In characters. Tokens with many groups are longer than others."""
TYPES = (None, "JWT")
LEEWAY = 60
"""How far, in seconds, the provider's clock and ours may differ."""
AGE = 600
"""How old, in seconds, the token may be: its code was exchanged a moment ago."""


def check_id_token(
    text: str,
    keys: Sequence[PublicKey],
    provider: Provider,
    algorithms: Sequence[str],
    nonce: str,
    access_token: str,
    now: float,
) -> Mapping[str, Any]:
    """The claims of a token that this provider issued for this browser's request, at `now` (s). Raises JoseError."""
    verified = jws.verify(text, keys, algorithms=algorithms, types=TYPES, longest=LONGEST)
    claims = verified.claims
    if not provider.issued(claims):
        raise JoseError("iss")
    # Every other audience could replay the token here, and none is trusted.
    if (
        set(checks.audiences(claims)) != {provider.client_id}
        or claims.get("azp", provider.client_id) != provider.client_id
    ):
        raise JoseError("aud")
    if "exp" not in claims:
        raise JoseError("exp")
    checks.check_time(claims, now, leeway=LEEWAY, age=AGE)
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), nonce.encode()):
        raise JoseError("nonce")
    if "at_hash" in claims and claims["at_hash"] != half_hash(verified.header["alg"], access_token):
        raise JoseError("at_hash")
    checks.text(claims, "sub", 255)
    return claims
