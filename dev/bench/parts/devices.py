"""Keys that access tokens are bound to, and DPoP proofs for calls with such tokens. RFC 9449."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from dev.bench.parts.rows import http
from store.clock import wall
from store.crypto.dpop import TYPE, token_hash
from store.crypto.jose import base64url
from store.crypto.jose.algorithms import ES256
from store.crypto.jose.private import PrivateKey
from store.crypto.seal import new_id

DEVICES = 1_000
"""Keys of a measurement, the same number for each server."""


class Device(NamedTuple):
    """A key, and the first part of each of its proofs."""

    key: PrivateKey
    head: str

    @classmethod
    def make(cls) -> Device:
        """A device with a new key."""
        key = PrivateKey.generate(ES256)
        jwk = {name: value for name, value in key.public.to_jwk().items() if name in ("crv", "kty", "x", "y")}
        return cls(key, base64url.encode(orjson.dumps({"typ": TYPE, "alg": ES256, "jwk": jwk})))

    @property
    def thumbprint(self) -> str:
        """The name of the key in a bound token."""
        return self.key.public.thumbprint

    def proof(self, method: str, uri: str, ath: str) -> str:
        """A new proof for a call with the token whose hash is `ath`."""
        claims = {"jti": new_id(), "htm": method, "htu": uri, "iat": int(wall.time()), "ath": ath}
        signed = f"{self.head}.{base64url.encode(orjson.dumps(claims))}"
        return f"{signed}.{base64url.encode(self.key.sign(signed.encode()))}"


class BoundCalls:
    """GETs with bound tokens in turn, each with a proof of its own. `uri`: the address in the proofs."""

    def __init__(self, devices: Sequence[Device], tokens: Sequence[str], path: str, uri: str) -> None:
        self._devices = devices
        self._tokens = [(token, token_hash(token)) for token in tokens]
        self._path = path
        self._uri = uri
        self._used = 0

    def make(self, count: int) -> list[bytes]:
        """The next `count` requests. They must be sent within a minute. The device of a token has its number, counted
        around."""
        first, self._used = self._used, (self._used + count) % len(self._tokens)
        return [self._request((first + number) % len(self._tokens)) for number in range(count)]

    def _request(self, number: int) -> bytes:
        token, ath = self._tokens[number]
        proof = self._devices[number % len(self._devices)].proof("GET", self._uri, ath)
        return http("GET", self._path, {"Authorization": f"DPoP {token}", "DPoP": proof})
