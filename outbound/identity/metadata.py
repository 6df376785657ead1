"""What identity providers say of themselves: OpenID Connect Discovery, fetched when it is needed, and kept."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from outbound.fetching import Fetcher
from outbound.identity.calling import ProviderAway
from outbound.identity.providers import GITHUB, Provider
from store.apps.client_keys import InvalidKeys, check_jwks_uri
from store.crypto.jose.algorithms import ALGORITHMS
from store.json_text import NotJSON, decode_strictly

log = logging.getLogger("latchkey.identity")

LONGEST = 64 * 2**10
DEEPEST = 8
FRESH_SECONDS = 3600.0
STALE_SECONDS = 86_400.0
"""So long is a document used if the provider does not answer."""
PAUSE_SECONDS = 10.0
MOST_LISTED = 64


class ProviderMetadata(NamedTuple):
    """The endpoints of a provider. `basic`: the client secret goes into a header, not into the form; `names_itself`:
    each answer names the issuer (RFC 9207)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    basic: bool
    names_itself: bool
    algorithms: tuple[str, ...]


@dataclass(slots=True)
class _Kept:
    metadata: ProviderMetadata | None = None
    read_at: float = -math.inf
    tried_at: float = -math.inf
    fetching: asyncio.Task[None] | None = None


def of_github(provider: Provider) -> ProviderMetadata:
    """GitHub has no discovery document for signing in. On a server of one's own the API is below /api/v3."""
    login, own = f"{provider.issuer}/login/oauth", provider.issuer != "https://github.com"
    api = f"{provider.issuer}/api/v3" if own else "https://api.github.com"
    return ProviderMetadata(f"{login}/authorize", f"{login}/access_token", "", f"{api}/user", False, False, ())


class MetadataCache:
    """The metadata of providers."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def of(self, provider: Provider, fetcher: Fetcher) -> ProviderMetadata:
        """The metadata. Raises ProviderAway."""
        if provider.type == GITHUB:
            return of_github(provider)
        own = self._kept.setdefault((provider.metadata_url, provider.metadata_issuer), _Kept())
        if self._clock() - own.read_at >= FRESH_SECONDS:
            if own.fetching is None and self._clock() - own.tried_at >= PAUSE_SECONDS:
                own.tried_at = self._clock()
                own.fetching = asyncio.ensure_future(self._fetch(provider, fetcher, own))
            if own.fetching is not None:
                await asyncio.shield(own.fetching)
        if own.metadata is None or self._clock() - own.read_at >= STALE_SECONDS:
            raise ProviderAway("no metadata")
        return own.metadata

    async def _fetch(self, provider: Provider, fetcher: Fetcher, own: _Kept) -> None:
        try:
            found = await fetcher.fetch(provider.metadata_url, LONGEST, provider.name, ("application/json",))
            why: str = found.error
            if not why:
                try:
                    own.metadata, own.read_at = read_metadata(provider, found.text), self._clock()
                except ValueError as error:
                    why = str(error)
            if why:
                log.warning("the metadata of the identity provider %s could not be read: %s", provider.name, why)
        finally:
            own.fetching = None


def read_metadata(provider: Provider, raw: bytes) -> ProviderMetadata:
    """Reads a document. Raises ValueError for one that is not this provider's or lacks an endpoint. (Discovery 4.3)"""
    try:
        found = decode_strictly(raw, DEEPEST)
    except NotJSON:
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict) or found.get("issuer") != provider.metadata_issuer:
        raise ValueError("it names another issuer")
    loopback = urlsplit(provider.issuer).scheme == "http"

    def endpoint(name: str, *, needed: bool = True) -> str:
        url = found.get(name, "")
        if not url and not needed:
            return ""
        try:
            if not isinstance(url, str):
                raise InvalidKeys(name)
            check_jwks_uri(url, loopback=loopback)
        except InvalidKeys:
            raise ValueError(f"{name} is missing, or no https URL") from None
        return url

    methods = _texts(found, "token_endpoint_auth_methods_supported") or ("client_secret_basic",)
    listed = _texts(found, "id_token_signing_alg_values_supported")
    algorithms = tuple(one for one in ALGORITHMS if one in listed) if listed else ALGORITHMS
    if not algorithms:
        raise ValueError("it signs with no algorithm that is used here")
    return ProviderMetadata(
        endpoint("authorization_endpoint"),
        endpoint("token_endpoint"),
        endpoint("jwks_uri"),
        endpoint("userinfo_endpoint", needed=False),
        "client_secret_basic" in methods,
        found.get("authorization_response_iss_parameter_supported") is True,
        algorithms,
    )


def _texts(found: dict[str, Any], name: str) -> tuple[str, ...]:
    values = found.get(name)
    return tuple(one for one in values[:MOST_LISTED] if isinstance(one, str)) if isinstance(values, list) else ()
