"""Private keys of this server: made here, kept sealed, never received."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from store.crypto.jose import algorithms
from store.crypto.jose.algorithms import EDDSA, ES256, RS256, Private, algorithms_of
from store.crypto.jose.jwk import PublicKey

OURS = (RS256, ES256, EDDSA)
"""What this server signs with."""
RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key and what it signs with. Its name is the thumbprint of its public half."""

    algorithm: str
    public: PublicKey
    key: Private = field(compare=False, repr=False)
    sign: Callable[[bytes], bytes] = field(init=False, compare=False, repr=False)
    """Signs a message, as JOSE writes it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sign", algorithms.signing(self.algorithm, self.key))

    @property
    def kid(self) -> str:
        """The name of the key: 43 characters of base64url."""
        return self.public.thumbprint

    @classmethod
    def generate(cls, algorithm: str) -> PrivateKey:
        """A new key. RS256 takes a tenth of a second or more: call it in a thread. Raises ValueError for an algorithm
        that this server does not sign with."""
        while True:
            made = cls._of(algorithm, _random(algorithm))
            # A command line reads a name with a leading hyphen as an option.
            if not made.kid.startswith("-"):
                return made

    @classmethod
    def load(cls, algorithm: str, der: bytes) -> PrivateKey:
        """Reads what `to_bytes` wrote. Raises ValueError if this is no key of the algorithm. The numbers of an RSA key
        are not checked: that takes 50 ms, and the key's seal proves that nobody changed them."""
        key = load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(key, (ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, rsa.RSAPrivateKey)):
            raise ValueError("not a key that signs here")
        if algorithm not in OURS or algorithm not in algorithms_of(key):
            raise ValueError("the key is of another algorithm")
        return cls._of(algorithm, key)

    @classmethod
    def _of(cls, algorithm: str, key: Private) -> PrivateKey:
        return cls(algorithm, PublicKey.of(key.public_key()), key)

    def to_bytes(self) -> bytes:
        """The key in PKCS #8. This IS the secret."""
        return self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def _random(algorithm: str) -> Private:
    if algorithm == RS256:
        return rsa.generate_private_key(65537, RSA_BITS)
    if algorithm == ES256:
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == EDDSA:
        return ed25519.Ed25519PrivateKey.generate()
    raise ValueError(f"no keys are made for {algorithm}")
