"""Detectors of Latchkey's own secrets, in a file that detect-secrets loads."""

from __future__ import annotations

import re

from detect_secrets.plugins.base import RegexBasedDetector

from store.crypto.seal import TokenKind

PREFIXES = [re.escape(kind.prefix) for kind in TokenKind] + ["lk_cs_"]


class LatchkeyDetector(RegexBasedDetector):
    """Tokens, client secrets, signing secrets and secret keys. The shortest token has 59 characters after its
    prefix."""

    secret_type = "Latchkey secret"  # the name of this detector

    denylist = (
        re.compile(rf"(?:{'|'.join(PREFIXES)})[A-Za-z0-9_-]{{40,}}"),
        re.compile(r"whsec_[A-Za-z0-9+/]{32,}={0,2}"),
        # An entry of LATCHKEY_SECRET_KEYS: the id, and 32 bytes in base64.
        re.compile(r"(?<![\w:.-])(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-5]):[A-Za-z0-9+/_-]{43}=?(?![A-Za-z0-9+/_=-])"),
    )
