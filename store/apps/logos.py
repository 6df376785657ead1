"""Logos of apps: their ids, which follow from the content, and their addresses."""

from __future__ import annotations

import base64
import hashlib
import re

LOGO_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def logo_id(image: bytes) -> str:
    """The id of an encoded logo: 128 bits of its digest in base64url; empty for none."""
    if not image:
        return ""
    return base64.urlsafe_b64encode(hashlib.sha256(image).digest()[:16]).rstrip(b"=").decode()


def logo_path(client_id: str, logo: str) -> str:
    """The path at which the logo with this id is served; empty for none. Another logo has another path."""
    return f"/logo/{client_id}/{logo}.webp" if logo else ""
