"""Encrypted secrets of authenticator apps and webhooks, which must be read again. No I/O."""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from store.crypto.keyring import Keys, SecretKey
from store.errors import KeyMissing, StoreError

_NONCE_BYTES = 12


class SealedSecrets:
    """Seals and opens secrets of one `purpose` with the ring's keys; the front key seals. The owner, a person or an
    app, is associated data, so a secret that is moved does not open. `what` names such a secret in errors."""

    def __init__(self, keys: Keys, purpose: bytes, what: str) -> None:
        self._keys = keys
        self._purpose = purpose
        self._what = what

    def seal(self, owner: str, secret: bytes) -> bytes:
        """The secret, encrypted: key id, nonce, ciphertext and tag."""
        key, nonce = self._keys.ring.front, os.urandom(_NONCE_BYTES)
        return bytes([key.id]) + nonce + self._aead(key).encrypt(nonce, secret, owner.encode())

    def open(self, owner: str, sealed: bytes) -> bytes:
        """The decrypted secret. Raises StoreError if it was damaged or moved, KeyMissing without its key."""
        if len(sealed) <= 1 + _NONCE_BYTES:
            raise StoreError(f"{self._what} does not open: it was damaged")
        key = self._keys.find(sealed[0])
        if key is None:
            raise KeyMissing(self._what, sealed[0])
        nonce, body = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return self._aead(key).decrypt(nonce, body, owner.encode())
        except InvalidTag:
            raise StoreError(f"{self._what} does not open: it was damaged or moved") from None

    def is_front(self, sealed: bytes) -> bool:
        """Whether a secret is sealed under the front key."""
        return sealed[:1] == bytes([self._keys.ring.front.id])

    def _aead(self, key: SecretKey) -> AESGCM:
        return AESGCM(key.derive(self._purpose, 32))
