"""Codes of authenticator apps (RFC 6238) and recovery codes: made, read and compared. No I/O."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import NamedTuple
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP

from store.crypto.keyring import Keys
from store.crypto.sealed_secrets import SealedSecrets

SECRET_BYTES = 20  # RFC 4226 4: as long as the hash
STEP = 30_000  # ms
DIGITS = 6
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10  # 80 bits, which nobody guesses from their digest either
_CODE = re.compile(r"[0-9]{6}")
_MOST_TYPED = 100  # characters of a code, with spaces and hyphens
_RECOVERY = re.compile(r"[a-z2-7]{16}")


class TypedCode(NamedTuple):
    """A typed code as an argument of scripts: the time step that a code of the secret belongs to, or the digest of a
    recovery code; both empty for anything else."""

    step: str = ""
    digest: str = ""


class TotpSecrets(SealedSecrets):
    """The secrets of authenticator apps, each sealed for its person."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys, b"totp", "the secret of an authenticator app")

    def make(self, user: str) -> bytes:
        """A new random secret, sealed."""
        return self.seal(user, secrets.token_bytes(SECRET_BYTES))

    def typed(self, user: str, code: str, sealed: bytes | None, now: int) -> TypedCode:
        """Reads a code that a person typed, as `read_typed`. A recovery code needs no secret, so it works without the
        key of the secret too. Raises StoreError, KeyMissing."""
        recovery = read_typed(code, None, now)
        if recovery.digest or not sealed:
            return recovery
        return read_typed(code, self.open(user, sealed), now)


def code_at(secret: bytes, step: int) -> str:
    """The code of a time step."""
    # Apps of people who moved in may have shorter secrets than RFC 4226 4 wants.
    made = HOTP(secret, DIGITS, SHA1(), enforce_key_length=False)  # noqa: S303  # as RFC 6238 has it
    return made.generate(step).decode()


def step_of(secret: bytes, code: str, now: int) -> int | None:
    """The time step of a code: the present step or an adjacent one (RFC 6238 5.2). `now` is in epoch ms."""
    present, found = now // STEP, None
    for step in (present - 1, present, present + 1):
        if hmac.compare_digest(code_at(secret, step), code):
            found = step
    return found


def read_typed(text: str, secret: bytes | None, now: int) -> TypedCode:
    """Reads a typed code, with spaces and hyphens anywhere: six digits of the app, or a recovery code."""
    if len(text) > _MOST_TYPED:
        return TypedCode()
    plain = re.sub(r"[\s-]", "", text).lower()
    if secret is not None and _CODE.fullmatch(plain):
        step = step_of(secret, plain, now)
        return TypedCode(step="" if step is None else str(step))
    return TypedCode(digest=_digest(plain)) if _RECOVERY.fullmatch(plain) else TypedCode()


def key_uri(secret: bytes, issuer: str, account: str) -> str:
    """The address that a QR code gives to an authenticator app."""
    query = urlencode({"secret": in_base32(secret), "issuer": issuer, "algorithm": "SHA1", "digits": 6, "period": 30})
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{query}"


def in_base32(secret: bytes) -> str:
    """The secret in Base32, for typing into an authenticator app."""
    return base64.b32encode(secret).decode().rstrip("=")


def new_recovery_codes() -> tuple[list[str], list[str]]:
    """New recovery codes in groups of four, for display, and their digests, for the store."""
    plain = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    return [in_fours(code, "-") for code in plain], [_digest(code) for code in plain]


def in_fours(text: str, between: str = " ") -> str:
    """Text in groups of four, which people copy with fewer mistakes."""
    return between.join(text[start : start + 4] for start in range(0, len(text), 4))


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
