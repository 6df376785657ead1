"""An identity provider whose assertions the target trusts: it signs with the key of an app, and needs no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from handlers.core.site import Site
from outbound.address_policy import AddressPolicy
from outbound.fetching import Fetcher
from outbound.issuer_keys import IssuerKeys
from store.crypto.jose.jwk import PublicKey
from store.oauth.assertions.issuers import TrustedIssuer, TrustedIssuers

ISSUER = "https://idp.example.com"
T = TypeVar("T")


class KnownKeys(IssuerKeys):
    """Keys that are published nowhere."""

    def __init__(self, key: PublicKey) -> None:
        super().__init__(Fetcher(AddressPolicy()))
        self._key = key

    async def verified(self, trusted: TrustedIssuer, verify: Callable[[Sequence[PublicKey]], T]) -> T:
        """As if a server published the key."""
        return verify((self._key,))


def trust(site: Site, client: str, key: PublicKey) -> None:
    """Lets the identity provider connect this app."""
    trusted = TrustedIssuer(ISSUER, "Works", ("example.com",), (client,), ((site.base_url, ("*",)),))
    object.__setattr__(site, "issuers", TrustedIssuers((trusted,)))
    object.__setattr__(site, "issuer_keys", KnownKeys(key))
