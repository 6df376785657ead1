"""Passwords: Argon2id (RFC 9106) in a few threads outside the event loop, so memory and waiting are bounded."""

from __future__ import annotations

import hmac
import secrets
import struct
import unicodedata
from dataclasses import dataclass

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from store.crypto.foreign.hashes import ForeignHash, unpack
from store.crypto.foreign.texts import argon2_text
from store.crypto.guessable import check_guessable, fold
from store.crypto.hash_pool import HasherBusy, HashPool
from store.phrases import Phrase

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 256

MIN_MEMORY_KIB = 8
MAX_MEMORY_KIB = 256 * 1024
MAX_ITERATIONS = 16

_VERSION = 1
_LANES = 1
_MAX_LANES = 4
# The digest of an account without a password.
_NOBODYS = bytes(32)
# Version, memory in KiB, iterations, lanes, salt, hash: 56 bytes. A Redis hash with a field above 64 bytes would lose
# its compact encoding.
_STORED = struct.Struct(">BIHB16s32s")

__all__ = ["HasherBusy", "PasswordHasher", "check_length", "check_password", "hash_text"]


@dataclass(frozen=True, slots=True)
class _Parameters:
    memory_kib: int
    iterations: int
    lanes: int

    def __post_init__(self) -> None:
        if not 1 <= self.lanes <= _MAX_LANES:
            raise ValueError(f"Argon2id takes 1 to {_MAX_LANES} lanes here")
        if not MIN_MEMORY_KIB * self.lanes <= self.memory_kib <= MAX_MEMORY_KIB:
            raise ValueError(f"Argon2id takes {MIN_MEMORY_KIB} to {MAX_MEMORY_KIB} KiB of memory here")
        if not 1 <= self.iterations <= MAX_ITERATIONS:
            raise ValueError(f"Argon2id takes 1 to {MAX_ITERATIONS} iterations here")

    def derive(self, password: bytes, salt: bytes) -> bytes:
        kdf = Argon2id(salt=salt, length=32, iterations=self.iterations, lanes=self.lanes, memory_cost=self.memory_kib)
        return kdf.derive(password)


@dataclass(frozen=True, slots=True, repr=False)
class _Stored:
    parameters: _Parameters
    salt: bytes
    digest: bytes

    def pack(self) -> bytes:
        at = self.parameters
        return _STORED.pack(_VERSION, at.memory_kib, at.iterations, at.lanes, self.salt, self.digest)

    @classmethod
    def parse(cls, stored: bytes) -> _Stored | None:
        """Parses a password hash; None for anything else, and for a hash that would cost too much to verify."""
        if len(stored) != _STORED.size:
            return None
        version, memory_kib, iterations, lanes, salt, digest = _STORED.unpack(stored)
        if version != _VERSION:
            return None
        try:
            return cls(_Parameters(memory_kib, iterations, lanes), salt, digest)
        except ValueError:
            return None


class PasswordHasher:
    """Hashes and verifies passwords in `workers` threads; at most `queue` more calls wait, others get HasherBusy.

    A quarter of the places is reserved for `known` callers: browsers that the person signed in with before. Hashes of
    other servers have as many threads and places of their own, because one may take twenty times as long as ours.

    Memory in use is at most `workers` times `memory_kib` (and up to MAX_MEMORY_KIB for a hash made with more), and
    `workers` times 128 MiB for hashes of other servers. Raises ValueError for a cost outside the bounds of this module.
    """

    def __init__(self, memory_kib: int = 19456, iterations: int = 2, workers: int = 2, queue: int = 32) -> None:
        if workers < 1 or queue < 0:
            raise ValueError("a password hasher needs one worker at least and no negative queue")
        self._parameters = _Parameters(memory_kib, iterations, _LANES)
        self._dummy = _Stored(self._parameters, secrets.token_bytes(16), secrets.token_bytes(32))
        self._pool = HashPool(workers, queue, "password")
        self._foreign = HashPool(workers, queue, "foreign-password")

    async def hash(self, password: str, *, known: bool = False) -> bytes:
        """Return the 56 bytes to store. Raises HasherBusy; ValueError for invalid text, as `check_password`."""
        encoded = _encode(password)
        return await self._pool.run(lambda: self._hash(encoded), known)

    async def verify(
        self, password: str, stored: bytes | None, *, known: bool = False, like: ForeignHash | None = None
    ) -> bool:
        """Whether this is the password. None means an unknown account: the same work, and False; `like` is the hash of
        another server whose work that is.

        Also False for a password that could never have been set, and for bytes that are no password hash. Raises
        HasherBusy.
        """
        try:
            encoded = _encode(password)
        except ValueError:
            return False
        foreign = like if stored is None else unpack(stored)
        if foreign is not None:
            # Other servers hash what the browser sends; ours normalise it first.
            forms = dict.fromkeys((password.encode(), encoded))
            matched = await self._foreign.run(lambda: [foreign.matches(form) for form in forms], known)
            return any(matched) and stored is not None
        parsed = None if stored is None else _Stored.parse(stored)
        return await self._pool.run(lambda: _verify(encoded, parsed or self._dummy), known) and parsed is not None

    def needs_rehash(self, stored: bytes) -> bool:
        """Whether the hash is another server's, or was made at another cost than is configured now, so the next sign-in
        should replace it."""
        parsed = _Stored.parse(stored)
        return parsed is None or parsed.parameters != self._parameters

    def unusable(self) -> bytes:
        """The 56 bytes to store for an account without a password: no password has this hash, and its check costs as
        much as any. Scripts know it by its digest of zeros (lua/include/accounts/identity.lua)."""
        return _Stored(self._parameters, secrets.token_bytes(16), _NOBODYS).pack()

    def close(self) -> None:
        """Give up what waits, end the threads; blocks for the hashes that run. Later calls get HasherBusy."""
        self._pool.close()
        self._foreign.close()

    def _hash(self, password: bytes) -> bytes:
        salt = secrets.token_bytes(16)
        return _Stored(self._parameters, salt, self._parameters.derive(password, salt)).pack()


def hash_text(stored: bytes) -> str | None:
    """One of our own hashes in the form of Argon2's reference implementation; None for other bytes, and for an account
    without a password."""
    parsed = _Stored.parse(stored)
    if parsed is None or parsed.digest == _NOBODYS:
        return None
    at = parsed.parameters
    return argon2_text("argon2id", at.memory_kib, at.iterations, at.lanes, parsed.salt, parsed.digest)


def check_length(password: str) -> str:
    """Return the normalised password; raise ValueError for a wrong length or invalid text.

    The error has a reason for people. Lengths are in code points: the least after normalisation, the most before.
    """
    normalised = _encode(password).decode()
    if len(normalised) < MIN_PASSWORD_LENGTH:
        raise ValueError(Phrase("Choose a password of at least %(least)s characters.", least=MIN_PASSWORD_LENGTH))
    return normalised


def check_password(password: str, email: str = "", name: str = "") -> None:
    """Raise ValueError, with a reason for people, for a password that this person may not set (NIST SP 800-63B,
    5.1.1.2)."""
    folded = check_length(password).casefold()
    if email and folded in (fold(email), fold(email.rpartition("@")[0])):
        raise ValueError(Phrase("Your password can't be your e-mail address."))
    check_guessable(folded, email, name)


def _encode(password: str) -> bytes:
    """Normalise with NFKC, so that the same characters from two keyboards are the same bytes (NIST SP 800-63B)."""
    if len(password) > MAX_PASSWORD_LENGTH:
        raise ValueError(Phrase("Choose a password of at most %(most)s characters.", most=MAX_PASSWORD_LENGTH))
    if "\0" in password:
        raise ValueError(Phrase("A password can't contain the NUL character."))
    try:
        return unicodedata.normalize("NFKC", password).encode()
    except UnicodeEncodeError:
        raise ValueError(Phrase("A password must be valid text.")) from None


def _verify(password: bytes, stored: _Stored) -> bool:
    return hmac.compare_digest(stored.parameters.derive(password, stored.salt), stored.digest)
