"""DPoP proofs: the sender of a request shows that it has a key. RFC 9449 4.

A check takes about 0.1 ms, most of it for the signature. A proof is measured before anything in it is read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import NamedTuple

from store.crypto.jose import base64url, jws
from store.crypto.jose.algorithms import ED25519, EDDSA, ES256, PS256, RS256
from store.crypto.jose.claims import check_time, text
from store.crypto.jose.refusal import JoseError
from store.crypto.seal import fingerprint

ALGORITHMS = (ES256, RS256, PS256, EDDSA, ED25519)
TYPE = "dpop+jwt"
LONGEST = 6 * 2**10
"""In characters: room for an RSA key of 4,096 bits, its signature, and the longest address of ours."""
LEEWAY = 60
"""Seconds that a proof may be older or newer than the present."""
_LONGEST_TEXT = 256

# Possessive quantifiers: otherwise a host followed by a space takes seconds, because each split of it is tried.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,15})://([!-\"$-.0->@-~]*+)([!-\"$->@-~]*+)(?:[?#][!-~]*+)?")
_AUTHORITY = re.compile(r"(.*?)(?::([0-9]*))?")
_DEFAULT_PORTS = {"https": "443", "http": "80"}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class DpopProof(NamedTuple):
    """A proof that fits its request. `jkt`: the thumbprint of its key (RFC 7638); `mark`: a digest of key, method,
    address and `jti`, the same for each copy; `nonce`: as sent, unchecked."""

    jkt: str
    mark: str
    nonce: str | None


def check_proof(
    proof: str,
    *,
    method: str,
    uri: str,
    now: float,
    access_token: str = "",
    algorithms: Collection[str] = ALGORITHMS,
) -> DpopProof:
    """Checks a proof against its request (RFC 9449 4.3). `uri`: the address of the request, without query; `now` in
    seconds; `access_token`: the token that the request presents; `algorithms`: what may sign. Raises JoseError; the
    reason is `htm`, `htu` or `ath` for a claim that does not fit, `iat` or `not_yet` for its time."""
    found = jws.verify_with_own_key(proof, algorithms=algorithms, types=(TYPE,), longest=LONGEST)
    claims, jkt = found.claims, found.key.thumbprint
    jti, expected = text(claims, "jti", _LONGEST_TEXT), normal_uri(uri)
    if claims.get("htm") != method:
        raise JoseError("htm")
    htu = claims.get("htu")
    if not expected or not isinstance(htu, str) or normal_uri(htu) != expected:
        raise JoseError("htu")
    check_time(claims, now, leeway=LEEWAY, age=0)
    if access_token and claims.get("ath") != token_hash(access_token):
        raise JoseError("ath")
    nonce = text(claims, "nonce", _LONGEST_TEXT) if "nonce" in claims else None
    # None of the first three has a space.
    return DpopProof(jkt, fingerprint(f"{jkt} {method} {expected} {jti}"), nonce)


def token_hash(access_token: str) -> str:
    """`ath`: the hash by which a proof names an access token (RFC 9449 4.2)."""
    return base64url.encode(hashlib.sha256(access_token.encode()).digest())


def is_thumbprint(value: str) -> bool:
    """Whether this can be the thumbprint of a key: 32 bytes in base64url (RFC 9449 10)."""
    try:
        return len(value) == 43 and len(base64url.decode(value)) == 32
    except JoseError:
        return False


def normal_uri(uri: str) -> str:
    """The address in its normal form, without query and fragment (RFC 3986 6.2.2, 6.2.3); empty for no address in
    ASCII."""
    match = _URI.fullmatch(uri)
    if match is None:
        return ""
    scheme, authority, path = match[1].lower(), match[2].lower(), match[3]
    parts = _AUTHORITY.fullmatch(authority)
    assert parts is not None
    host, port = parts.groups()
    if port and port != _DEFAULT_PORTS.get(scheme):
        host = f"{host}:{port}"
    return f"{scheme}://{host}{_without_dots(_ESCAPE.sub(_escaped, path))}"


def _escaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """The path without `.` and `..` (RFC 3986 5.2.4)."""
    if "/." not in path:
        return path or "/"
    kept: list[str] = []
    for segment in (segments := path.split("/")[1:]):
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
