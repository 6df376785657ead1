"""Encryption at rest of hosted data: AES-256-GCM under a key of each (app, user) pair.

The address of a document is associated data, so a ciphertext moved to another name, app or person does not open there.
The id of the secret key and the nonce come before the ciphertext.
"""

from __future__ import annotations

import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from store.crypto.keyring import Keys, SecretKey
from store.errors import KeyMissing, StoreError

NONCE_BYTES = 12
OVERHEAD_BYTES = 1 + NONCE_BYTES + 16


class Cipher:
    """Seals and opens documents with the ring's keys; the front key seals."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def seal(self, user: str, client: str, name: str, document: bytes) -> bytes:
        """The document, encrypted; `name` is `collection/id`."""
        key = self._keys.ring.front
        nonce = os.urandom(NONCE_BYTES)
        sealed = _aead(key, user, client).encrypt(nonce, document, _address(user, client, name))
        return bytes([key.id]) + nonce + sealed

    def open(self, user: str, client: str, name: str, sealed: bytes) -> bytes:
        """The decrypted document. Raises StoreError if it was damaged or moved, KeyMissing without its key."""
        if len(sealed) < OVERHEAD_BYTES:
            raise StoreError("a document does not open: it was damaged")
        key = self._keys.find(sealed[0])
        if key is None:
            raise KeyMissing("a document", sealed[0])
        nonce, body = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        try:
            return _aead(key, user, client).decrypt(nonce, body, _address(user, client, name))
        except InvalidTag:
            raise StoreError("a document does not open: it was damaged or moved") from None


def _aead(key: SecretKey, user: str, client: str) -> AESGCM:
    return AESGCM(_derived(key, user, client))


# Caches a pair's key and not its cipher: making the cipher takes half the time of the key, but ten times its size. So
# 9 MB have room for all people that one process serves in a while.
@lru_cache(maxsize=32_768)
def _derived(key: SecretKey, user: str, client: str) -> bytes:
    return key.derive(f"document:{user}:{client}".encode(), 32)


def _address(user: str, client: str, name: str) -> bytes:
    return f"{user}:{client}:{name}".encode()
