"""The registration record of an API (a resource server) and its rules. RFC 8707, RFC 9068."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import msgpack

from store.apps.client_ids import client_id_of
from store.apps.client_secrets import live_notes, note_of, secret_digest, secret_mark, secret_matches, told
from store.apps.registration import LIVE_SECRETS, InvalidRegistration
from store.names import SCOPES, check_app_name
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.urls import is_host, is_loopback_url

MAX_IDENTIFIER = 200
MAX_API_SCOPES = 50
MAX_SCOPE_NAME = 64
MAX_TITLE = 100
MAX_DETAIL = 300
LEAST_LIFETIME, DEFAULT_LIFETIME, MOST_LIFETIME = 60, 600, 3600
"""Lifetimes of an API's access tokens in seconds. A JWT can't be taken back, so it is short."""
JWT_FORMAT = "jwt"
TOKEN_FORMATS = ("opaque", JWT_FORMAT)
SIGNING_ALGS = ("ES256", "RS256")
RESERVED_SCOPES = frozenset((*SCOPES, "openid", "profile", "email", "groups", "offline_access", "address", "phone"))
"""Scopes of Latchkey and of OpenID Connect, which no API may have."""

_ID_PREFIX, _ID_LENGTH = "api_", 19
_IDENTIFIER = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?([/?].*)?")
_ORIGIN = re.compile(r"https?://[^/?]+/?")
_CHARACTERS = re.compile(r"[!$-;=?-\[\]_a-z~]+")
# RFC 6749 3.3, without "=": `--scope NAME=Title` ends the name there.
_SCOPE_NAME = re.compile(r"[!#-<>-\[\]-~]+")


_SCOPE_FORM = Phrase(
    "The name of a scope must have 1 to %(most)s printable ASCII characters, without spaces, quotes, backslashes or =."
)
_RESERVED_NAME = Phrase("The name %(name)s belongs to Latchkey or OpenID. Choose another one.")
_TITLE_FORM = Phrase("The title of a scope must have 1 to %(most)s printable characters.")
_DETAIL_FORM = Phrase("The description (detail) of a scope must have 1 to %(most)s printable characters.")


class InvalidScope(InvalidRegistration):
    """A scope breaks a rule; `member`: which part of it does."""

    def __init__(self, said: str, member: str) -> None:
        super().__init__(said)
        self.member = member


@dataclass(frozen=True, slots=True)
class ApiScope:
    """A scope of an API. People see `title` and `detail` on the consent page; `care`: the page warns, and apps that
    registered themselves may not ask for it; `second_step`: whoever allows it needs a second step."""

    name: str
    title: str
    detail: str = ""
    care: bool = False
    second_step: bool = False

    def __post_init__(self) -> None:
        if not _SCOPE_NAME.fullmatch(self.name) or len(self.name) > MAX_SCOPE_NAME:
            raise InvalidScope(_SCOPE_FORM.filled(most=str(MAX_SCOPE_NAME)), "name")
        if self.name in RESERVED_SCOPES:
            raise InvalidScope(_RESERVED_NAME.filled(name=self.name), "name")
        if not _is_line(self.title, MAX_TITLE):
            raise InvalidScope(_TITLE_FORM.filled(most=str(MAX_TITLE)), "title")
        if self.detail and not _is_line(self.detail, MAX_DETAIL):
            raise InvalidScope(_DETAIL_FORM.filled(most=str(MAX_DETAIL)), "detail")

    def record(self) -> dict[str, Any]:
        """The scope with the field names of the interface."""
        return {**self.row(), "secondStep": self.second_step}

    def row(self) -> dict[str, Any]:
        """The scope as every release reads it in the row of its API."""
        return {"name": self.name, "title": self.title, "detail": self.detail, "care": self.care}


@dataclass(frozen=True, slots=True)
class ApiRegistration:
    """An API that Latchkey protects for its operator. `identifier` is the URI that apps name as `resource`;
    `token_lifetime` is in seconds; `secrets` holds SHA-256 digests, newest first; `created_at` is in epoch
    milliseconds; `status` is active, off (by its owner) or disabled (by the operator). `owner` is the user id of the
    person who manages it in the portal, or empty. `secrets_at`: when the owner made each secret, 0 if the operator did;
    `secret_notes`: what the owner sees of secrets; `changed_at`: the owner's last act, other than ending something
    (both epoch ms).
    `earlier` counts the deleted APIs that had the identifier before."""

    identifier: str
    name: str
    scopes: tuple[ApiScope, ...]
    token_format: str = "opaque"  # noqa: S105  # a format
    signing_alg: str = "ES256"
    token_lifetime: int = DEFAULT_LIFETIME
    secrets: tuple[bytes, ...] = ()
    status: str = "active"
    created_at: int = 0
    earlier: int = 0
    owner: str = ""
    secrets_at: tuple[int, ...] = ()
    secret_notes: tuple[str, ...] = ()
    changed_at: int = 0

    def __post_init__(self) -> None:
        check_identifier(self.identifier)
        check_app_name(self.name)
        if not 1 <= len(self.scopes) <= MAX_API_SCOPES:
            raise InvalidRegistration(f"an API has 1 to {MAX_API_SCOPES} scopes")
        if len({scope.name for scope in self.scopes}) < len(self.scopes):
            raise InvalidRegistration("an API has each scope once")
        if self.token_format not in TOKEN_FORMATS:
            raise InvalidRegistration(f"the token format is {' or '.join(TOKEN_FORMATS)}")
        if self.signing_alg not in SIGNING_ALGS:
            raise InvalidRegistration(f"the signing algorithm is {' or '.join(SIGNING_ALGS)}")
        if not LEAST_LIFETIME <= self.token_lifetime <= MOST_LIFETIME:
            raise InvalidRegistration(f"the token lifetime is {LEAST_LIFETIME} to {MOST_LIFETIME} seconds")
        if self.status not in ("active", "off", "disabled"):
            raise InvalidRegistration("status is active, off or disabled")

    @property
    def client_id(self) -> str:
        """The id with which the API authenticates for introspection; apps, grants and tokens name it so. An API that is
        registered again after its deletion has another, so tokens and consents for the earlier one don't count."""
        return api_id(self.identifier) + (str(self.earlier) if self.earlier else "")

    @property
    def sector(self) -> str:
        """The host of the identifier: the sector in which the API knows the people of pairwise apps."""
        found = _IDENTIFIER.fullmatch(self.identifier)
        assert found is not None  # checked at registration
        return found[2]

    @property
    def active(self) -> bool:
        """Whether the API may introspect, and apps may get tokens for it."""
        return self.status == "active"

    @property
    def jwt_alg(self) -> str:
        """How its access tokens are signed; empty if they are opaque."""
        return self.signing_alg if self.token_format == JWT_FORMAT else ""

    def scope_names(self) -> tuple[str, ...]:
        """The names of the scopes, in the order of the registration."""
        return tuple(scope.name for scope in self.scopes)

    def secret_matches(self, secret: str) -> bool:
        """Whether this is one of the API's secrets."""
        return secret_matches(secret, self.secrets)

    def with_secret(self, secret: str, now: int, drop_old: bool = False, *, by_owner: bool = False) -> ApiRegistration:
        """The registration with a new secret in front, made `now` (epoch ms). The older of two secrets ends, or both
        with `drop_old`."""
        kept = () if drop_old else self.secrets[: LIVE_SECRETS - 1]
        made = self._with_secrets((secret_digest(secret), *kept), {secret_digest(secret): now if by_owner else 0})
        return replace(made, secret_notes=(note_of(secret, now), *made.secret_notes))

    def without_secret(self, mark: str) -> ApiRegistration:
        """The registration without the secret with this mark. Raises Refused("not_found", or "invalid_request" for the
        last one)."""
        kept = tuple(digest for digest in self.secrets if secret_mark(digest) != mark)
        if len(kept) == len(self.secrets):
            raise Refused("not_found", Phrase("This API no longer has that secret."))
        if not kept:
            raise Refused("invalid_request", Phrase("This is the only secret of the API. Create a new one first."))
        return self._with_secrets(kept)

    def changed_by_owner(self, now: int, **changes: Any) -> ApiRegistration:
        """The registration with its owner's changes at this time (epoch ms). Raises Refused("access_denied") if they
        would enable an API that the operator has disabled, InvalidRegistration."""
        if "status" in changes and self.status == "disabled":
            raise Refused("access_denied", Phrase("The operator of this server has disabled this API."))
        changed = replace(self, **changes)
        same = changed == self or changes == {"status": "off"}
        return changed if same else replace(changed, changed_at=now)

    def taken_back(self, since: int) -> ApiRegistration:
        """This registration after its owner takes back an account that somebody else had from `since` on (epoch ms).
        Secrets made from then on have ended. An API that was changed from then on, or has no secret left, is switched
        off."""
        made = self._made_at()
        kept = tuple(digest for digest in self.secrets if made[digest] < since)
        off = self.active and (self.changed_at >= since or not kept)
        return replace(self._with_secrets(kept), status="off" if off else self.status)

    def _made_at(self) -> dict[bytes, int]:
        return dict(zip(self.secrets, self.secrets_at or (0,) * len(self.secrets), strict=True))

    def _with_secrets(self, secrets: tuple[bytes, ...], new: Mapping[bytes, int] | None = None) -> ApiRegistration:
        times = {**self._made_at(), **(new or {})}
        notes = live_notes(self.secret_notes, secrets)
        return replace(
            self, secrets=secrets, secrets_at=told([times[digest] for digest in secrets]), secret_notes=notes
        )

    def record(self) -> dict[str, Any]:
        """The registration with the field names of the interface; without secrets."""
        return {
            "client_id": self.client_id,
            "identifier": self.identifier,
            "name": self.name,
            "scopes": [scope.record() for scope in self.scopes],
            "tokenFormat": self.token_format,
            "signingAlg": self.signing_alg,
            "tokenLifetime": self.token_lifetime,
            "status": self.status,
            "owner": self.owner,
            "createdAt": self.created_at,
        }

    def pack(self) -> bytes:
        """The stored bytes."""
        kept = {"earlier": self.earlier, "secretsAt": list(self.secrets_at), "changedAt": self.changed_at}
        stepped = [scope.name for scope in self.scopes if scope.second_step]
        kept |= {"secretNotes": list(self.secret_notes), "steppedScopes": stepped}
        kept = {name: value for name, value in kept.items() if value}
        scopes = [scope.row() for scope in self.scopes]
        packed: bytes = msgpack.packb({**self.record(), "scopes": scopes, "secrets": list(self.secrets), **kept})
        return packed

    def tombstone(self) -> bytes:
        """The bytes that stay in place of the registration when the API is deleted: how many APIs had the
        identifier."""
        packed: bytes = msgpack.packb({"deleted": self.earlier + 1})
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> ApiRegistration:
        """The inverse of `pack`. Earlier releases wrote fewer fields."""
        row = msgpack.unpackb(packed)
        return cls(
            identifier=row["identifier"],
            name=row["name"],
            scopes=tuple(
                ApiScope(**scope, second_step=scope["name"] in row.get("steppedScopes", ())) for scope in row["scopes"]
            ),
            token_format=row["tokenFormat"],
            signing_alg=row["signingAlg"],
            token_lifetime=row["tokenLifetime"],
            secrets=tuple(row["secrets"]),
            status=row["status"],
            created_at=row["createdAt"],
            earlier=row.get("earlier", 0),
            owner=row.get("owner", ""),
            secrets_at=tuple(row.get("secretsAt", ())),
            secret_notes=tuple(row.get("secretNotes", ())),
            changed_at=row.get("changedAt", 0),
        )


def check_identifier(uri: str) -> None:
    """Raises InvalidRegistration unless an API may have this identifier. RFC 8707 2: an absolute URI without a
    fragment. It has one spelling, because a token's audience is compared as text."""
    if len(uri) > MAX_IDENTIFIER:
        raise InvalidRegistration(f"an identifier has at most {MAX_IDENTIFIER} characters")
    if "#" in uri:
        raise InvalidRegistration("an identifier has no fragment (#)")
    found = _IDENTIFIER.fullmatch(uri) if _CHARACTERS.fullmatch(uri) else None
    if found is None or int(found[3] or 1) > 65535 or not is_host(found[2]):
        raise InvalidRegistration("an identifier looks like https://api.example.com/v1, the host in lower case")
    if found[1] == "http" and not is_loopback_url(uri):
        raise InvalidRegistration("an identifier begins with https://; http is for loopback addresses only")


def scopes_in(items: object) -> tuple[ApiScope, ...]:
    """The scopes in JSON: objects with the members of the record, or names, each its own title. Raises
    InvalidRegistration."""
    if not isinstance(items, (list, tuple)):
        raise InvalidRegistration("the scopes of an API are a list")
    return tuple(_scope_in(item) for item in items)


def _scope_in(item: object) -> ApiScope:
    given = {"name": item} if isinstance(item, str) else item
    texts, flags = ("name", "title", "detail"), ("care", "secondStep")
    if not isinstance(given, dict) or not given.keys() <= {*texts, *flags} or "name" not in given:
        raise InvalidRegistration(
            "a scope of an API is a name, or an object with name, title, detail, care and secondStep"
        )
    if not all(isinstance(given[name], str if name in texts else bool) for name in given):
        raise InvalidRegistration("name, title and detail of a scope are texts, care and secondStep true or false")
    return ApiScope(
        given["name"],
        given.get("title") or given["name"],
        given.get("detail", ""),
        given.get("care", False),
        given.get("secondStep", False),
    )


def check_foreign(uri: str, base_url: str) -> None:
    """Raises InvalidRegistration for an identifier at this server's own address, if that is known."""
    check_identifier(uri)
    if base_url and own_identifier(uri, base_url):
        raise InvalidRegistration("This is an address of this server itself. Name an address of the API.")


def own_identifier(uri: str, base_url: str) -> bool:
    """Whether an identifier is at the origin of this server, whose resources are its own."""
    theirs, own = urlsplit(uri), urlsplit(base_url)
    return (theirs.scheme, theirs.netloc) == (own.scheme, own.netloc)


def deleted_before(packed: bytes) -> int | None:
    """How many deleted APIs had the identifier, by the stored bytes of a tombstone or of nothing; None for those of a
    registration. Raises the errors of msgpack for other bytes."""
    row = msgpack.unpackb(packed) if packed else {"deleted": 0}
    return row.get("deleted") if isinstance(row, dict) else None


def api_id(identifier: str) -> str:
    """The client id of the first API with this identifier: a prefix and 15 letters and digits of a digest. So an
    identifier leads to its registration without an index, and is registered once at a time. `https://host` and
    `https://host/` are one resource (RFC 3986 6.2.3)."""
    whole = identifier.removesuffix("/") if _ORIGIN.fullmatch(identifier) else identifier
    return _ID_PREFIX + client_id_of(hashlib.sha256(f"api {whole}".encode("utf-8", "surrogatepass")).digest())


def first_id(client_id: str) -> str:
    """The client id of the first API that had the identifier of this one. All of them have one place in the store."""
    return client_id[:_ID_LENGTH]


def count_of(client_id: str) -> int:
    """How many APIs had the identifier before this one. The later one has the higher number."""
    return int(client_id[_ID_LENGTH:] or 0)


def named_twice(apis: Iterable[ApiRegistration]) -> frozenset[str]:
    """The names of scopes that several of these APIs have."""
    seen: set[str] = set()
    twice: set[str] = set()
    for api in apis:
        twice |= seen.intersection(api.scope_names())
        seen.update(api.scope_names())
    return frozenset(twice)


def _is_line(text: str, most: int) -> bool:
    return 1 <= len(text) <= most and text.isprintable() and text == text.strip()
