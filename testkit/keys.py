"""Keys for apps in tests: for DPoP proofs, client assertions and signed requests."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from store.clock import wall
from store.crypto.dpop import TYPE, token_hash
from store.crypto.jose import base64url
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.seal import new_id
from store.refused import Refused


class KeyBox:
    """The keys that tests asked for. They outlive a reset, so a fixture of a whole test run can keep one."""

    def __init__(self) -> None:
        self._keys: dict[str, PrivateKey] = {}

    async def make(self, algorithm: str) -> PrivateKey:
        """A new key. Raises Refused("invalid_request")."""
        if algorithm not in OURS:
            raise Refused("invalid_request", f"algorithm is one of {', '.join(OURS)}.")
        key = await asyncio.to_thread(PrivateKey.generate, algorithm)
        self._keys[key.kid] = key
        return key

    def proof(self, jkt: str, method: str, url: str, token: str | None, nonce: str | None) -> str:
        """A DPoP proof (RFC 9449 4.2) by the key with this thumbprint. Raises Refused("not_found")."""
        key = self._keys.get(jkt)
        if key is None:
            raise Refused("not_found", "No key of this thumbprint was made here.")
        now = int(wall.time())
        claims: dict[str, Any] = {"jti": new_id(), "htm": method, "htu": url.partition("?")[0], "iat": now}
        if token is not None:
            claims["ath"] = token_hash(token)
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": TYPE, "alg": key.algorithm, "jwk": key.public.to_jwk()}
        signed = ".".join(base64url.encode(orjson.dumps(part)) for part in (header, claims))
        return f"{signed}.{base64url.encode(key.sign(signed.encode()))}"


def private_jwk(key: PrivateKey) -> dict[str, str]:
    """The whole key as JSON (RFC 7518 6, RFC 8037 2)."""
    return {**key.public.to_jwk(key.algorithm), **_private_members(key.key)}


def _private_members(key: Any) -> dict[str, str]:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {"d": base64url.encode(key.private_bytes_raw())}
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return {"d": _number(key.private_numbers().private_value, key.key_size // 8)}
    assert isinstance(key, rsa.RSAPrivateKey)
    numbers = key.private_numbers()
    values = {
        **{"d": numbers.d, "p": numbers.p, "q": numbers.q},
        **{"dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp},
    }
    return {name: _number(value, (value.bit_length() + 7) // 8) for name, value in values.items()}


def _number(value: int, size: int) -> str:
    return base64url.encode(value.to_bytes(size, "big"))
