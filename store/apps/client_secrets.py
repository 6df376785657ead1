"""Client secrets: 256 random bits, of which the store keeps the digest. SPEC 5.1."""

from __future__ import annotations

import hashlib
import hmac
import secrets as random
from collections.abc import Sequence

_NO_DIGEST = bytes(32)


def secret_mark(digest: bytes) -> str:
    """The name of a live secret on pages: the beginning of its digest, which reveals nothing about the secret."""
    return digest.hex()[:8]


def new_secret() -> str:
    """A new client secret: the prefix that secret scanners look for, and 256 random bits."""
    return "lk_cs_" + random.token_urlsafe(32)


def secret_matches(secret: str, digests: Sequence[bytes]) -> bool:
    """Whether this is one of the secrets with these digests. The time reveals neither how much of it was right nor that
    there are no secrets."""
    digest = secret_digest(secret)
    matches = [hmac.compare_digest(digest, known) for known in digests or (_NO_DIGEST,)]
    return any(matches) and bool(digests)


def secret_digest(secret: str) -> bytes:
    """The stored digest of a secret: SHA-256, because 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
