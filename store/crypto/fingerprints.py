"""Fingerprints of texts under the secret keys: nobody without the keys can test a guess against them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from store.crypto.keyring import KeyRing, Keys, SecretKey

_PURPOSE: Final = b"latchkey security log"


class Fingerprints:
    """Makes and compares fingerprints: of addresses without an account, because people type passwords into that field,
    of operators' requests, which may have a password, and of their queries."""

    def __init__(self, secret_keys: Keys) -> None:
        self._keys = secret_keys

    def of(self, text: str) -> str:
        """The fingerprint of a text under the key in use: 16 characters of base64url. Lone surrogates are allowed."""
        return _fingerprint(self._keys.ring.front, text)

    def fits(self, found: str, text: str) -> bool:
        """Whether this is the fingerprint of a text, under any secret key."""
        return self.test(text)(found)

    def test(self, text: str) -> Callable[[str], bool]:
        """`fits` for many fingerprints, which may be made later, also under keys that are new by then."""
        made: tuple[KeyRing, frozenset[str]] | None = None

        def fits(found: str) -> bool:
            nonlocal made
            for ring in self._keys.rings():
                if made is None or made[0] is not ring:
                    made = ring, frozenset(_fingerprint(key, text) for key in ring.keys)
                if found in made[1]:
                    return True
            return False

        return fits


def _fingerprint(key: SecretKey, text: str) -> str:
    digest = hmac.digest(key.derive(_PURPOSE, 32), text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:12]).decode()
