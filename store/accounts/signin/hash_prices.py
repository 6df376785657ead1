"""What unknown addresses cost at sign-in while accounts have password hashes of other servers.

The check of such a hash takes another time than that of ours. If only accounts took that time, a refusal would say what
addresses have accounts. So an unknown address costs what one of these hashes costs, drawn from the address and a
secret salt: always the same for one address, as an account's. The share of these addresses is the share of imported
hashes that are still there, at most half. So the time of a refusal changes the odds by a factor of two at most.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from redis.asyncio import Redis

from store import keys
from store.crypto.foreign.hashes import ForeignHash, of_price, unpack
from store.crypto.seal import new_id
from store.errors import StoreError, wrapped

log = logging.getLogger(__name__)

REFRESH: Final = 60.0
"""Seconds between two reads by a process."""
MOST_PRICES: Final = 64
_SALT, _ALL = "salt", "imported"
_DRAWS = 2**32


class HashPrices:
    """The prices of imported password hashes, as this process last read them."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._salt = b""
        self._imported = 0
        self._left: list[tuple[ForeignHash, int]] = []
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._replaced: Counter[str] = Counter()

    async def add(self, prices: Mapping[str, int]) -> None:
        """Notes imported hashes: how many of each price. Raises StoreUnavailable."""
        with wrapped():
            names: Any = await self._client.hkeys(keys.HASH_PRICES)
            known = set(map(bytes.decode, names))
            noted = [price for price in prices if price in known or len(known) < MOST_PRICES]
            async with self._client.pipeline(transaction=False) as batch:
                batch.hsetnx(keys.HASH_PRICES, _SALT, new_id())
                batch.hincrby(keys.HASH_PRICES, _ALL, sum(prices[price] for price in noted))
                for price in noted:
                    batch.hincrby(keys.HASH_PRICES, price, prices[price])
                await batch.execute()

    def replaced(self, stored: bytes) -> None:
        """Counts a hash that one of ours replaces; the store learns of it with the next read."""
        if found := unpack(stored):
            self._replaced[found.price] += 1

    async def fresh(self) -> None:
        """Waits for the first read of this process; later ones are in the background. Raises StoreUnavailable."""
        if monotonic() - self._read_at < REFRESH:
            return
        if self._read_at < 0:
            await self._read()
        elif self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_quietly())

    def like(self, email: str) -> ForeignHash | None:
        """The hash that an unknown address costs; None for one of ours."""
        total = sum(count for _, count in self._left)
        if not total:
            return None
        drawn = hashlib.blake2b(email.encode(), key=self._salt, digest_size=8).digest()
        share, place = int.from_bytes(drawn[:4]), int.from_bytes(drawn[4:]) % total
        if share * max(2 * total, self._imported) >= _DRAWS * total:
            return None
        for found, count in self._left:
            place -= count
            if place < 0:
                return found
        return None

    async def _read_quietly(self) -> None:
        try:
            await self._read()
        except StoreError as error:
            log.warning("the prices of imported password hashes cannot be read: %s", type(error).__name__)

    async def _read(self) -> None:
        replaced, self._replaced = self._replaced, Counter()
        with wrapped():
            for price, count in replaced.items():
                await self._client.hincrby(keys.HASH_PRICES, price, -count)
            row: Any = await self._client.hgetall(keys.HASH_PRICES)
        self._salt = row.pop(_SALT.encode(), b"")
        self._imported = int(row.pop(_ALL.encode(), b"0"))
        found = ((of_price(price.decode()), int(count)) for price, count in sorted(row.items()))
        self._left = [(one, count) for one, count in found if one and count > 0]
        self._read_at = monotonic()
