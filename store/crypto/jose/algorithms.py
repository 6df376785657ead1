"""The signature algorithms: RS256, PS256, ES256 (RFC 7518 3), and Ed25519 under two names (RFC 8037, RFC 9864).

All of them are asymmetric. No name stands for "none" or an HMAC, so no caller can allow one by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from store.crypto.jose import base64url

Public: TypeAlias = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
Private: TypeAlias = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey

RS256, PS256, ES256, EDDSA, ED25519 = "RS256", "PS256", "ES256", "EdDSA", "Ed25519"
ALGORITHMS = (RS256, PS256, ES256, EDDSA, ED25519)

_HALF = 32
_ECDSA = ec.ECDSA(SHA256())
_SHA256 = SHA256()
_PKCS1 = padding.PKCS1v15()
_PSS = padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH)


def algorithms_of(key: Public | Private) -> tuple[str, ...]:
    """The algorithms that a key of this type can be used with."""
    if isinstance(key, (rsa.RSAPublicKey, rsa.RSAPrivateKey)):
        return (RS256, PS256)
    return (ES256,) if isinstance(key, (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey)) else (EDDSA, ED25519)


def sign(algorithm: str, key: Private, message: bytes) -> bytes:
    """The signature as JOSE writes it. Raises ValueError if the key's type does not fit the algorithm."""
    return signing(algorithm, key)(message)


def signing(algorithm: str, key: Private) -> Callable[[bytes], bytes]:
    """What signs messages as `sign`, with all that depends on the key alone done once. Raises ValueError as `sign`."""
    if algorithm not in algorithms_of(key):
        raise ValueError(f"this key does not sign {algorithm}")
    if isinstance(key, ec.EllipticCurvePrivateKey):
        sign_der = key.sign

        def sign_es256(message: bytes) -> bytes:
            # RFC 7518 3.4: R and S in 32 bytes each, where the library writes DER.
            r, s = decode_dss_signature(sign_der(message, _ECDSA))
            return r.to_bytes(_HALF) + s.to_bytes(_HALF)

        return sign_es256
    if isinstance(key, rsa.RSAPrivateKey):
        sign_padded, padded = key.sign, _PKCS1 if algorithm == RS256 else _PSS
        return lambda message: sign_padded(message, padded, _SHA256)
    return key.sign


def is_signed(algorithm: str, key: Public, message: bytes, signature: bytes) -> bool:
    """Whether the signature is right. False if the key's type does not fit the algorithm."""
    if algorithm not in algorithms_of(key):
        return False
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            if len(signature) != 2 * _HALF:
                return False
            r, s = int.from_bytes(signature[:_HALF]), int.from_bytes(signature[_HALF:])
            key.verify(encode_dss_signature(r, s), message, _ECDSA)
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, _PKCS1 if algorithm == RS256 else _PSS, _SHA256)
        else:
            key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def half_hash(algorithm: str, text: str) -> str:
    """`at_hash` of a token: the left half of its hash by the ID token's algorithm (OpenID Connect Core 3.1.3.6)."""
    digest = (hashlib.sha512 if algorithm == EDDSA else hashlib.sha256)(text.encode()).digest()
    return base64url.encode(digest[: len(digest) // 2])
