"""Passkeys: what browsers are asked, and whether what they answer holds (WebAuthn Level 3, 7.1 and 7.2). No I/O."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgpack
from webauthn.authentication.verify_authentication_response import verify_authentication_response
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.registration.verify_registration_response import verify_registration_response

from store.lifetimes import CHALLENGE
from store.refused import Refused

MOST = 20  # passkeys of one person
MOST_NAME = 60  # characters
_MOST_KEY = 1024  # bytes
_MOST_ID = 1023  # bytes, WebAuthn 5.8.3
_ALGORITHMS = [
    COSEAlgorithmIdentifier.EDDSA,
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,
]
_TRANSPORTS = ("ble", "hybrid", "internal", "nfc", "smart-card", "usb")


class Party(NamedTuple):
    """Who asks for a passkey: its domain, to which the passkey is bound, and the origin of its pages."""

    rp_id: str
    origin: str


class Answer(NamedTuple):
    """What a browser says of a credential: `user` is the user id it was made for, where it says so."""

    credential: str
    user: str | None
    text: str


class Made(NamedTuple):
    """A new passkey, as `add_passkey.lua` takes it."""

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


def party_of(base_url: str) -> Party | None:
    """The party that pages under this origin are; None where browsers offer no passkeys: the host is an address instead
    of a name, or without TLS one that is not this machine."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
        return Party(host, base_url) if host and (parts.scheme == "https" or local) else None
    return None


def options_for_new(
    party: Party, product: str, user: str, email: str, name: str, challenge: str, present: Iterable[str]
) -> dict[str, Any]:
    """What a browser is asked to make: a passkey that it can offer before a name is typed, and that checks who holds
    it."""
    return {
        "rp": {"id": party.rp_id, "name": product},
        "user": {"id": encode(bytes.fromhex(user)), "name": email, "displayName": name},
        "challenge": encode(challenge.encode()),
        "pubKeyCredParams": [{"type": "public-key", "alg": int(algorithm)} for algorithm in _ALGORITHMS],
        "timeout": CHALLENGE,
        "excludeCredentials": _described(present),
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
    }


def options_for_use(party: Party, challenge: str, allowed: Iterable[str] = ()) -> dict[str, Any]:
    """What a browser is asked to sign with: one of these credentials, or any that it has for this party."""
    return {
        "rpId": party.rp_id,
        "challenge": encode(challenge.encode()),
        "timeout": CHALLENGE,
        "allowCredentials": _described(allowed),
        "userVerification": "required",
    }


def read_answer(text: str) -> Answer:
    """Which credential answers. Raises Refused("access_denied") for what is no answer of a browser."""
    try:
        answer = json.loads(text)
        credential = answer["id"]
        handle = answer["response"].get("userHandle")
        if not isinstance(credential, str) or len(decode(credential)) > _MOST_ID:
            raise ValueError("no credential id")
        user = decode(handle).hex() if handle else None
        if user is not None and len(user) != 32:
            raise ValueError("no user id of ours")
        client = json.loads(decode(answer["response"]["clientDataJSON"]))
        if client.get("crossOrigin") is True or client.get("topOrigin") is not None:
            raise ValueError("the page stood in another one")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _refused() from None
    return Answer(credential, user, text)


def check_new(party: Party, challenge: str, answer: Answer, name: str) -> Made:
    """WebAuthn 7.1. Raises Refused("access_denied")."""
    try:
        made = verify_registration_response(
            credential=answer.text,
            expected_challenge=challenge.encode(),
            expected_rp_id=party.rp_id,
            expected_origin=party.origin,
            require_user_verification=True,
            supported_pub_key_algs=_ALGORITHMS,
        )
        said = json.loads(answer.text)["response"].get("transports") or ()
        transports = sorted({item for item in said if item in _TRANSPORTS})
    except Exception:
        # The library has exceptions for what it foresaw; what is broken otherwise raises others out of its parsers.
        raise _refused() from None
    if encode(made.credential_id) != answer.credential or len(made.credential_public_key) > _MOST_KEY:
        raise _refused()
    facts = msgpack.packb([made.credential_public_key, name, transports])
    return Made(answer.credential, facts, made.sign_count)


def check_use(party: Party, challenge: str, answer: Answer, facts: bytes) -> int:
    """WebAuthn 7.2; the counter, which this returns, is held against the one before in the store. Raises
    Refused("access_denied")."""
    public_key, _, _ = msgpack.unpackb(facts)
    try:
        found = verify_authentication_response(
            credential=answer.text,
            expected_challenge=challenge.encode(),
            expected_rp_id=party.rp_id,
            expected_origin=party.origin,
            credential_public_key=public_key,
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception:  # as in check_new
        raise _refused() from None
    return found.new_sign_count


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
        created = _at(int(rows[f"c:{credential}"]))
        found.append(Passkey(credential, name, created, _at(used) if used else None, tuple(transports)))
    return tuple(sorted(found, key=lambda passkey: passkey.created_at))


def credentials_of(names: Iterable[bytes]) -> list[str]:
    """The ids in the names of the fields of the hash."""
    return [name[2:].decode() for name in names if name.startswith(b"k:")]


def encode(raw: bytes) -> str:
    """Base64url without padding, as WebAuthn has it."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes. Raises ValueError for what `encode` does not make."""
    raw = base64.urlsafe_b64decode(text.encode("ascii") + b"==")
    if encode(raw) != text:
        raise ValueError("not base64url")
    return raw


def _described(credentials: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "public-key", "id": credential} for credential in credentials]


def _at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _refused() -> Refused:
    return Refused("access_denied", "That passkey could not be used here. Try again.")
