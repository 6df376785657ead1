"""Passwords: Argon2id (RFC 9106) in a few threads outside the event loop, so memory and waiting are bounded."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import struct
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from store.crypto.guessable import check_guessable, fold
from store.phrases import Phrase

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 256

MIN_MEMORY_KIB = 8
MAX_MEMORY_KIB = 256 * 1024
MAX_ITERATIONS = 16

_VERSION = 1
_LANES = 1
_MAX_LANES = 4
# Version, memory in KiB, iterations, lanes, salt, hash: 56 bytes. A Redis hash with a field above 64 bytes would lose
# its compact encoding.
_STORED = struct.Struct(">BIHB16s32s")

_Result = TypeVar("_Result")


class HasherBusy(Exception):
    """Too many hashes are waiting; nothing was done, and a later retry may work."""


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

    A quarter of the places is reserved for `known` callers: browsers that the person signed in with before.

    Memory in use is at most `workers` times `memory_kib` (and up to MAX_MEMORY_KIB for a hash made with more).
    Raises ValueError for a cost outside the bounds of this module.
    """

    def __init__(self, memory_kib: int = 19456, iterations: int = 2, workers: int = 2, queue: int = 32) -> None:
        if workers < 1 or queue < 0:
            raise ValueError("a password hasher needs one worker at least and no negative queue")
        self._parameters = _Parameters(memory_kib, iterations, _LANES)
        self._dummy = _Stored(self._parameters, secrets.token_bytes(16), secrets.token_bytes(32))
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="password")
        self._lock = threading.Lock()
        self._free = workers + queue
        self._kept = self._free // 4

    async def hash(self, password: str, *, known: bool = False) -> bytes:
        """Return the 56 bytes to store. Raises HasherBusy; ValueError for invalid text, as `check_password`."""
        encoded = _encode(password)
        return await self._run(lambda: self._hash(encoded), known)

    async def verify(self, password: str, stored: bytes | None, *, known: bool = False) -> bool:
        """Whether this is the password. None means an unknown account: the same work, and False.

        Also False for a password that could never have been set, and for bytes that are no password hash. Raises
        HasherBusy.
        """
        try:
            encoded = _encode(password)
        except ValueError:
            return False
        parsed = None if stored is None else _Stored.parse(stored)
        return await self._run(lambda: _verify(encoded, parsed or self._dummy), known) and parsed is not None

    def needs_rehash(self, stored: bytes) -> bool:
        """Whether the hash was made at another cost than is configured now, so the next sign-in should replace it."""
        parsed = _Stored.parse(stored)
        return parsed is None or parsed.parameters != self._parameters

    def unusable(self) -> bytes:
        """The 56 bytes to store for an account without a password: no password has this hash, and its check costs as
        much as any. Scripts know it by its digest of zeros (lua/include/accounts/identity.lua)."""
        return _Stored(self._parameters, secrets.token_bytes(16), bytes(32)).pack()

    def close(self) -> None:
        """Give up what waits, end the threads; blocks for the hashes that run. Later calls get HasherBusy."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _hash(self, password: bytes) -> bytes:
        salt = secrets.token_bytes(16)
        return _Stored(self._parameters, salt, self._parameters.derive(password, salt)).pack()

    async def _run(self, work: Callable[[], _Result], known: bool) -> _Result:
        with self._lock:
            if self._free <= (0 if known else self._kept):
                raise HasherBusy("too many passwords are being checked")
            self._free -= 1
        try:
            future = self._executor.submit(work)
        except RuntimeError:
            self._release()
            raise HasherBusy("the password hasher is closed") from None
        # Not when the caller stops waiting: a thread that still runs still uses its memory.
        future.add_done_callback(lambda _: self._release())
        return await asyncio.wrap_future(future)

    def _release(self) -> None:
        with self._lock:
            self._free += 1


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
