"""Signed tokens in compact form (RFC 7515, 7519): one writer, one strict reader.

Tokens of this server's own are sealed (`store/crypto/seal.py`). This form is for what others read (ID tokens, logout
tokens, RFC 9068) and for what standards have clients send (assertions, DPoP proofs, request objects, hints). The reader
follows RFC 8725: the caller names the algorithms, the keys and the type; nothing in the token chooses them. A token is
measured before it is decoded, and its claims are parsed only after its signature was verified.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from store.crypto.jose import base64url
from store.crypto.jose.algorithms import is_signed
from store.crypto.jose.claims import check_dates
from store.crypto.jose.jwk import LONGEST_KID, PublicKey, parse_key
from store.crypto.jose.private import PrivateKey
from store.crypto.jose.refusal import JoseError
from store.json_text import NotJSON, check_surrogates, decode_strictly

LONGEST = 8 * 2**10
"""In characters, unless the caller says otherwise."""
DEEPEST = 16
MOST_KEPT, LONGEST_KEPT = 2048, 1024
"""Headers with keys of their own that are kept, each with its parsed key, and the characters of one. All proofs of a
program have the same header. It is kept once a signature fits it, so that only who has a key takes a place."""
MOST_WRITTEN = 64
"""Headers of our own tokens that are kept: one for each type and key."""
_REFUSED = ("crit", "b64", "zip", "enc", "cty", "jku", "x5u", "x5c")
"""Header members that would change how a token is read, or whose key verifies it."""


_own_keys: OrderedDict[tuple[str, tuple[str, ...], tuple[str | None, ...]], tuple[Mapping[str, Any], PublicKey]]
_own_keys = OrderedDict()


@dataclass(frozen=True, slots=True)
class Verified:
    """A token whose signature was verified. Who may have sent it, to whom and when, is for the caller to check."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    key: PublicKey


@dataclass(frozen=True, slots=True)
class Unverified:
    """What a token claims of its sender. Anybody can have written it."""

    iss: str
    sub: str


def sign(claims: Mapping[str, Any], key: PrivateKey, typ: str, kid: str = "") -> str:
    """The claims as a token of this type, signed. `kid`: another name of the key than its own."""
    signed = f"{_written_header(typ, key.algorithm, kid or key.kid)}.{base64url.encode(orjson.dumps(claims))}"
    return f"{signed}.{base64url.encode(key.sign(signed.encode()))}"


@lru_cache(maxsize=MOST_WRITTEN)
def _written_header(typ: str, algorithm: str, kid: str) -> str:
    return base64url.encode(orjson.dumps({"typ": typ, "alg": algorithm, "kid": kid}))


def verify(
    text: str,
    keys: Sequence[PublicKey],
    *,
    algorithms: Collection[str],
    types: Collection[str | None],
    longest: int = LONGEST,
) -> Verified:
    """Verifies a token with one of `keys`. A name in the token (`kid`) only chooses among them; a key without a name
    fits every one. `types`: accepted values of `typ`; None if it may be absent. Raises JoseError."""
    parts = _split(text, longest)
    header = _header(parts, algorithms, types)
    if "jwk" in header:
        raise JoseError("jwk_in_header")
    algorithm, kid = header["alg"], header.get("kid")
    fitting = [key for key in keys if algorithm in key.algorithms and (kid is None or key.kid in (None, kid))]
    if not fitting:
        raise JoseError("unknown_key")
    message, signature = _signed(parts)
    for key in fitting:
        if is_signed(algorithm, key.key, message, signature):
            return Verified(header, _claims(parts), key)
    raise JoseError("signature")


def verify_with_own_key(
    text: str, *, algorithms: Collection[str], types: Collection[str | None], longest: int = LONGEST
) -> Verified:
    """Verifies a token with the key in its own header: it proves that its sender has that key, and nothing else. For
    DPoP (RFC 9449 4.3). Raises JoseError."""
    parts = _split(text, longest)
    asked = (parts[0], tuple(algorithms), tuple(types))
    known = _own_keys.get(asked)
    header, key = known or _own_key(parts, algorithms, types)
    if not is_signed(header["alg"], key.key, *_signed(parts)):
        raise JoseError("signature")
    if known is not None:
        _own_keys.move_to_end(asked)
    elif len(parts[0]) <= LONGEST_KEPT:
        _own_keys[asked] = header, key
        while len(_own_keys) > MOST_KEPT:
            _own_keys.popitem(last=False)
    return Verified(header, _claims(parts), key)


def _own_key(
    parts: list[str], algorithms: Collection[str], types: Collection[str | None]
) -> tuple[Mapping[str, Any], PublicKey]:
    header = _header(parts, algorithms, types)
    key = parse_key(header.get("jwk"))
    if header["alg"] not in key.algorithms:
        raise JoseError("unknown_key")
    return header, key


def unverified_sender(text: str, longest: int = LONGEST) -> Unverified:
    """The `iss` and `sub` that a token claims, before anything is verified: only to find the keys for `verify`. Raises
    JoseError, also if one of them is missing."""
    claims = _object(_split(text, longest)[1])
    iss, sub = claims.get("iss"), claims.get("sub")
    if not isinstance(iss, str) or not isinstance(sub, str):
        raise JoseError("claims")
    return Unverified(iss, sub)


def _split(text: str, longest: int) -> list[str]:
    if len(text) > longest:
        raise JoseError("too_long")
    # Five parts are an encrypted token (RFC 7516), and no signature is no token.
    if text.count(".") != 2 or not text.isascii():
        raise JoseError("not_compact")
    parts = text.split(".")
    if not all(parts):
        raise JoseError("not_compact")
    return parts


def _header(parts: list[str], algorithms: Collection[str], types: Collection[str | None]) -> dict[str, Any]:
    header = _object(parts[0])
    # RFC 7515 4.1.11: an extension that is not understood is refused. None is understood here.
    for name in _REFUSED:
        if name in header:
            raise JoseError(f"header_{name}")
    if header.get("alg") not in tuple(algorithms):
        raise JoseError("alg")
    if _type(header.get("typ")) not in map(_type, types):
        raise JoseError("typ")
    kid = header.get("kid")
    if kid is not None and not (isinstance(kid, str) and len(kid) <= LONGEST_KID):
        raise JoseError("kid")
    return header


def _type(typ: object) -> str | None:
    """A media type without case and without "application/" (RFC 7515 4.1.9)."""
    if typ is None:
        return None
    if not isinstance(typ, str):
        raise JoseError("typ")
    return typ.lower().removeprefix("application/")


def _signed(parts: list[str]) -> tuple[bytes, bytes]:
    return f"{parts[0]}.{parts[1]}".encode(), base64url.decode(parts[2])


def _claims(parts: list[str]) -> dict[str, Any]:
    claims = _object(parts[1])
    check_dates(claims)
    return claims


def _object(part: str) -> dict[str, Any]:
    try:
        raw = base64url.decode(part)
        value = decode_strictly(raw, DEEPEST)
        check_surrogates(raw)
    except NotJSON:
        raise JoseError("json") from None
    if not isinstance(value, dict):
        raise JoseError("json")
    return value
