"""Sealed tokens: every token, code, cookie and mail link is a small payload under AES-SIV (RFC 5297).

Opening a token needs no I/O: a forged token is refused before the store is asked, and a real one names its own keys.
AES-SIV is deterministic and needs no nonce, so the same token is always the same string, and a rotation can be answered
again. Wire form: the kind's prefix, then base64url without padding of key id (1 byte) and ciphertext.
"""

from __future__ import annotations

import binascii
import enum
import hashlib
import os
import random
import re
import secrets
import struct
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from store.crypto.keyring import Keys, SecretKey

MAX_CLIENT_BYTES = 254
NOBODY = "0" * 32
"""The user of a sealed text that belongs to no person."""

_TAG_BYTES = 16
_FIXED = struct.Struct(">16s16sI")  # user, id, generation; the client is the rest
_PREFIX_LENGTH = len("lk_at_")
_USER = re.compile(r"[0-9a-f]{32}")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")


class TokenKind(enum.Enum):
    """The kind of a sealed string. It is authenticated, so one kind never opens as another."""

    ACCESS = "at"
    REFRESH = "rt"
    CODE = "ac"
    SESSION = "ss"
    REQUEST = "rq"
    INVITE = "in"
    SECOND_STEP = "hs"
    CHALLENGE = "ch"
    CONFIRM = "cf"
    RESET = "pr"
    CHANGE = "ce"
    UNDO = "un"
    PICTURE = "pc"
    DEVICE = "dv"
    PROGRESS = "pg"
    PUSHED = "pu"
    BROWSER = "br"
    DPOP_NONCE = "dn"
    LISTED = "la"
    TEAM = "ti"
    DEVICE_CODE = "dc"
    CURSOR = "cu"
    UPSTREAM = "up"

    prefix: str
    associated_data: tuple[list[bytes], ...]

    def __init__(self, word: str) -> None:
        self.prefix = f"lk_{word}_"
        # One entry for each key id, made once: the key id is authenticated with the kind.
        self.associated_data = tuple([b"latchkey-" + word.encode() + bytes((key_id,))] for key_id in range(256))


class Token(NamedTuple):
    """The fields in a sealed string; its bearer can read none of them."""

    kind: TokenKind
    user: str
    """32 lower-case hex digits (16 bytes)."""
    client: str
    """Text of at most 254 bytes in UTF-8, may be empty; for an invitation and a mailed link, the e-mail address; for a
    picture, the letters on a generated one."""
    id: str
    """22 characters of base64url (16 bytes), made by `new_id`."""
    generation: int
    """0 to 2**32 - 1."""


class Sealer:
    """Seals under the ring's front key and opens under any key of the ring."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._load()

    @property
    def front(self) -> SecretKey:
        """The key that seals now."""
        return self._keys.ring.front

    def seal(self, token: Token) -> str:
        """Return the string of this token. Raises ValueError for fields out of range."""
        return self.seal_as((token.kind,), token)[0]

    def seal_as(self, kinds: Sequence[TokenKind], token: Token) -> list[str]:
        """Return the strings of tokens that differ only in their kind. Raises ValueError as `seal`."""
        payload = _pack(token)
        if self._keys.ring is not self._ring:
            self._load()
        key_id = self._ring.front.id
        cipher, head = self._ciphers[key_id], bytes((key_id,))
        return [
            kind.prefix + _encode(head + cipher.encrypt(payload, kind.associated_data[key_id])).decode()
            for kind in kinds
        ]

    def open(self, kind: TokenKind, text: str) -> Token | None:
        """Return the token in `text`, or None for any text that this service did not seal as this kind.

        Never raises, whatever the string.
        """
        if not _MIN_LENGTH <= len(text) <= _MAX_LENGTH or not text.startswith(kind.prefix):
            return None
        try:
            body = text[_PREFIX_LENGTH:].encode("ascii")
            sealed = binascii.a2b_base64(body.translate(_TO_STANDARD) + b"==")
        except ValueError:
            return None
        # The decoder is lenient; encoding again ensures exactly one string for each token.
        if _encode(sealed) != body:
            return None
        if self._keys.ring is not self._ring:
            self._load()
        key_id = sealed[0]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            if self._keys.find(key_id) is None:
                return None
            self._load()
            cipher = self._ciphers[key_id]
        try:
            payload = cipher.decrypt(sealed[1:], kind.associated_data[key_id])
        except InvalidTag:
            return None
        return _unpack(kind, payload)

    def _load(self) -> None:
        ring = self._keys.ring
        self._ciphers = {key.id: AESSIV(key.derive(b"seal", 64)) for key in ring.keys}
        self._ring = ring


def new_id() -> str:
    """Return 16 random bytes as 22 characters of base64url."""
    return _encode(os.urandom(16)).decode()


def fresh_epoch() -> str:
    """A new epoch: 63 random bits, which the store keeps as a number. It is not secret, because nobody presents one."""
    return str(random.getrandbits(63))


def new_user_id() -> str:
    """Return 16 random bytes as 32 lower-case hex digits."""
    return secrets.token_hex(16)


def fingerprint(text: str) -> str:
    """Return a fingerprint of 22 characters for any string that must not be stored itself.

    Lone surrogates are allowed. It is the first 16 bytes of SHA-256 in base64url: only for secrets of high entropy and
    for strings that are not secret.
    """
    return _encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]).decode()


def _encode(raw: bytes) -> bytes:
    return binascii.b2a_base64(raw, newline=False).translate(_TO_URL, b"=")


def _sealed_length(client_bytes: int) -> int:
    return _PREFIX_LENGTH + len(_encode(bytes(1 + _TAG_BYTES + _FIXED.size + client_bytes)))


_MIN_LENGTH = _sealed_length(0)
_MAX_LENGTH = _sealed_length(MAX_CLIENT_BYTES)


def _pack(token: Token) -> bytes:
    if not _USER.fullmatch(token.user):
        raise ValueError("a user id is 32 lower-case hex digits")
    if not 0 <= token.generation < 1 << 32:
        raise ValueError("a generation is between 0 and 2**32 - 1")
    client = token.client.encode()
    if len(client) > MAX_CLIENT_BYTES:
        raise ValueError(f"a client is at most {MAX_CLIENT_BYTES} bytes")
    return _FIXED.pack(bytes.fromhex(token.user), _decode_id(token.id), token.generation) + client


def _decode_id(text: str) -> bytes:
    body = text.encode("ascii")
    raw = binascii.a2b_base64(body.translate(_TO_STANDARD) + b"==")
    if len(raw) != 16 or _encode(raw) != body:
        raise ValueError("an id is 16 bytes as 22 characters of base64url")
    return raw


def _unpack(kind: TokenKind, payload: bytes) -> Token:
    user, raw_id, generation = _FIXED.unpack_from(payload)
    return Token(kind, user.hex(), payload[_FIXED.size :].decode(), _encode(raw_id).decode(), generation)
