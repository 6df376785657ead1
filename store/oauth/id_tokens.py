"""ID tokens. OpenID Connect Core 2, 3.1.3.6, 12.2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

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
NO_HINT = "id_token_hint is no ID token of this app."


class Hint(NamedTuple):
    """An ID token that an app sent back: the app that it is for, the person, the session's public id (empty if it names
    none), and how it is signed."""

    client_id: str
    sub: str
    sid: str
    algorithm: str


class IdTokens:
    """Writes ID tokens, and reads them as hints."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    async def signer(self, algorithm: str) -> Signer:
        """The key that signs now. Raises StoreUnavailable."""
        return await self._keys.for_signing(algorithm)

    async def read_hint(self, text: str, issuer: str, client_id: str | None = None) -> Hint:
        """The ID token that was sent as `id_token_hint`, however old (Core 3.1.2.1), if it is one for this app; without
        a `client_id`, for the app that it names. Raises Refused("invalid_request") for anything else."""
        try:
            found = await self._keys.verify(text, types=(TYPE,))
            named = audiences(found.claims)
            client = client_id or (named[0] if len(named) == 1 else "")
            if found.claims.get("iss") != issuer or client not in named:
                raise JoseError("audience")
        except JoseError:
            raise Refused("invalid_request", NO_HINT) from None
        sub, sid = found.claims.get("sub"), found.claims.get("sid", "")
        if not isinstance(sub, str) or not isinstance(sid, str):
            raise Refused("invalid_request", NO_HINT)
        return Hint(client, sub, sid, found.header["alg"])


def claims_of(profile: Profile, scopes: Iterable[str], picture: str) -> dict[str, Any]:
    """The claims about a person that scopes give (SPEC 2.3; Core 5.4), without `sub`. `picture` is its address."""
    held = set(scopes)
    claims: dict[str, Any] = {}
    if held & {"profile", "email"}:
        claims |= {"email": profile.email, "email_verified": profile.email_verified}
    if "profile" in held:
        claims |= {"name": profile.name, "picture": picture}
    if "groups" in held:
        claims["groups"] = list(profile.groups)
    return claims


def id_token_claims(
    response: TokenResponse, sub: str, sid: str, client_id: str, algorithm: str, issuer: str, picture: str
) -> dict[str, Any]:
    """The claims of the ID token that goes with a token response of an OpenID sign-in. `sub` and `sid`: the person and
    the session, as the app knows them; the latter is empty for a device, whose sign-in is no part of a session."""
    sign_in, now = response.sign_in, int(wall.time())
    assert sign_in is not None
    claims: dict[str, Any] = {
        "iss": issuer,
        "sub": sub,
        "aud": client_id,
        "exp": now + LIFETIME,
        "iat": now,
        "auth_time": sign_in.auth_time,
        "acr": sign_in.acr,
        **({"amr": list(sign_in.amr)} if sign_in.amr else {}),
        "azp": client_id,
        "at_hash": half_hash(algorithm, response.access_token),
        **claims_of(sign_in.profile, sign_in.scopes, picture),
    }
    if sid:
        claims["sid"] = sid
    if sign_in.nonce:
        claims["nonce"] = sign_in.nonce
    return claims
