"""The public keys of apps: registered, or fetched from where an app publishes them. RFC 7517, RFC 7591 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from outbound.published_keys import PublishedKeys, Publisher
from store.apps.client_keys import parsed_keys
from store.apps.registration import Registration
from store.crypto.jose.jwk import PublicKey

T = TypeVar("T")


class ClientKeys(PublishedKeys):
    """The keys of apps. A set at a URL is fetched when a request needs it, and kept; never once a request."""

    async def verified(self, app: Registration, verify: Callable[[Sequence[PublicKey]], T]) -> T:
        """The result of `verify` for the app's keys, as `verified_by`. Raises JoseError: that of `verify`, or
        "no_keys"."""
        if not app.jwks_uri:
            return verify(parsed_keys(app.jwks))
        return await self.verified_by(Publisher(app.client_id, app.jwks_uri, payer_of(app)), verify)


def payer_of(app: Registration) -> str:
    """Who shares places with others: the owner of the app, whatever its number of apps, or an app of the operator's.
    Anybody can make apps that register themselves, as many as they like, so these are one together."""
    if app.origin:
        return "apps that registered themselves"
    return app.owner or f"keys of {app.client_id}"
