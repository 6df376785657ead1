"""Public keys that others publish at a URL: fetched when a token needs them, and kept; never once a request."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, TypeVar

from outbound.fetching import Fetcher
from store.crypto.jose.jwk import LONGEST_SET, PublicKey, read_keys
from store.crypto.jose.refusal import JoseError
from store.keyed_semaphore import share

log = logging.getLogger("latchkey.apps")

FRESH_SECONDS = 300.0
"""Keys are fetched again after this time: so long may a withdrawn key work."""
STALE_SECONDS = 3600.0
"""The same if the publisher's server does not answer."""
PAUSE_SECONDS = 10.0
"""The shortest time between two fetches for one publisher, whatever requests name as their key."""
MOST_PUBLISHERS = 1000
MOST_WAITING = 256
"""Requests that wait for keys. Anybody can name a publisher whose server hangs, and each request that waits takes the
place of another. Those of one payer have a part; further ones use the keys that are known."""
TYPES = ("application/json", "application/jwk-set+json")
_MISSED = ("unknown_key", "signature")

T = TypeVar("T")


class Publisher(NamedTuple):
    """Who publishes keys: `name` for the log, where they are, and whose places its requests take. `find` fetches the
    URL of the set, or says in words why there is none; without it, `url` is the set's."""

    name: str
    url: str
    payer: str
    find: Callable[[], Awaitable[tuple[str, str]]] | None = None


@dataclass(slots=True)
class _Published:
    """The keys at a URL. `read_at`, `tried_at`: times of the steady clock of the last fetch that gave keys, and of the
    beginning of the last one."""

    url: str
    keys: tuple[PublicKey, ...] = ()
    read_at: float = -math.inf
    tried_at: float = -math.inf
    fetching: asyncio.Task[None] | None = None


class PublishedKeys:
    """The sets of many publishers."""

    def __init__(self, fetcher: Fetcher, clock: Callable[[], float] = monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._published: OrderedDict[str, _Published] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    async def verified_by(self, of: Publisher, verify: Callable[[Sequence[PublicKey]], T]) -> T:
        """The result of `verify` for the keys. If it misses a key, there may be a new one, so the set is fetched again,
        but not so soon after the last time. Raises JoseError: that of `verify`, or "no_keys"."""
        own = self._of(of)
        if self._clock() - own.read_at >= FRESH_SECONDS:
            await self._fetched(of, own)
        if self._clock() - own.read_at >= STALE_SECONDS:
            raise JoseError("no_keys")
        try:
            return verify(own.keys)
        except JoseError as error:
            seen = own.keys
            if error.reason not in _MISSED or not await self._fetched(of, own) or own.keys == seen:
                raise
        return verify(own.keys)

    def forget(self) -> None:
        """Drops all published sets."""
        self._published.clear()

    def age(self, seconds: float) -> None:
        """Makes the published sets older."""
        for own in self._published.values():
            own.read_at, own.tried_at = own.read_at - seconds, own.tried_at - seconds

    def _of(self, of: Publisher) -> _Published:
        own = self._published.get(of.name)
        if own is None or own.url != of.url:
            own = self._published[of.name] = _Published(of.url)
            while len(self._published) > MOST_PUBLISHERS:
                self._published.popitem(last=False)
        self._published.move_to_end(of.name)
        return own

    async def _fetched(self, of: Publisher, own: _Published) -> bool:
        """Waits for a fetch, which requests at the same time share. False if it is too soon for another, or if too many
        wait."""
        if own.fetching is None:
            if self._clock() - own.tried_at < PAUSE_SECONDS:
                return False
            own.tried_at = self._clock()
            own.fetching = asyncio.ensure_future(self._fetch(of, own))
        payer, waiting = of.payer, self._waiting
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

    async def _fetch(self, of: Publisher, own: _Published) -> None:
        try:
            url, why = await of.find() if of.find else (own.url, "")
            if not why:
                found = await self._fetcher.fetch(url, LONGEST_SET, of.payer, TYPES)
                why = found.error
            if not why:
                try:
                    own.keys, own.read_at = read_keys(found.text), self._clock()
                except JoseError as error:
                    why = f"The set is refused: {error.reason}."
            if why:
                log.warning("the keys of %s could not be read from its jwks_uri: %s", of.name, why)
        finally:
            own.fetching = None
