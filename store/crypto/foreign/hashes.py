"""A password hash that another server made: its bounds, its form in the store, and the check of a password.

A hash stays in the store until its person signs in: the first sign-in replaces it with one of ours.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.argon2 import Argon2i, Argon2id
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAX_MEMORY: Final = 128 * 2**20
"""Bytes that the check of one password may use with scrypt or Argon2."""
MAX_WORK: Final = 4 * MAX_MEMORY
"""Bytes that it may fill: the memory, once for each pass or lane in sequence."""
MAX_BCRYPT_COST, MAX_PBKDF2_ROUNDS = 14, 2_000_000
MAX_PASSES, MAX_LANES = 16, 16
MAX_SALT = 64
LEAST_DIGEST, KEPT_DIGEST = 16, 32
"""Bytes of a digest. Of a longer one, the store keeps the first 32: as many as of our own hashes."""
BCRYPT_BYTES = 72
"""Bytes of a password that bcrypt uses; older libraries cut the rest off."""

_BCRYPT_SALT = re.compile(rb"[./A-Za-z0-9]{21}[.Oeu]")
_BCRYPT_DIGEST = re.compile(rb"[./A-Za-z0-9]{31}")
_DIGESTS: dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "pbkdf2-sha1": hashes.SHA1,
    "pbkdf2-sha256": hashes.SHA256,
    "pbkdf2-sha512": hashes.SHA512,
}
_NO_KEY = bytes(KEPT_DIGEST)

TOO_DEAR = "The password hash is dearer than this server checks."
BROKEN = "The password hash is malformed."


class _Scheme(NamedTuple):
    """A way to hash. `code`: its first byte in the store. `cost`: the form of its numbers. `check` raises ValueError
    for numbers out of bounds; `derive` computes a digest."""

    code: int
    cost: struct.Struct
    check: Callable[[tuple[int, ...]], None]
    derive: Callable[[bytes, ForeignHash], bytes]


@dataclass(frozen=True, slots=True, repr=False)
class ForeignHash:
    """A password hash of another server. `cost`: the numbers of its scheme, in the order of `SCHEMES`."""

    scheme: str
    cost: tuple[int, ...]
    salt: bytes
    digest: bytes

    def __post_init__(self) -> None:
        SCHEMES[self.scheme].check(self.cost)
        if self.scheme.startswith("bcrypt"):
            if not _BCRYPT_SALT.fullmatch(self.salt) or not _BCRYPT_DIGEST.fullmatch(self.digest):
                raise ValueError(BROKEN)
        elif not 1 <= len(self.salt) <= MAX_SALT or not LEAST_DIGEST <= len(self.digest) <= KEPT_DIGEST:
            raise ValueError(BROKEN)
        if self.scheme.startswith("argon2") and len(self.salt) < 8:
            raise ValueError(BROKEN)

    @property
    def price(self) -> str:
        """The scheme and its numbers: all that the time of a check depends on."""
        return " ".join((self.scheme, *map(str, self.cost)))

    def matches(self, password: bytes) -> bool:
        """Whether this is the hash of the password. Takes up to a second and MAX_MEMORY: not for the event loop."""
        return hmac.compare_digest(SCHEMES[self.scheme].derive(password, self), self.digest)

    def pack(self) -> bytes:
        """The form in the store: at most 64 bytes for salts of up to 24 bytes, so that the row stays compact."""
        scheme = SCHEMES[self.scheme]
        return bytes([scheme.code]) + scheme.cost.pack(*self.cost) + bytes([len(self.salt)]) + self.salt + self.digest


def unpack(stored: bytes) -> ForeignHash | None:
    """The hash in a person's row; None for one of ours, for other bytes, and for one that would cost too much."""
    name = _BY_CODE.get(stored[0]) if stored else None
    if name is None:
        return None
    form = SCHEMES[name].cost
    try:
        cost = form.unpack(stored[1 : 1 + form.size])
        start = 2 + form.size
        end = start + stored[start - 1]
        return ForeignHash(name, cost, stored[start:end], stored[end:])
    except (ValueError, IndexError, struct.error):
        return None


def of_price(price: str) -> ForeignHash | None:
    """A hash of this price that no password has; None for a price that this release doesn't know."""
    name, *numbers = price.split(" ")
    salt, digest = secrets.token_bytes(16), secrets.token_bytes(KEPT_DIGEST)
    if name.startswith("bcrypt"):
        salt, digest = secrets.token_hex(11)[:21].encode() + b".", secrets.token_hex(16)[:31].encode()
    try:
        return ForeignHash(name, tuple(map(int, numbers)), salt, digest)
    except (ValueError, LookupError, struct.error):
        return None


def _check_bcrypt(cost: tuple[int, ...]) -> None:
    (rounds,) = cost
    if not 4 <= rounds <= 31:
        raise ValueError(BROKEN)
    if rounds > MAX_BCRYPT_COST:
        raise ValueError(TOO_DEAR)


def _check_pbkdf2(cost: tuple[int, ...]) -> None:
    (rounds,) = cost
    if rounds < 1:
        raise ValueError(BROKEN)
    if rounds > MAX_PBKDF2_ROUNDS:
        raise ValueError(TOO_DEAR)


def _check_argon2(cost: tuple[int, ...]) -> None:
    memory_kib, passes, lanes, length = cost
    if min(memory_kib, passes, lanes) < 1 or memory_kib < 8 * lanes or not LEAST_DIGEST <= length <= 64:
        raise ValueError(BROKEN)
    if passes > MAX_PASSES or lanes > MAX_LANES or memory_kib * 1024 > MAX_MEMORY:
        raise ValueError(TOO_DEAR)
    if memory_kib * 1024 * passes > MAX_WORK:
        raise ValueError(TOO_DEAR)


def _check_scrypt(cost: tuple[int, ...]) -> None:
    log_n, r, p, length = cost
    if min(log_n, r, p) < 1 or not LEAST_DIGEST <= length <= 64:
        raise ValueError(BROKEN)
    if log_n > 24 or r > 64 or p > MAX_LANES or 128 * r * 2**log_n > MAX_MEMORY or 128 * r * p * 2**log_n > MAX_WORK:
        raise ValueError(TOO_DEAR)


def _check_firebase(cost: tuple[int, ...]) -> None:
    log_n, r = cost
    _check_scrypt((log_n, r, 1, KEPT_DIGEST))


def _bcrypt(password: bytes, of: ForeignHash) -> bytes:
    import bcrypt  # only where people moved in: most servers never need it

    salt = b"$2b$%02d$" % of.cost[0] + of.salt
    return bcrypt.hashpw(password[:BCRYPT_BYTES], salt)[len(salt) :]


def _bcrypt_sha256(password: bytes, of: ForeignHash) -> bytes:
    """Django's: the hash of a digest, so that all of a long password counts."""
    return _bcrypt(hashlib.sha256(password).hexdigest().encode(), of)


def _pbkdf2(password: bytes, of: ForeignHash) -> bytes:
    # A shorter key is the beginning of a longer one (RFC 8018 5.2).
    made = PBKDF2HMAC(algorithm=_DIGESTS[of.scheme](), length=len(of.digest), salt=of.salt, iterations=of.cost[0])
    return made.derive(password)


def _argon2(password: bytes, of: ForeignHash) -> bytes:
    memory_kib, passes, lanes, length = of.cost
    kind = Argon2id if of.scheme == "argon2id" else Argon2i
    made = kind(salt=of.salt, length=length, iterations=passes, lanes=lanes, memory_cost=memory_kib)
    return made.derive(password)[: len(of.digest)]


def _scrypt(password: bytes, of: ForeignHash) -> bytes:
    log_n, r, p, _ = of.cost
    return Scrypt(salt=of.salt, length=len(of.digest), n=2**log_n, r=r, p=p).derive(password)


def _firebase(password: bytes, of: ForeignHash) -> bytes:
    """Firebase's: the project's signer key, encrypted by AES-256 in counter mode with the key that scrypt derives. An
    import takes the signer key off again, so that the store keeps the key stream alone."""
    log_n, r = of.cost
    key = Scrypt(salt=of.salt, length=32, n=2**log_n, r=r, p=1).derive(password)
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(_NO_KEY[: len(of.digest)])


SCHEMES: Final[dict[str, _Scheme]] = {
    "bcrypt": _Scheme(2, struct.Struct(">B"), _check_bcrypt, _bcrypt),
    "bcrypt-sha256": _Scheme(3, struct.Struct(">B"), _check_bcrypt, _bcrypt_sha256),
    "pbkdf2-sha1": _Scheme(4, struct.Struct(">I"), _check_pbkdf2, _pbkdf2),
    "pbkdf2-sha256": _Scheme(5, struct.Struct(">I"), _check_pbkdf2, _pbkdf2),
    "pbkdf2-sha512": _Scheme(6, struct.Struct(">I"), _check_pbkdf2, _pbkdf2),
    # Memory in KiB, passes, lanes, length of the whole digest.
    "argon2i": _Scheme(7, struct.Struct(">IBBB"), _check_argon2, _argon2),
    "argon2id": _Scheme(8, struct.Struct(">IBBB"), _check_argon2, _argon2),
    # log2 of N, r, p, length of the whole digest.
    "scrypt": _Scheme(9, struct.Struct(">BBBB"), _check_scrypt, _scrypt),
    # log2 of N, r.
    "firebase-scrypt": _Scheme(10, struct.Struct(">BB"), _check_firebase, _firebase),
}
"""Every scheme by name. The codes are those of stored hashes; our own hashes begin with 1."""
_BY_CODE = {scheme.code: name for name, scheme in SCHEMES.items()}
