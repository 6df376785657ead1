"""Digests of requests with an idempotency key: a retry has the same one."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from store.crypto.keyring import Keys, SecretKey

_PURPOSE: Final = b"latchkey AI request"


def request_digest(dialect: str, body: bytes) -> str:
    """The bare digest of a request. The store never keeps it, but gets it as an argument of each call with an
    idempotency key, so SLOWLOG and MONITOR may show it."""
    digest = hashlib.sha256(f"{dialect}\n".encode() if dialect else b"")
    digest.update(body)
    return digest.hexdigest()[:32]


class RequestDigests:
    """Digests for the store. Nobody without the secret keys can test a guessed request against them."""

    def __init__(self, secret_keys: Keys) -> None:
        self._keys = secret_keys

    def known(self, user: str, client: str, bare: str) -> str:
        """The digests that an earlier call with this request may have left, spaces between: first the one to store now,
        then those under the other secret keys, then the bare one of the release before."""
        request = f"{user} {client} {bare}".encode()
        return " ".join([*(_keyed(key, request) for key in self._keys.ring.keys), bare])

    def renewed(self, user: str, client: str, bare: str) -> str:
        """As `known`, with the keys that a changed key file has now: another process may have read it earlier."""
        self._keys.renew()
        return self.known(user, client, bare)


def _keyed(key: SecretKey, request: bytes) -> str:
    return hmac.digest(key.derive(_PURPOSE, 32), request, hashlib.sha256).hex()[:32]
