"""What the readers of exports share: members of records, links, and the files that come with an export."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import orjson

from store.clock import wall
from store.moving.import_lines import lines_of
from store.names import MAX_NAME_LENGTH

ISSUERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("google", "google-oauth2", "google.com"), "https://accounts.google.com"),
    **dict.fromkeys(("github", "github.com"), "https://github.com"),
    **dict.fromkeys(("apple", "apple.com"), "https://appleid.apple.com"),
    **dict.fromkeys(("gitlab",), "https://gitlab.com"),
    **dict.fromkeys(("facebook", "facebook.com"), "https://www.facebook.com"),
}
"""Issuers of the providers that have one everywhere, by the names that exports use."""
OWN = frozenset(("auth0", "password", "email", "phone", "anonymous", "custom", "firebase"))
"""Names in lists of providers that mean the server itself."""
_HASH_CONFIG = re.compile(r"\s*\"?([a-z0-9_]{1,32})\"?\s*[:=]\s*\"?([A-Za-z0-9+/=_-]{0,200})\"?\s*,?\s*")
MOST_CONFIG = 16 * 1024


@dataclass(slots=True)
class Brought:
    """What comes with an export. `issuers`: of providers, by name. `passwords`: hashes by user id and by address.
    `hash_config`: the parameters of Firebase's hash. `groups`: names of Django's groups by number. `left`: links that
    were left out because nobody named their issuer, by provider."""

    issuers: dict[str, str] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    hash_config: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    def link(self, provider: object, subject: object) -> list[dict[str, str]]:
        """The link to an account at a provider, if its issuer is known."""
        if (
            not isinstance(provider, str)
            or provider.lower() in OWN
            or not isinstance(subject, str | int)
            or not subject
        ):
            return []
        issuer = self.issuers.get(provider) or ISSUERS.get(provider.lower())
        if issuer is None:
            name = provider[:64] if len(self.left) < 100 else "others"
            self.left[name] = self.left.get(name, 0) + 1
            return []
        return [{"issuer": issuer, "subject": str(subject)}]


def text(record: Mapping[str, Any], *names: str) -> str:
    """The first of these members that is text and not empty, or ""."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def named(name: str, email: str) -> str:
    """A name within the bound, or else the part of the address before the @."""
    return (name or email.partition("@")[0])[:MAX_NAME_LENGTH]


def from_ms(value: object) -> str | None:
    """A time in epoch ms, also as text, as a line has it."""
    try:
        moment = datetime.fromtimestamp(int(value) / 1000, UTC) if isinstance(value, int | str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat() if moment else None


def is_ahead(moment: str) -> bool:
    """Whether a time in ISO form is still to come."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return False
    return (found if found.tzinfo else found.replace(tzinfo=UTC)) > wall.utc()


def read_hash_config(content: str) -> dict[str, str]:
    """Firebase's parameters, as its console shows them. Raises ValueError."""
    found: dict[str, str] = {}
    for line in content[:MOST_CONFIG].splitlines():
        if match := _HASH_CONFIG.fullmatch(line):
            found[match[1]] = match[2]
    if not {"base64_signer_key", "rounds", "mem_cost"} <= found.keys():
        raise ValueError("The hash config has base64_signer_key, base64_salt_separator, rounds and mem_cost.")
    return found


def read_passwords(file: BinaryIO) -> dict[str, str]:
    """The hashes of Auth0's second file, by user id and by address. All of them are kept in memory: some 300 bytes
    each. Raises ValueError."""
    found = {}
    for line in lines_of(file):
        if line.wrong or not line.raw.strip():
            continue
        try:
            record = orjson.loads(line.raw)
        except orjson.JSONDecodeError:
            raise ValueError("The file of passwords has a line that is no JSON.") from None
        if not isinstance(record, dict):
            continue
        own = record.get("_id")
        key = text(own, "$oid") if isinstance(own, dict) else text(record, "_id")
        hashed = text(record, "passwordHash", "password_hash")
        if hashed:
            found[f"auth0|{key}" if key else text(record, "email").lower()] = hashed
    return found
