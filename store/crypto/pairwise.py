"""Pairwise ids of people: each app, or each sector of apps, has another one. OpenID Connect Core 8.1.

An id is an HMAC with a random salt of the store. So it stays the same for the life of the store, whichever secret key
is in front, and two sectors cannot find out that they know the same person. The salt is sealed under the secret keys:
a copy of the store tells nobody whose id it is. Sessions have an id for each sector too, a permutation of their own.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from redis.asyncio import Redis

from store import keys
from store.crypto.keyring import Keys
from store.crypto.sealed_secrets import SealedSecrets
from store.engine.scripts import Scripts
from store.errors import wrapped

KNOWS = "1"
"""The app's field in the person's row (`lua/include/connected.lua`) if it was ever granted `profile` or `openid`."""
PREFIX = "pw_"
SALT = "pairwise"
"""The field of the keyring's row."""
_PLAIN = re.compile(rb"[0-9a-f]{64}")
_SALT_BYTES = 32


class Pairwise:
    """Computes pairwise ids. Each method raises StoreUnavailable, StoreError if the salt does not open."""

    def __init__(self, client: Redis, scripts: Scripts, keys: Keys) -> None:
        self._client = client
        self._scripts = scripts
        self._secrets = salt_secrets(keys)
        self._salt = b""

    async def prepare(self) -> None:
        """Reads the salt; the other methods call no store afterwards."""
        await self._read_salt()

    async def for_app(self, client_id: str, user: str) -> str:
        """The id of a person for one app alone: `pw_` and 128 bits in base64url."""
        return await self._id(f"{client_id} {user}")

    async def for_sector(self, sector: str, user: str) -> str:
        """The id of a person for all apps of a sector, in the same form."""
        # Neither a client id nor a sector has a space in it, so no sector's text is an app's.
        return await self._id(f"sector {sector} {user}")

    async def session_for(self, sector: str, sid: str) -> str:
        """The id of a session for all apps of a sector: 22 characters, like `sid` itself."""
        encryptor = (await self._permutation(sector)).encryptor()
        return _text(encryptor.update(_bytes(sid)))

    async def session_behind(self, sector: str, known: str) -> str:
        """The `sid` of the session that apps of a sector know by this id."""
        decryptor = (await self._permutation(sector)).decryptor()
        return _text(decryptor.update(_bytes(known)))

    async def _id(self, text: str) -> str:
        return PREFIX + _text((await self._digest(text))[:16])

    async def _permutation(self, sector: str) -> Cipher[modes.ECB]:
        # An id is one block of random bits, so the bare cipher is a permutation of ids: nothing repeats.
        key = await self._digest(f"sessions of {sector}")
        return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305  # it encrypts single blocks

    async def _digest(self, text: str) -> bytes:
        return hmac.digest(await self._read_salt(), text.encode(), hashlib.sha256)

    async def _read_salt(self) -> bytes:
        if not self._salt:
            sealed = await self._stored()
            if sealed is None or is_plain(sealed):
                salt = bytes.fromhex(sealed.decode()) if sealed else secrets.token_bytes(_SALT_BYTES)
                sealed = await self._keep(sealed or b"", self._secrets.seal(SALT, salt))
            self._salt = self._secrets.open(SALT, sealed)
        return self._salt

    async def reseal(self) -> bool:
        """Seals the salt under the front key; whether it changed anything."""
        sealed = await self._stored()
        if sealed is None or (not is_plain(sealed) and self._secrets.is_front(sealed)):
            return False
        salt = bytes.fromhex(sealed.decode()) if is_plain(sealed) else self._secrets.open(SALT, sealed)
        renewed = self._secrets.seal(SALT, salt)
        return await self._keep(sealed, renewed) == renewed

    async def _stored(self) -> bytes | None:
        with wrapped():
            found: Any = await self._client.hget(keys.KEYRING, SALT)
        sealed: bytes | None = found
        return sealed

    async def _keep(self, expected: bytes, sealed: bytes) -> bytes:
        """Writes the sealed salt, unless another process was quicker; returns the one that counts."""
        reply = await self._scripts.run("keep_salt", {"keyring": keys.KEYRING}, expected=expected, sealed=sealed)
        return reply.raw("salt")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def salt_secrets(keys: Keys) -> SealedSecrets:
    """Seals and opens the salt."""
    return SealedSecrets(keys, b"pairwise", "the salt of pairwise ids")


def is_plain(stored: bytes) -> bool:
    """Whether a salt is one that an earlier release kept without a seal."""
    return _PLAIN.fullmatch(stored) is not None
