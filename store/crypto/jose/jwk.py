"""Public keys as JSON (RFC 7517, 7518 6, 8037 2), from clients and of this server. A key is parsed once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from store.crypto.jose import base64url
from store.crypto.jose.algorithms import Public, algorithms_of
from store.crypto.jose.refusal import JoseError
from store.json_text import NotJSON, decode_strictly

JWK: TypeAlias = Mapping[str, Any]

MOST_KEYS = 20
"""The most keys of a client's set."""
LONGEST_SET = 64 * 2**10
"""In bytes. Twenty keys of RSA with 4,096 bits take a quarter of it; certificates in `x5c` take more."""
DEEPEST = 8
MOST_MEMBERS = 24
LONGEST_KID = 256
LEAST_RSA, MOST_RSA = 2048, 4096
_RSA_EXPONENTS = range(65537, 1 << 32, 2)
"""Small exponents have a long history of broken checks; large ones only cost time."""
_P256_BYTES = 32
_OF_OTHERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members that only a private or symmetric key has."""


class UnknownKey(JoseError):
    """A key of a type or purpose that is not used here. A set may have such keys (RFC 7517 5)."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A parsed public key. Two are equal if their thumbprints and names are."""

    thumbprint: str
    """RFC 7638, with SHA-256."""
    kid: str | None
    """The name that its owner gave it."""
    algorithms: tuple[str, ...] = field(compare=False)
    """What it may verify: by its type, and by `alg` if its owner named one."""
    key: Public = field(compare=False, repr=False)

    @classmethod
    def of(cls, key: Public) -> PublicKey:
        """A key of this server: its name is its thumbprint."""
        thumbprint = _thumbprint(_members(key))
        return cls(thumbprint, thumbprint, algorithms_of(key), key)

    def to_jwk(self, algorithm: str | None = None) -> dict[str, str]:
        """The key as JSON, for signatures; with `algorithm`, for that one alone."""
        named = {"kid": self.kid} if self.kid is not None else {}
        return {**_members(self.key), **named, "use": "sig", **({"alg": algorithm} if algorithm else {})}


def parse_key(value: Any) -> PublicKey:
    """A client's public key. Raises JoseError: "jwk" for a malformed one, "private_key", "weak_key"; UnknownKey for a
    type, curve or purpose that is not used here."""
    jwk = _checked(value)
    if jwk.get("use", "sig") != "sig" or not _verifies(jwk.get("key_ops")):
        raise UnknownKey("key_use")
    key = _parsed(jwk)
    algorithms = algorithms_of(key)
    if (only := jwk.get("alg")) is not None:
        algorithms = tuple(one for one in algorithms if one == only)
        if not algorithms:
            raise UnknownKey("key_alg")
    kid = jwk.get("kid")
    if kid is not None and not (isinstance(kid, str) and 0 < len(kid) <= LONGEST_KID):
        raise JoseError("jwk")
    return PublicKey(_thumbprint(_members(key)), kid, algorithms, key)


def parse_keys(value: Any, most: int = MOST_KEYS) -> tuple[PublicKey, ...]:
    """The keys of a client's set (RFC 7517 5) that can be used here: one at least. Raises JoseError: "jwks" for no set,
    "jwks_size" for too many keys, "jwks_empty" if no key can be used, and as `parse_key` for a bad key."""
    keys = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(keys, list):
        raise JoseError("jwks")
    if len(keys) > most:
        raise JoseError("jwks_size")
    found = []
    for one in keys:
        try:
            found.append(parse_key(one))
        except UnknownKey:
            continue
    if not found:
        raise JoseError("jwks_empty")
    return tuple(found)


def read_keys(raw: bytes, most: int = MOST_KEYS) -> tuple[PublicKey, ...]:
    """The keys in the text of a set. Raises JoseError: "jwks_size" before anything is parsed, and as `parse_keys`."""
    if len(raw) > LONGEST_SET:
        raise JoseError("jwks_size")
    try:
        value = decode_strictly(raw, DEEPEST)
    except NotJSON:
        raise JoseError("jwks") from None
    return parse_keys(value, most)


def _checked(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MOST_MEMBERS:
        raise JoseError("jwk")
    if value.get("kty") == "oct" or not _OF_OTHERS.isdisjoint(value):
        raise JoseError("private_key")
    return value


def _verifies(operations: Any) -> bool:
    """Whether a key may verify (RFC 7517 4.3)."""
    return operations is None or (isinstance(operations, list) and "verify" in operations[:16])


def _parsed(jwk: dict[str, Any]) -> Public:
    kind, curve = jwk.get("kty"), jwk.get("crv")
    if kind == "RSA":
        return _rsa(jwk)
    try:
        if (kind, curve) == ("EC", "P-256"):
            x, y = (int.from_bytes(_bytes(jwk, name, _P256_BYTES)) for name in "xy")
            return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        if (kind, curve) == ("OKP", "Ed25519"):
            return ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk, "x", _P256_BYTES))
    except JoseError:
        raise
    except ValueError:  # not a point of the curve
        raise JoseError("jwk") from None
    raise UnknownKey("key_type")


def _rsa(jwk: dict[str, Any]) -> rsa.RSAPublicKey:
    modulus, exponent = _number(jwk, "n", MOST_RSA // 8), _number(jwk, "e", 8)
    if not LEAST_RSA <= modulus.bit_length() <= MOST_RSA or not modulus & 1 or exponent not in _RSA_EXPONENTS:
        raise JoseError("weak_key")
    try:
        return rsa.RSAPublicNumbers(exponent, modulus).public_key()
    except ValueError:
        raise JoseError("weak_key") from None


def _number(jwk: dict[str, Any], name: str, most: int) -> int:
    """A positive number in as few bytes as it needs (RFC 7518 2)."""
    text = jwk.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= (most * 4 + 2) // 3:
        raise JoseError("weak_key" if isinstance(text, str) and text else "jwk")
    raw = base64url.decode(text)
    if not raw[0]:
        raise JoseError("jwk")
    return int.from_bytes(raw)


def _bytes(jwk: dict[str, Any], name: str, length: int) -> bytes:
    text = jwk.get(name)
    if not isinstance(text, str) or len(text) != (length * 4 + 2) // 3:
        raise JoseError("jwk")
    return base64url.decode(text)


def _members(key: Public) -> dict[str, str]:
    """What a key of its type must have, in the order of RFC 7638 3.2."""
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return {"e": _shortest(numbers.e), "kty": "RSA", "n": _shortest(numbers.n)}
    if isinstance(key, ec.EllipticCurvePublicKey):
        point = key.public_numbers()
        x, y = (base64url.encode(number.to_bytes(_P256_BYTES)) for number in (point.x, point.y))
        return {"crv": "P-256", "kty": "EC", "x": x, "y": y}
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"crv": "Ed25519", "kty": "OKP", "x": base64url.encode(raw)}


def _shortest(number: int) -> str:
    return base64url.encode(number.to_bytes((number.bit_length() + 7) // 8))


def _thumbprint(members: dict[str, str]) -> str:
    return base64url.encode(hashlib.sha256(orjson.dumps(members)).digest())
