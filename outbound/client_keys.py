"""The public keys of apps: registered, or fetched from where an app publishes them. RFC 7517, RFC 7591 2."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from outbound.fetching import Fetcher
from store.apps.client_keys import parsed_keys
from store.apps.registration import Registration
from store.crypto.jose.jwk import LONGEST_SET, PublicKey, read_keys
from store.crypto.jose.refusal import JoseError
from store.keyed_semaphore import share

log = logging.getLogger("latchkey.apps")

FRESH_SECONDS = 300.0
"""Keys are fetched again after this time: so long may a withdrawn key work."""
STALE_SECONDS = 3600.0
"""The same if the app's server does not answer."""
PAUSE_SECONDS = 10.0
"""The shortest time between two fetches for one app, whatever its requests name as their key."""
MOST_APPS = 1000
MOST_WAITING = 256
"""Requests that wait for keys. Anybody can name an app whose server hangs, and each request that waits takes the place
of another. Those of one owner's apps have a part; further ones use the keys that are known."""
TYPES = ("application/json", "application/jwk-set+json")
_MISSED = ("unknown_key", "signature")

T = TypeVar("T")


@dataclass(slots=True)
class _Published:
    """The keys at an app's URL. `read_at`, `tried_at`: times of the steady clock of the last fetch that gave keys, and
    of the beginning of the last one."""

    url: str
    keys: tuple[PublicKey, ...] = ()
    read_at: float = -math.inf
    tried_at: float = -math.inf
    fetching: asyncio.Task[None] | None = None


class ClientKeys:
    """The keys of apps. A set at a URL is fetched when a request needs it, and kept; never once a request."""

    def __init__(self, fetcher: Fetcher, clock: Callable[[], float] = monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._published: OrderedDict[str, _Published] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    async def verified(self, app: Registration, verify: Callable[[Sequence[PublicKey]], T]) -> T:
        """The result of `verify` for the app's keys. If it misses a key, the app may have a new one, so a published set
        is fetched again, but not so soon after the last time. Raises JoseError: that of `verify`, or "no_keys"."""
        if not app.jwks_uri:
            return verify(parsed_keys(app.jwks))
        own = self._of(app)
        if self._clock() - own.read_at >= FRESH_SECONDS:
            await self._fetched(app, own)
        if self._clock() - own.read_at >= STALE_SECONDS:
            raise JoseError("no_keys")
        try:
            return verify(own.keys)
        except JoseError as error:
            seen = own.keys
            if error.reason not in _MISSED or not await self._fetched(app, own) or own.keys == seen:
                raise
        return verify(own.keys)

    def forget(self) -> None:
        """Drops all published sets."""
        self._published.clear()

    def age(self, seconds: float) -> None:
        """Makes the published sets older."""
        for own in self._published.values():
            own.read_at, own.tried_at = own.read_at - seconds, own.tried_at - seconds

    def _of(self, app: Registration) -> _Published:
        own = self._published.get(app.client_id)
        if own is None or own.url != app.jwks_uri:
            own = self._published[app.client_id] = _Published(app.jwks_uri)
            while len(self._published) > MOST_APPS:
                self._published.popitem(last=False)
        self._published.move_to_end(app.client_id)
        return own

    async def _fetched(self, app: Registration, own: _Published) -> bool:
        """Waits for a fetch, which requests at the same time share. False if it is too soon for another, or if too many
        wait."""
        if own.fetching is None:
            if self._clock() - own.tried_at < PAUSE_SECONDS:
                return False
            own.tried_at = self._clock()
            own.fetching = asyncio.ensure_future(self._fetch(app, own))
        payer, waiting = payer_of(app), self._waiting
        if waiting[payer] >= share(MOST_WAITING, waiting.total(), waiting[payer]):
            return False
        waiting[payer] += 1
        try:
            await asyncio.shield(own.fetching)
        finally:
            waiting[payer] -= 1
            if not waiting[payer]:
                del waiting[payer]
        return True

    async def _fetch(self, app: Registration, own: _Published) -> None:
        try:
            found = await self._fetcher.fetch(own.url, LONGEST_SET, payer_of(app), TYPES)
            why = found.error
            if not why:
                try:
                    own.keys, own.read_at = read_keys(found.text), self._clock()
                except JoseError as error:
                    why = f"The set is refused: {error.reason}."
            if why:
                log.warning("the keys of %s could not be read from its jwks_uri: %s", app.client_id, why)
        finally:
            own.fetching = None


def payer_of(app: Registration) -> str:
    """Who shares places with others: the owner of the app, whatever its number of apps, or an app of the operator's.
    Anybody can make apps that register themselves, as many as they like, so these are one together."""
    if app.origin:
        return "apps that registered themselves"
    return app.owner or f"keys of {app.client_id}"
