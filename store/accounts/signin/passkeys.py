"""Passkeys: the options for browsers, and their answers (WebAuthn Level 3). No I/O.

The sender controls everything in an answer until its signature is checked. So an answer is bounded before it is parsed.
`store/accounts/signin/passkey_checks.py` checks answers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgpack

from store.lifetimes import CHALLENGE
from store.moments import at
from store.phrases import Phrase
from store.refused import Refused

MOST = 20  # passkeys of one person
MOST_NAME = 60  # characters
MOST_ANSWER = 16_384  # characters of an answer: real ones have 600 to 2,000, with a chain of certificates 10,000
_MOST_CLIENT_DATA = 4096  # bytes
_MOST_ID = 1023  # bytes, WebAuthn 5.8.3
ALGORITHMS = (-8, -7, -257)  # EdDSA, ES256, RS256: RFC 9053 2 and RFC 8812 2


class RelyingParty(NamedTuple):
    """The party that asks for a passkey: its domain, which the passkey is bound to, and the origin of its pages."""

    rp_id: str
    origin: str


class PasskeyResponse(NamedTuple):
    """A browser's answer with a credential. `user`: the user id that the credential was made for, if given; `sent`: the
    whole answer, bounded and parsed as JSON, otherwise unchecked."""

    credential: str
    user: str | None
    sent: Mapping[str, Any]


class NewPasskey(NamedTuple):
    """A new passkey, in the form of `add_passkey.lua`."""

    credential: str
    facts: bytes
    counter: int


class Passkey(NamedTuple):
    """A passkey as its person sees it."""

    credential: str
    name: str
    created_at: datetime
    used_at: datetime | None
    transports: tuple[str, ...]


def relying_party_of(base_url: str) -> RelyingParty | None:
    """The party of pages under this origin. None if browsers offer no passkeys there: the host is an address instead of
    a name, or the origin has no TLS and is not this machine."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
        return RelyingParty(host, base_url) if host and (parts.scheme == "https" or local) else None
    return None


def options_for_new(
    relying_party: RelyingParty, product: str, user: str, email: str, name: str, challenge: str, present: Iterable[str]
) -> dict[str, Any]:
    """The options for a new passkey: discoverable before a name is typed, with user verification."""
    return {
        "rp": {"id": relying_party.rp_id, "name": product},
        "user": {"id": encode(bytes.fromhex(user)), "name": email, "displayName": name},
        "challenge": encode(challenge.encode()),
        "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in ALGORITHMS],
        "timeout": CHALLENGE,
        "excludeCredentials": _described(present),
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
    }


def options_for_use(relying_party: RelyingParty, challenge: str, allowed: Iterable[str] = ()) -> dict[str, Any]:
    """The options for a signature: with one of these credentials, or with any credential for this party."""
    return {
        "rpId": relying_party.rp_id,
        "challenge": encode(challenge.encode()),
        "timeout": CHALLENGE,
        "allowCredentials": _described(allowed),
        "userVerification": "required",
    }


def read_answer(text: str) -> PasskeyResponse:
    """Parses a browser's answer. Raises Refused("access_denied") if the text is not one."""
    if len(text) > MOST_ANSWER:
        raise refused_answer()
    try:
        sent = json.loads(text)
        credential, response = sent["id"], sent["response"]
        handle = response.get("userHandle")
        if not isinstance(credential, str) or len(decode(credential)) > _MOST_ID:
            raise ValueError("no credential id")
        user = decode(handle).hex() if handle else None
        if user is not None and len(user) != 32:
            raise ValueError("no user id of ours")
        client = decode(response["clientDataJSON"])
        if len(client) > _MOST_CLIENT_DATA:
            raise ValueError("too much client data")
        page = json.loads(client)
        if page.get("crossOrigin") is True or page.get("topOrigin") is not None:
            raise ValueError("the page stood in another one")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refused_answer() from None
    return PasskeyResponse(credential, user, sent)


def renamed(facts: bytes, name: str) -> bytes:
    """The facts of a passkey under another name."""
    public_key, _, transports = msgpack.unpackb(facts)
    packed: bytes = msgpack.packb([public_key, name, transports])
    return packed


def passkeys_of(fields: list[bytes]) -> tuple[Passkey, ...]:
    """The passkeys in the fields and values of the hash, oldest first."""
    rows: Mapping[str, bytes] = dict(zip((name.decode() for name in fields[::2]), fields[1::2], strict=True))
    found = []
    for credential in credentials_of(fields[::2]):
        _, name, transports = msgpack.unpackb(rows[f"k:{credential}"])
        used = int(rows[f"n:{credential}"].split()[1])
        created = at(int(rows[f"c:{credential}"]))
        found.append(Passkey(credential, name, created, at(used) if used else None, tuple(transports)))
    return tuple(sorted(found, key=lambda passkey: passkey.created_at))


def credentials_of(names: Iterable[bytes]) -> list[str]:
    """The credential ids in the field names of the hash."""
    return [name[2:].decode() for name in names if name.startswith(b"k:")]


def encode(raw: bytes) -> str:
    """Base64url without padding, as in WebAuthn."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The decoded bytes. Raises ValueError for text that `encode` would not produce."""
    raw = base64.urlsafe_b64decode(text.encode("ascii") + b"==")
    if encode(raw) != text:
        raise ValueError("not base64url")
    return raw


def _described(credentials: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "public-key", "id": credential} for credential in credentials]


def refused_answer() -> Refused:
    """The refusal of an answer that fails its check. The text gives no reason."""
    return Refused("access_denied", Phrase("That passkey can't be used here. Try again."))
