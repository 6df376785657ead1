"""Request objects: authorization requests that an app has signed. RFC 9101, OpenID Connect Core 6.1."""

from __future__ import annotations

import json
from collections.abc import Sequence

from store.apps.profiles import NONE, PROFILES, ProfileRules
from store.crypto.jose import claims as checks
from store.crypto.jose import jws
from store.crypto.jose.jwk import PublicKey
from store.crypto.jose.refusal import JoseError
from store.oauth.client_assertions import CLIENT_ALGORITHMS, LEEWAY

TYPES = ("oauth-authz-req+jwt", "JWT", None)
"""RFC 9101 10.8: many programs for OpenID Connect name no type."""
_OF_JWT = frozenset({"iss", "aud", "exp", "nbf", "iat", "jti"})
_NEVER = frozenset({"request", "request_uri"})


def read_object(
    text: str,
    known: Sequence[PublicKey],
    client: str,
    issuer: str,
    now: float | None,
    rules: ProfileRules = PROFILES[NONE],
) -> list[tuple[str, str]]:
    """The parameters in a request object of the app with these keys. `now` (s) is the time to check its dates at; None
    if they were checked when the browser arrived with it; `rules` are those of its profile. Raises JoseError."""
    claims = jws.verify(text, known, algorithms=rules.among(CLIENT_ALGORITHMS), types=TYPES).claims
    if claims.get("iss") != client or claims.get("client_id") != client:
        raise JoseError("sender")
    # RFC 9101 10.8: an object with this subject could be taken for a client assertion.
    if claims.get("sub") == client:
        raise JoseError("sub")
    if issuer not in checks.audiences(claims):
        raise JoseError("aud")
    # RFC 9101 4, 10.7: an object is never in an object.
    if not _NEVER.isdisjoint(claims):
        raise JoseError("nested")
    if now is not None:
        checks.check_time(claims, now, leeway=LEEWAY)
    found = ((name, value) for name, value in claims.items() if name not in _OF_JWT and value is not None)
    return [(name, _text(one)) for name, value in found for one in _values(name, value)]


def _values(name: str, value: object) -> Sequence[object]:
    """The values of a parameter, as an object has them: several resources are an array (RFC 8707 2.1)."""
    return value if name == "resource" and isinstance(value, list) else (value,)


def _text(value: object) -> str:
    """A parameter as a query has it: an object, such as `claims`, is JSON there. Raises JoseError("json")."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if "\0" in text:
        raise JoseError("json")
    return text
