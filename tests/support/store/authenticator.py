"""A passkey in software, which answers as browsers do and lies on request."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from store.accounts.signin.passkeys import decode, encode

PRESENT, VERIFIED, ATTESTED, EXTENDED = 1, 4, 64, 128


@dataclass
class Authenticator:
    """One passkey on one device. `count` rises with each signature; None is a device without a counter."""

    origin: str
    rp_id: str = "localhost"
    count: int | None = 0

    def __post_init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential = encode(os.urandom(16))
        self.user = ""

    def create(self, options: dict[str, Any], **lies: Any) -> str:
        """The answer to `navigator.credentials.create`, as the page's script sends it."""
        self.user = options["user"]["id"]
        raw, numbers = decode(self.credential), self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + struct.pack(">H", len(raw)) + raw + cbor2.dumps(lies.get("cose", cose))
        extensions = lies.get("extensions", b"")
        data = self._data(lies, ATTESTED | (EXTENDED if extensions else 0)) + attested + extensions
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, **lies.get("attestation", {}), "authData": data})
        response = {"attestationObject": encode(attestation), "transports": ["internal", "pigeon"]}
        return self._answer("webauthn.create", options, lies, response)

    def get(self, options: dict[str, Any], **lies: Any) -> str:
        """The answer to `navigator.credentials.get`."""
        if self.count is not None:
            self.count += 1
        extensions = lies.get("extensions", b"")
        data = self._data(lies, EXTENDED if extensions else 0) + extensions
        client = self._client("webauthn.get", options, lies)
        signed = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {
            "authenticatorData": encode(data),
            "signature": encode(lies.get("signature", signed)),
            "userHandle": lies.get("user", self.user),
        }
        return self._answer("webauthn.get", options, lies, response)

    def _data(self, lies: dict[str, Any], flags: int = 0) -> bytes:
        flags |= lies.get("flags", PRESENT | VERIFIED)
        rp_hash = hashlib.sha256(lies.get("rp_id", self.rp_id).encode()).digest()
        return rp_hash + struct.pack(">BI", flags, lies.get("count", self.count or 0))

    def _client(self, kind: str, options: dict[str, Any], lies: dict[str, Any]) -> bytes:
        client = {
            "type": lies.get("kind", kind),
            "challenge": lies.get("challenge", options["challenge"]),
            "origin": lies.get("origin", self.origin),
            "crossOrigin": lies.get("cross", False),
        }
        return json.dumps(client).encode()

    def _answer(self, kind: str, options: dict[str, Any], lies: dict[str, Any], response: dict[str, Any]) -> str:
        credential = lies.get("credential", self.credential)
        response["clientDataJSON"] = encode(self._client(kind, options, lies))
        return json.dumps({"id": credential, "rawId": credential, "type": "public-key", "response": response})
