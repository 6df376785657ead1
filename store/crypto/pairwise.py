"""The pairwise id of a person, for events to an app that was never granted `profile`.

It is an HMAC with a random salt of the store. So it stays the same for the life of the store, whichever key seals, and
two apps cannot find out that they know the same person.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.errors import wrapped

KNOWS = "1"
"""The field of the person's row for an app that was ever granted `profile`."""
PREFIX = "pw_"
_SALT = "pairwise"


class Pairwise:
    """Computes pairwise ids. Each method raises StoreUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._salt = b""

    async def sub(self, client_id: str, user: str) -> str:
        """The id of a person for one app: `pw_` and 128 bits in base64url."""
        digest = hmac.digest(await self._read_salt(), f"{client_id} {user}".encode(), hashlib.sha256)
        return PREFIX + base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()

    async def of(self, client_id: str, user: str, entered: str) -> str:
        """The id of a person for an app: the user id if the app was ever granted `profile`. `entered`: the app's field
        in the person's row when the event was written; an empty value gives no permission."""
        return user if entered == KNOWS else await self.sub(client_id, user)

    async def _read_salt(self) -> bytes:
        if not self._salt:
            with wrapped():
                await self._client.hsetnx(keys.KEYRING, _SALT, secrets.token_hex(32))
                found: Any = await self._client.hget(keys.KEYRING, _SALT)
            self._salt = bytes.fromhex(found.decode())
        return self._salt
