"""Base64url without padding, as JOSE writes it (RFC 7515 2). Each byte string has exactly one text."""

from __future__ import annotations

import binascii

from store.crypto.jose.refusal import JoseError

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")


def encode(raw: bytes) -> str:
    """The text of these bytes."""
    return binascii.b2a_base64(raw, newline=False).translate(_TO_URL, b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of a text. Raises JoseError("base64") for padding, spare bits and other ways to write the bytes. The
    caller bounds the length."""
    try:
        body = text.encode("ascii")
        raw = binascii.a2b_base64(body.translate(_TO_STANDARD) + b"==")
    except ValueError:
        raise JoseError("base64") from None
    # The decoder is lenient, so encoding again ensures one text for each value.
    if binascii.b2a_base64(raw, newline=False).translate(_TO_URL, b"=") != body:
        raise JoseError("base64")
    return raw
