"""Password hashes of other servers as text: read from an import, written into an export.

Every text is measured before it is matched, and no pattern backtracks.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from store.crypto.foreign.hashes import BROKEN, KEPT_DIGEST, ForeignHash

MAX_TEXT = 1024
MAX_NUMBER = 2**31
UNKNOWN = "The password hash is of a kind that this server doesn't know."

_B64 = r"[A-Za-z0-9+/=._-]{1,600}"
_N = r"([0-9]{1,10})"
_BCRYPT = re.compile(r"\$2[aby]\$([0-9]{2})\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})")
_ARGON2 = re.compile(rf"\$(argon2id?)\$v=19\$m={_N},t={_N},p={_N}\$({_B64})\$({_B64})")
_SCRYPT = re.compile(rf"\$scrypt\$ln={_N},r={_N},p={_N}\$({_B64})\$({_B64})")
_PBKDF2 = re.compile(rf"\$pbkdf2(-sha1|-sha256|-sha512|)\$(?:i=)?{_N}(?:,l={_N})?\$({_B64})\$({_B64})")
_FIREBASE = re.compile(rf"\$fbscrypt\$v=1,n={_N},r={_N},p=1(?:,ss=({_B64}))?,sk=({_B64})\$({_B64})\$({_B64})")
_DJANGO_PBKDF2 = re.compile(rf"pbkdf2_(sha1|sha256|sha512)\${_N}\$([^$]{{1,64}})\$({_B64})")
_DJANGO_SCRYPT = re.compile(rf"scrypt\${_N}\$([^$]{{1,64}})\${_N}\${_N}\$({_B64})")
_WRAPPED = ("argon2$argon2", "bcrypt$$2", "bcrypt_sha256$$2")


def read_hash(value: object) -> ForeignHash:
    """The hash in one of the forms that docs/moving/importing.md lists: a text, or an object with `algorithm`. Raises
    ValueError, without anything of the input."""
    if isinstance(value, Mapping):
        return _from_object(value)
    if not isinstance(value, str) or not value.isascii():
        raise ValueError(UNKNOWN)
    if len(value) > MAX_TEXT:
        raise ValueError(BROKEN)
    for pattern, read in _FORMS:
        if match := pattern.fullmatch(value):
            return read(*match.groups())
    if value.startswith(_WRAPPED):
        name, _, inner = value.partition("$")
        found = read_hash(inner if inner.startswith("$") else f"${inner}")
        return ForeignHash("bcrypt-sha256", found.cost, found.salt, found.digest) if name == "bcrypt_sha256" else found
    raise ValueError(UNKNOWN)


def firebase_hash(value: str, salt: str, signer_key: str, separator: str, memory_cost: int, rounds: int) -> ForeignHash:
    """The hash of a Firebase project's export, without the project's signer key. Raises ValueError."""
    sealed, key = decode_base64(value), decode_base64(signer_key)
    if len(sealed) < KEPT_DIGEST or len(key) < KEPT_DIGEST:
        raise ValueError(BROKEN)
    stream = bytes(left ^ right for left, right in zip(sealed[:KEPT_DIGEST], key[:KEPT_DIGEST], strict=True))
    whole = decode_base64(salt) + (decode_base64(separator) if separator else b"")
    return _made("firebase-scrypt", (memory_cost, rounds), whole, stream)


def text_of(found: ForeignHash) -> str | dict[str, Any]:
    """The hash in a form that `read_hash` reads, the usual one where there is one."""
    salt, value = (base64.b64encode(one).decode() for one in (found.salt, found.digest))
    match found.scheme:
        case "bcrypt" | "bcrypt-sha256":
            text = f"$2b${found.cost[0]:02d}${found.salt.decode()}{found.digest.decode()}"
            return text if found.scheme == "bcrypt" else f"bcrypt_sha256${text}"
        case "argon2i" | "argon2id" if found.cost[3] == len(found.digest):
            memory, passes, lanes, _ = found.cost
            return argon2_text(found.scheme, memory, passes, lanes, found.salt, found.digest)
    numbers = dict(zip(_NUMBERS[found.scheme], found.cost, strict=True))
    return {"algorithm": found.scheme, **numbers, "salt": salt, "value": value}


def argon2_text(kind: str, memory_kib: int, passes: int, lanes: int, salt: bytes, digest: bytes) -> str:
    """An Argon2 hash in the form of the reference implementation."""
    end = "$".join(base64.b64encode(one).decode().rstrip("=") for one in (salt, digest))
    return f"${kind}$v=19$m={memory_kib},t={passes},p={lanes}${end}"


def decode_base64(text: object) -> bytes:
    """The bytes of a Base64 text, with or without padding, in the alphabets of RFC 4648 and of passlib. Raises
    ValueError."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise ValueError(BROKEN)
    plain = text.rstrip("=").translate(_ALPHABETS)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(BROKEN) from None


_ALPHABETS = str.maketrans("._-", "+/+")
_NUMBERS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512"), ("iterations",)),
    **dict.fromkeys(("argon2i", "argon2id"), ("memory", "iterations", "parallelism", "length")),
    "scrypt": ("log2n", "r", "p", "length"),
    "firebase-scrypt": ("memory_cost", "rounds"),
}
"""The members of an object that have the numbers of a scheme."""


def _from_object(value: Mapping[str, Any]) -> ForeignHash:
    scheme = value.get("algorithm")
    scheme = "pbkdf2-sha1" if scheme == "pbkdf2" else scheme  # Keycloak's name
    if not isinstance(scheme, str) or scheme not in _NUMBERS:
        raise ValueError(UNKNOWN)
    digest = decode_base64(value.get("value"))
    names = _NUMBERS[scheme]
    if not {"algorithm", "salt", "value", *names} >= value.keys():
        raise ValueError(BROKEN)
    numbers = [value.get(name, len(digest) if name == "length" else None) for name in names]
    return _made(scheme, tuple(map(_number, numbers)), decode_base64(value.get("salt")), digest)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_NUMBER:
        raise ValueError(BROKEN)
    return value


def _made(scheme: str, cost: tuple[int, ...], salt: bytes, digest: bytes) -> ForeignHash:
    """Numbers beyond what the store's form holds are beyond the bounds too, which ForeignHash says first."""
    return ForeignHash(scheme, cost, salt, digest[:KEPT_DIGEST])


def _bcrypt(cost: str, salt: str, digest: str) -> ForeignHash:
    return _made("bcrypt", (int(cost),), salt.encode(), digest.encode())


def _argon2(kind: str, memory: str, passes: str, lanes: str, salt: str, digest: str) -> ForeignHash:
    value = decode_base64(digest)
    return _made(kind, (int(memory), int(passes), int(lanes), len(value)), decode_base64(salt), value)


def _scrypt(log_n: str, r: str, p: str, salt: str, digest: str) -> ForeignHash:
    value = decode_base64(digest)
    return _made("scrypt", (int(log_n), int(r), int(p), len(value)), decode_base64(salt), value)


def _pbkdf2(kind: str, rounds: str, length: str | None, salt: str, digest: str) -> ForeignHash:
    value = decode_base64(digest)
    if length is not None and int(length) != len(value):
        raise ValueError(BROKEN)
    return _made(f"pbkdf2{kind or '-sha1'}", (int(rounds),), decode_base64(salt), value)


def _firebase(log_n: str, r: str, separator: str | None, key: str, salt: str, digest: str) -> ForeignHash:
    return firebase_hash(digest, salt, key, separator or "", int(log_n), int(r))


def _django_pbkdf2(kind: str, rounds: str, salt: str, digest: str) -> ForeignHash:
    return _made(f"pbkdf2-{kind}", (int(rounds),), salt.encode(), decode_base64(digest))


def _django_scrypt(n: str, salt: str, r: str, p: str, digest: str) -> ForeignHash:
    whole = int(n)
    if whole < 2 or whole & (whole - 1):
        raise ValueError(BROKEN)
    value = decode_base64(digest)
    return _made("scrypt", (whole.bit_length() - 1, int(r), int(p), len(value)), salt.encode(), value)


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[..., ForeignHash]], ...]] = (
    (_BCRYPT, _bcrypt),
    (_ARGON2, _argon2),
    (_DJANGO_PBKDF2, _django_pbkdf2),
    (_PBKDF2, _pbkdf2),
    (_SCRYPT, _scrypt),
    (_DJANGO_SCRYPT, _django_scrypt),
    (_FIREBASE, _firebase),
)
