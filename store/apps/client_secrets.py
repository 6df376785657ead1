"""Client secrets: 256 random bits, of which the store keeps the digest. SPEC 5.1."""

from __future__ import annotations

import hashlib
import hmac
import secrets as random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

PREFIX = "lk_cs_"
SHOWN = 4
"""The last characters of a secret that its owner sees: 22 of its 256 bits."""
_LENGTH = len(PREFIX) + 43
_NO_DIGEST = bytes(32)


def secret_mark(digest: bytes) -> str:
    """The name of a live secret on pages: the beginning of its digest, which reveals nothing about the secret."""
    return digest.hex()[:8]


class SecretNote(NamedTuple):
    """What an owner sees of a live secret: its mark, its last four characters, and when it was made (epoch ms). Both
    are empty for a secret of an earlier release."""

    mark: str
    last_four: str = ""
    made_at: int = 0


def note_of(secret: str, now: int) -> str:
    """The text that a registration keeps about a new secret. Only a secret of ours is long enough to show a part of."""
    last_four = secret[-SHOWN:] if secret.startswith(PREFIX) and len(secret) == _LENGTH else ""
    return f"{secret_mark(secret_digest(secret))} {now} {last_four}"


def live_notes(notes: Iterable[str], digests: Iterable[bytes]) -> tuple[str, ...]:
    """The notes about the secrets with these digests."""
    marks = {secret_mark(digest) for digest in digests}
    return tuple(note for note in notes if note.split(" ")[0] in marks)


def notes_of(notes: Iterable[str], digests: Iterable[bytes]) -> tuple[SecretNote, ...]:
    """What is known about the secrets with these digests, in their order."""
    known = {}
    for note in notes:
        mark, made_at, last_four = note.split(" ")
        known[mark] = SecretNote(mark, last_four, int(made_at))
    marks = (secret_mark(digest) for digest in digests)
    return tuple(known.get(mark, SecretNote(mark)) for mark in marks)


def new_secret() -> str:
    """A new client secret: the prefix that secret scanners look for, and 256 random bits."""
    return PREFIX + random.token_urlsafe(32)


def secret_matches(secret: str, digests: Sequence[bytes]) -> bool:
    """Whether this is one of the secrets with these digests. The time reveals neither how much of it was right nor that
    there are no secrets."""
    digest = secret_digest(secret)
    matches = [hmac.compare_digest(digest, known) for known in digests or (_NO_DIGEST,)]
    return any(matches) and bool(digests)


def secret_digest(secret: str) -> bytes:
    """The stored digest of a secret: SHA-256, because 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def told(times: Sequence[int]) -> tuple[int, ...]:
    """The times of secrets. A registration without known times has one form, because registrations are compared."""
    return tuple(times) if any(times) else ()
