"""The public keys of issuers of assertions: at the URL that the operator names, or where the issuer's metadata says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from outbound.fetching import Fetcher
from outbound.published_keys import PublishedKeys, Publisher
from store.apps.client_keys import InvalidKeys, check_jwks_uri
from store.crypto.jose.jwk import PublicKey
from store.json_text import NotJSON, decode_strictly
from store.oauth.assertions.issuers import TrustedIssuer

METADATA_BYTES = 64 * 2**10
DEEPEST = 8
JSON = ("application/json",)
NO_METADATA = "Its metadata does not name the issuer and a jwks_uri."

T = TypeVar("T")


class IssuerKeys(PublishedKeys):
    """The keys of the issuers that the operator trusts."""

    async def verified(self, trusted: TrustedIssuer, verify: Callable[[Sequence[PublicKey]], T]) -> T:
        """The result of `verify` for the issuer's keys, as `verified_by`. Raises JoseError: that of `verify`, or
        "no_keys"."""
        find = None if trusted.jwks_uri else partial(discovered, self._fetcher, trusted.issuer)
        of = Publisher(trusted.issuer, trusted.jwks_uri or trusted.issuer, f"keys of {trusted.issuer}", find)
        return await self.verified_by(of, verify)


async def discovered(fetcher: Fetcher, issuer: str) -> tuple[str, str]:
    """The `jwks_uri` in an issuer's metadata (OpenID Connect Discovery 4, RFC 8414 3), or why there is none."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}/.well-known/", parts.path.rstrip("/")
    why = NO_METADATA
    for url in (
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        f"{root}oauth-authorization-server{path}",
    ):
        found = await fetcher.fetch(url, METADATA_BYTES, f"keys of {issuer}", JSON)
        if not found.error:
            uri = _jwks_uri(found.text, issuer)
            return (uri, "") if uri else ("", NO_METADATA)
        why = found.error
        if not found.answered:
            break
    return "", why


def _jwks_uri(raw: bytes, issuer: str) -> str:
    """The URL of the set; empty for metadata of another issuer (RFC 8414 3.3), or without a proper one."""
    try:
        metadata = decode_strictly(raw, DEEPEST)
    except NotJSON:
        return ""
    uri = metadata.get("jwks_uri") if isinstance(metadata, dict) and metadata.get("issuer") == issuer else None
    try:
        if isinstance(uri, str):
            check_jwks_uri(uri, loopback=urlsplit(issuer).scheme == "http")
            return uri
    except InvalidKeys:
        pass
    return ""
