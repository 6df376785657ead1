"""Identity assertions as authorization grants: the checks of a token with which an issuer connects an app for somebody.

RFC 7523 3, and draft-ietf-oauth-identity-assertion-authz-grant 3 and 4.4.1, called "the draft" here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from store.apps.profiles import ProfileRules
from store.crypto.jose import claims as checks
from store.crypto.jose import jws
from store.crypto.jose.jwk import PublicKey
from store.crypto.jose.refusal import JoseError
from store.crypto.seal import fingerprint
from store.lifetimes import ID_JAG_LIFE, SECOND
from store.names import normalise_email
from store.oauth.assertions.issuers import TrustedIssuer
from store.oauth.client_assertions import KEPT_LONGER, LEEWAY, LONGEST_JTI

ID_JAG = "oauth-id-jag+jwt"
LONGEST_LIFE = ID_JAG_LIFE // SECOND
LONGEST_SUB = 255
LONGEST_SCOPE = 2048
MOST_RESOURCES, LONGEST_RESOURCE = 10, 512
MOST_EMAIL = 254
_NOT_HERE = ("authorization_details", "aud_tenant")
"""Claims that would narrow what is granted, and that nothing here understands."""


class AssertionClaims(NamedTuple):
    """What a valid assertion says: the person's address and, unless empty, their id here (`user`), the resources and
    scopes (None if it names no scopes), the thumbprint of the key that it is bound to or empty. It counts once:
    `digest` is of its `jti` and the issuer, kept for `kept` ms. `second_step`: the person showed one to the issuer."""

    email: str
    user: str
    resources: tuple[str, ...]
    scopes: tuple[str, ...] | None
    jkt: str
    digest: str
    kept: int
    second_step: bool = False


def check_id_jag(
    text: str,
    known: Sequence[PublicKey],
    trusted: TrustedIssuer,
    audience: str,
    client: str,
    now: float,
    rules: ProfileRules,
) -> AssertionClaims:
    """Checks an assertion of an issuer with these keys, presented by an app (its client id on the wire) at `now` (s).
    `audience` is the issuer identifier of this server; `rules`: of the app's profile. Raises JoseError."""
    claims = jws.verify(text, known, algorithms=rules.among(trusted.algorithms), types=(ID_JAG,)).claims
    # The draft, 8.3: nobody gets an access token for an assertion of their own.
    if claims.get("iss") != trusted.issuer or trusted.issuer == audience:
        raise JoseError("iss")
    # The draft, 4.4.1: one audience, as text or as a list of one.
    if checks.audiences(claims) != (audience,):
        raise JoseError("aud")
    if claims.get("client_id") != client:
        raise JoseError("client_id")
    checks.check_time(claims, now, leeway=LEEWAY, longest=LONGEST_LIFE, age=LONGEST_LIFE)
    if claims.get("tenant", "") != trusted.tenant:
        raise JoseError("tenant")
    for name in _NOT_HERE:
        if name in claims:
            raise JoseError(name)
    checks.text(claims, "sub", LONGEST_SUB)
    jti = checks.text(claims, "jti", LONGEST_JTI)
    return AssertionClaims(
        _email(claims, trusted),
        checks.text(claims, "aud_sub", LONGEST_SUB) if "aud_sub" in claims else "",
        _resources(claims),
        _scopes(claims),
        _key(claims),
        fingerprint(f"{trusted.issuer} {jti}"),
        math.ceil((claims["exp"] - now + LEEWAY + KEPT_LONGER) * SECOND),
        "mfa" in amr if isinstance(amr := claims.get("amr"), list) else False,  # RFC 8176 2
    )


def _email(claims: Mapping[str, Any], trusted: TrustedIssuer) -> str:
    """The person's address, in a domain that the issuer speaks for."""
    if claims.get("email_verified", True) is not True:
        raise JoseError("email_verified")
    try:
        email = normalise_email(checks.text(claims, "email", MOST_EMAIL))
    except ValueError:
        raise JoseError("email") from None
    if email.partition("@")[2] not in trusted.domains:
        raise JoseError("domain")
    return email


def _resources(claims: Mapping[str, Any]) -> tuple[str, ...]:
    value = claims.get("resource", [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or len(listed) > MOST_RESOURCES or ("resource" in claims and not listed):
        raise JoseError("resource")
    if not all(isinstance(one, str) and 0 < len(one) <= LONGEST_RESOURCE for one in listed):
        raise JoseError("resource")
    return tuple(listed)


def _scopes(claims: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "scope" not in claims:
        return None
    return tuple(dict.fromkeys(checks.text(claims, "scope", LONGEST_SCOPE).split()))


def _key(claims: Mapping[str, Any]) -> str:
    """The draft, 8.6.1: the key in `cnf`. Another kind of proof could not be checked."""
    if "cnf" not in claims:
        return ""
    cnf = claims["cnf"]
    if not isinstance(cnf, dict) or cnf.keys() != {"jkt"}:
        raise JoseError("cnf")
    return checks.text(cnf, "jkt", 64)
