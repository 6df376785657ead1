"""The registration record of an app, SPEC 2.1, and the rules it must keep."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets as random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from store.names import check_app_name, check_client_id, parse_scope
from store.redirect_uris import check_redirect_uri
from store.webhook_urls import check_webhook_url

MAX_REDIRECT_URIS = 20
_HOMEPAGE = re.compile(r"https?://[!-~]{1,2000}")
LIVE_SECRETS = 2
MOST_RETRY = 60
"""Seconds within which an app may at most repeat its latest refresh."""


class InvalidRegistration(ValueError):
    """A registration breaks a rule; the message says which, for people."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An app. `secrets` holds SHA-256 digests, newest first; `created_at` is in epoch milliseconds; `status` is
    active, off (by its owner) or disabled (by the operator). `webhook_secrets` are sealed, newest first; of two, the
    older signs for a day after `webhook_rotated_at` (epoch ms)."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    public: bool = False
    pkce_required: bool = False
    hosted_storage: bool = False
    iss_in_response: bool = True
    refresh_retry_seconds: int = 0
    homepage: str = ""
    logo: str = ""
    secrets: tuple[bytes, ...] = ()
    status: str = "active"
    owner: str = ""
    created_at: int = 0
    webhook_url: str = ""
    webhook_secrets: tuple[bytes, ...] = ()
    webhook_rotated_at: int = 0

    def __post_init__(self) -> None:
        check_client_id(self.client_id)
        check_app_name(self.name)
        check_homepage(self.homepage)
        if not 1 <= len(self.redirect_uris) <= MAX_REDIRECT_URIS:
            raise InvalidRegistration(f"an app registers 1 to {MAX_REDIRECT_URIS} redirect URIs")
        for uri in self.redirect_uris:
            check_redirect_uri(uri, self.public)
        if not self.scopes:
            raise InvalidRegistration("an app registers at least one scope")
        if tuple(parse_scope(" ".join(self.scopes))) != self.scopes:
            raise InvalidRegistration("scopes must be known, named once each, and in the order of the documentation")
        # SPEC 2.4: an app that uses hosted storage must request at least one of data:read or data:write.
        if self.hosted_storage and not self.data_scopes(self.scopes):
            raise InvalidRegistration("an app with hosted storage registers data:read or data:write")
        if self.public and self.secrets:
            raise InvalidRegistration("a public app has no secret")
        if self.status not in ("active", "off", "disabled"):
            raise InvalidRegistration("status is active, off or disabled")
        if not 0 <= self.refresh_retry_seconds <= MOST_RETRY:
            raise InvalidRegistration(f"refreshRetrySeconds is 0 to {MOST_RETRY}")
        if self.webhook_url:
            check_webhook_url(self.webhook_url, loopback=True)  # whether loopback may be is the server's to say

    @staticmethod
    def data_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
        """Those of the scopes that concern hosted documents."""
        return tuple(scope for scope in scopes if scope.startswith("data:"))

    @property
    def active(self) -> bool:
        """Whether the app may do anything at all."""
        return self.status == "active"

    @property
    def needs_pkce(self) -> bool:
        """SPEC 5.2: mandatory for a public app and where `pkceRequired` is set."""
        return self.public or self.pkce_required

    @property
    def terms(self) -> str:
        """A digest of what an authorization request is checked against. What was checked against other terms than the
        present ones counts for nothing: a withdrawn redirect URI gets no code, whatever was pending."""
        checked = (self.redirect_uris, self.scopes, self.public, self.pkce_required, self.hosted_storage)
        return hashlib.sha256(repr(checked).encode()).hexdigest()[:16]

    def secret_matches(self, secret: str) -> bool:
        """As the function of this name."""
        return secret_matches(secret, self.secrets)

    def record(self) -> dict[str, Any]:
        """As the HTTP interface names the fields; secrets are left out."""
        return {
            "client_id": self.client_id,
            "name": self.name,
            "homepage": self.homepage,
            "logo": self.logo,
            "redirect_uris": list(self.redirect_uris),
            "scopes": list(self.scopes),
            "public": self.public,
            "pkceRequired": self.pkce_required,
            "hostedStorage": self.hosted_storage,
            "issInResponse": self.iss_in_response,
            "refreshRetrySeconds": self.refresh_retry_seconds,
            "webhookUrl": self.webhook_url,
            "status": self.status,
            "owner": self.owner,
            "createdAt": self.created_at,
        }

    def pack(self) -> bytes:
        """The bytes that are stored."""
        row = {**self.record(), "secrets": list(self.secrets)}
        if self.webhook_secrets:
            row |= {"webhookSecrets": list(self.webhook_secrets), "webhookRotatedAt": self.webhook_rotated_at}
        packed: bytes = msgpack.packb(row)
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> Registration:
        """The inverse of `pack`."""
        row = msgpack.unpackb(packed)
        return cls(
            client_id=row["client_id"],
            name=row["name"],
            redirect_uris=tuple(row["redirect_uris"]),
            scopes=tuple(row["scopes"]),
            public=row["public"],
            pkce_required=row["pkceRequired"],
            hosted_storage=row["hostedStorage"],
            iss_in_response=row["issInResponse"],
            refresh_retry_seconds=row["refreshRetrySeconds"],
            homepage=row["homepage"],
            logo=row["logo"],
            secrets=tuple(row["secrets"]),
            status=row["status"],
            owner=row["owner"],
            created_at=row["createdAt"],
            # Releases before webhooks have written none of these.
            webhook_url=row.get("webhookUrl", ""),
            webhook_secrets=tuple(row.get("webhookSecrets", ())),
            webhook_rotated_at=row.get("webhookRotatedAt", 0),
        )


def check_homepage(address: str) -> None:
    """Raises InvalidRegistration unless an app may name this address, or none, as its own."""
    if address and not _HOMEPAGE.fullmatch(address):
        raise InvalidRegistration("homepage must be an http or https address in ASCII, without spaces")


def tombstone(owner: str) -> bytes:
    """What stands in the place of a registration while what the app left is being freed: who owned it."""
    packed: bytes = msgpack.packb(owner)
    return packed


def owner_left(packed: bytes) -> str | None:
    """Who owned the app in whose place a tombstone stands; None for anything but a tombstone."""
    row = msgpack.unpackb(packed) if packed else None
    return row if isinstance(row, str) else None


def secret_mark(digest: bytes) -> str:
    """By what a live secret is named on pages: the beginning of its digest, which tells nothing of the secret."""
    return digest.hex()[:8]


_NO_DIGEST = bytes(32)


def new_secret() -> str:
    """A client secret of 256 random bits, behind the prefix that secret scanners look for."""
    return "lk_cs_" + random.token_urlsafe(32)


def secret_matches(secret: str, digests: Sequence[bytes]) -> bool:
    """Whether this is one of the secrets with these digests, in a time that does not tell how far it was right, nor
    that there is none."""
    digest = secret_digest(secret)
    matches = [hmac.compare_digest(digest, known) for known in digests or (_NO_DIGEST,)]
    return any(matches) and bool(digests)


def secret_digest(secret: str) -> bytes:
    """What is stored of a secret: SHA-256, since 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
