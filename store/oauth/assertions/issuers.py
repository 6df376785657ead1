"""Issuers of assertions that the operator trusts, and the most that each may grant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from store.apps.client_ids import inner_id
from store.oauth.client_assertions import CLIENT_ALGORITHMS

EVERYTHING = "*"
"""In place of scopes: all that the app registered for, without those that need care."""


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An identity provider whose assertions count here (RFC 7523), within these bounds.

    `issuer` is its identifier, and `name` what people read. Its keys are at `jwks_uri`; if that is empty, its metadata
    says where. It speaks for people with addresses in `domains`, to the apps in `clients` (client ids as on the wire),
    and grants at most these scopes of each of `resources`: plain names by identifier. `tenant`: the only tenant whose
    people count, empty for an issuer without tenants. `implied`: its word is the consent; otherwise the person has to
    allow the app first. `spend_limit` is the limit of an app that it lets spend, in micro-dollars a month."""

    issuer: str
    name: str
    domains: tuple[str, ...]
    clients: tuple[str, ...]
    resources: tuple[tuple[str, tuple[str, ...]], ...]
    jwks_uri: str = ""
    algorithms: tuple[str, ...] = CLIENT_ALGORITHMS
    tenant: str = ""
    implied: bool = True
    spend_limit: int = 0


@dataclass(frozen=True, slots=True)
class TrustedIssuers:
    """All of them; none unless the operator names some."""

    all: tuple[TrustedIssuer, ...] = ()

    def __iter__(self) -> Iterator[TrustedIssuer]:
        return iter(self.all)

    def find(self, issuer: str) -> TrustedIssuer | None:
        """The issuer with exactly this identifier (RFC 7523 3)."""
        return next((one for one in self.all if one.issuer == issuer), None)

    def know(self, client_id: str) -> bool:
        """Whether one of them may connect this app, by its client id, as on the wire or in keys."""
        return any(client_id in (client, inner_id(client)) for one in self.all for client in one.clients)

    def name_of(self, issuer: str) -> str:
        """What people read of an issuer: its name, or the host of one that is trusted no longer."""
        found = self.find(issuer)
        return found.name if found else urlsplit(issuer).netloc
