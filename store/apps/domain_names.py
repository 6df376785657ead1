"""Names of domains that an app may prove as its own."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")


def is_domain(text: str) -> bool:
    """Whether a text is a domain name in lower-case ASCII with at least two labels: no IP address, no loopback."""
    if len(text) > 253 or not _DOMAIN.fullmatch(text) or text.endswith(".localhost"):
        return False
    return not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", text.rpartition(".")[2])
