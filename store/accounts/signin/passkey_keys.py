"""Public keys of passkeys: few kinds, of bounded size, because the key decides the cost of its check."""

from __future__ import annotations

from typing import Any

from webauthn.helpers import decode_credential_public_key, decoded_public_key_to_cryptography
from webauthn.helpers.cose import COSEAlgorithmIdentifier

from store.accounts.signin.cbor import read_item

LEAST_MODULUS, MOST_MODULUS = 2048, 4096  # bits
EXPONENT = 65_537
"""The public exponent that authenticators use. Checking a signature takes longer with each bit of it."""

_KTY, _ALG, _CRV, _N, _E = 1, 3, -1, -1, -2  # labels of COSE, RFC 9053 7 and RFC 8230 4
_OKP, _EC2, _RSA = 1, 2, 3
_P256, _ED25519 = 1, 6


def check_key(raw: bytes) -> None:
    """Checks that a COSE key has a supported kind and size (WebAuthn 5.8.5). Raises ValueError. Does not check that a
    point is on its curve: checking a signature builds the key, which shows that anyway."""
    found = read_item(raw)
    key = found.value
    if found.end != len(raw) or not isinstance(key, dict):
        raise ValueError("not one map")
    match key.get(_ALG):
        case COSEAlgorithmIdentifier.EDDSA:
            fits = (key.get(_KTY), key.get(_CRV)) == (_OKP, _ED25519)
        case COSEAlgorithmIdentifier.ECDSA_SHA_256:
            fits = (key.get(_KTY), key.get(_CRV)) == (_EC2, _P256)
        case COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256:
            bits = _number(key.get(_N)).bit_length()
            fits = key.get(_KTY) == _RSA and LEAST_MODULUS <= bits <= MOST_MODULUS and _number(key.get(_E)) == EXPONENT
        case _:
            fits = False
    if not fits:
        raise ValueError("a key that no passkey has here")


def check_new_key(raw: bytes) -> None:
    """As `check_key`; also checks that a point is on its curve, so that the key can verify a signature. Raises
    ValueError and the library's own errors."""
    check_key(raw)
    decoded_public_key_to_cryptography(decode_credential_public_key(raw))


def _number(value: Any) -> int:
    if not isinstance(value, bytes):
        raise ValueError("not a number")
    return int.from_bytes(value)
