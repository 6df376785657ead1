"""The lines of an import: read within a bound, parsed, and checked as a sign-up is. No I/O but the file."""

from __future__ import annotations

import binascii
import re
from base64 import b32decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from store.accounts.external_ids import MOST as MOST_EXTERNAL
from store.accounts.external_ids import check_external_id
from store.accounts.identities import MOST_IDENTITIES, UpstreamIdentity, check_identity
from store.crypto.foreign.hashes import ForeignHash
from store.crypto.foreign.texts import read_hash
from store.json_text import Ambiguous, NotJSON, decode_quickly
from store.names import MAX_GROUPS, check_groups, check_person_name, normalise_email

MAX_LINE: Final = 64 * 1024
"""Bytes of a line, with its end."""
DEEPEST = 4
SECRET_BYTES = range(10, 65)
"""Bytes of the secret of an authenticator app: RFC 4226 4 wants 16 and recommends 20; older apps have 10."""
MEMBERS = frozenset(
    (
        *("email", "email_verified", "name", "password_hash", "totp_secret", "created_at", "status", "links"),
        *("groups", "external_id"),
    )
)
_NAME = re.compile(r"[A-Za-z][A-Za-z_]{0,39}")
TOO_LONG = f"The line has more than {MAX_LINE // 1024} KiB."


class ImportLine(NamedTuple):
    """A line of an import, or why its reader refuses it."""

    raw: bytes
    wrong: str = ""


@dataclass(slots=True, repr=False)
class Mover:
    """A person who moves in. `created_at`: epoch ms, None for the time of the import."""

    email: str
    name: str
    verified: bool = False
    password: ForeignHash | None = None
    totp_secret: bytes = b""
    created_at: int | None = None
    active: bool = True
    identities: tuple[UpstreamIdentity, ...] = ()
    groups: tuple[str, ...] = ()
    external_id: str = ""


def lines_of(file: BinaryIO) -> Iterator[ImportLine]:
    """Yields the lines of a file, without their ends. A longer one than MAX_LINE is skipped in pieces, and refused."""
    while raw := file.readline(MAX_LINE + 1):
        if len(raw) <= MAX_LINE:
            yield ImportLine(raw.rstrip(b"\r\n"))
            continue
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(MAX_LINE)
        yield ImportLine(b"", TOO_LONG)


def read_mover(raw: bytes, latest: int) -> Mover:
    """The person of a line. `latest`: the latest time of creation, in epoch ms. Raises ValueError, whose reason quotes
    nothing from the line but the name of a member."""
    try:
        record = decode_quickly(raw, DEEPEST)
    except Ambiguous:
        raise ValueError("The line has a repeated member, a NUL or half a character.") from None
    except NotJSON:
        raise ValueError(f"The line is no JSON object{_place(raw)}.") from None
    if not isinstance(record, dict):
        raise ValueError("The line is no JSON object.")
    if not record.keys() <= MEMBERS:
        unknown = sorted(record.keys() - MEMBERS)
        raise ValueError(f"The line has a member that an import doesn't know{_shown(unknown[0])}.")
    given = record if None not in record.values() else {name: one for name, one in record.items() if one is not None}
    email, name = (_text(given, member) for member in ("email", "name"))
    status = given.get("status", "active")
    if status not in ("active", "disabled"):
        raise ValueError("`status` is active or disabled.")
    return Mover(
        normalise_email(email),
        check_person_name(name),
        _flag(given.get("email_verified", False)),
        read_hash(given["password_hash"]) if "password_hash" in given else None,
        _secret(given["totp_secret"]) if "totp_secret" in given else b"",
        _moment(given["created_at"], latest) if "created_at" in given else None,
        status == "active",
        _identities(given["links"]) if "links" in given else (),
        _groups(given["groups"]) if "groups" in given else (),
        _external_id(given["external_id"]) if "external_id" in given else "",
    )


def _place(raw: bytes) -> str:
    """Where the parser stopped, in words; empty if it read the line to its end."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return f": the mistake is at column {error.colno}"
    return ""


def _shown(member: str) -> str:
    """The name of a member, in words; empty if it doesn't look like a name, because it may be a secret then."""
    return f": `{member}`" if _NAME.fullmatch(member) else ""


def _text(given: dict[str, Any], member: str) -> str:
    value = given.get(member, "")
    if not isinstance(value, str):
        raise ValueError(f"`{member}` must be text.")
    if not value:
        raise ValueError(f"`{member}` is missing.")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("`email_verified` is true or false.")
    return value


def _secret(value: object) -> bytes:
    """The bytes of a secret in Base32, in any case, with or without spaces and padding."""
    plain = "".join(value.split()).rstrip("=").upper() if isinstance(value, str) and len(value) <= 200 else ""
    try:
        secret = b32decode(plain + "=" * (-len(plain) % 8))
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) not in SECRET_BYTES:
        raise ValueError("`totp_secret` is 10 to 64 bytes in Base32.")
    return secret


def _moment(value: object, latest: int) -> int:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) and len(value) <= 64 else None
        moment = moment.replace(tzinfo=UTC) if moment and not moment.tzinfo else moment
        found = int(moment.timestamp() * 1000) if moment else -1
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found <= latest:
        raise ValueError("`created_at` is a time that has passed, such as 2024-01-31T08:00:00Z.")
    return found


def _identities(value: object) -> tuple[UpstreamIdentity, ...]:
    if not isinstance(value, list) or len(value) > MOST_IDENTITIES:
        raise ValueError(f"`links` is a list of at most {MOST_IDENTITIES}.")
    found = []
    for one in value:
        if not isinstance(one, dict) or one.keys() != {"issuer", "subject"}:
            raise ValueError("A link has an issuer and a subject, both text.")
        found.append(check_identity(one["issuer"], one["subject"]))
    return tuple(dict.fromkeys(found))


def _external_id(value: object) -> str:
    try:
        return check_external_id(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError(f"`external_id` is 1 to {MOST_EXTERNAL} printable characters.") from None


def _groups(value: object) -> tuple[str, ...]:
    if not value:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("`groups` is a list of names.")
    if len(value) > MAX_GROUPS:
        raise ValueError(f"A person has at most {MAX_GROUPS} groups.")
    return check_groups(value)
