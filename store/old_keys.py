"""Keys of earlier layouts, for the upgrade. It spells no present key: store/keys.py does that."""

from __future__ import annotations

import re

from store import keys

# Layout 1 had the client id in the keys of tokens, and the connected apps in a list of their own.
_TOKEN = re.compile(r"(\{[0-9a-f]{3}\}:[0-9a-f]{32}:)(?:(code|family):[^:]+:([^:]+)|(access):[^:]+:([^:]+:\d+))")


def token_of_layout_1(key: str) -> tuple[str, str] | None:
    """The present key for a token's key of layout 1, and its noun: code, family or access. None for any other key."""
    found = _TOKEN.fullmatch(key)
    if not found:
        return None
    prefix, noun, one_id, access, rest = found.groups()
    return f"{prefix}{noun or access}:{one_id or rest}", noun or access


def person_of_layout_1(user: str) -> dict[str, str]:
    """The fixed keys of a person, and the list of connected apps."""
    return {**keys.person(user), "grants": f"{keys.prefix(user)}grants"}
