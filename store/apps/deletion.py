"""Deletion of an app. SPEC 3.1.

Every grant ends. Hosted data of people stays for the 30 days of a revocation, or goes at once. Until that is over a
tombstone holds the client id.

The steps are bounded and repeatable: write the tombstone, which kills every token; end the grants in each shard; set
the expiry of the tombstone. Until then the deletion counts as in progress. The owner's list keeps the id as long as the
tombstone exists, so the bound on a person's apps also bounds tombstones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from redis.asyncio import Redis

from store import keys
from store.apps.tombstones import ENDED, LASTS, Tombstone
from store.crypto.seal import fresh_epoch
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable, wrapped
from store.lifetimes import GRACE
from store.results import unheard
from store.webhooks.deliveries import Deliveries, WebhookEvent, event_id_of
from store.webhooks.event_types import is_chosen
from store.webhooks.relay_wakeup import RelayWakeup

PURGE_STEP = 100
RETIRE_STEP = 50
SHARDS_AT_ONCE = 256
APP_DELETED = "app.deleted"

OnProgress = Callable[[int, int], None]
"""Called with the number of shards done and their total."""


class Retiring:
    """Finishes the deletion of apps with a tombstone. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts, deliveries: Deliveries, wakeup: RelayWakeup) -> None:
        self._client = client
        self._scripts = scripts
        self._deliveries = deliveries
        self._wakeup = wakeup

    async def retire(self, client_id: str, progress: OnProgress = unheard) -> None:
        """Notifies the app, ends every grant, and sets the expiry of the tombstone. If the app has no data of anybody,
        only removes the tombstone, without a notice. Does nothing for an app without a tombstone."""
        stone = await self._stone(client_id)
        if stone is None or stone.until:
            return
        shards = await self.shards_of(client_id)
        if not shards:
            return await self._clear(client_id)
        await self._tell(client_id, stone)
        await self._end_grants(client_id, stone, shards, progress)
        await self._bury(client_id)

    async def purge(self, client_id: str, progress: OnProgress = unheard) -> None:
        """Frees the app's data in each shard at once, and its deliveries, figures and tombstone."""
        shards = await self.shards_of(client_id)
        for done, shard in enumerate(shards):
            progress(done, len(shards))
            word = "more"
            while word == "more":
                reply = await self._scripts.run(
                    "forget_app",
                    {**keys.outbox_keys(shard), "app_users": keys.shard_app_users(shard, client_id)},
                    client=client_id,
                    people=keys.member_prefix(shard),
                    steps=PURGE_STEP,
                )
                word = reply.word
        await self._clear(client_id)

    async def _clear(self, client_id: str) -> None:
        """Drops the data outside the shards: deliveries, figures, and the tombstone itself."""
        packed = await self._packed(client_id)
        stone = Tombstone.unpack(packed)
        if stone is None:
            return  # somebody else finished meanwhile
        await self._deliveries.forget(client_id)
        # The tombstone outlives the list, and the owner's list the tombstone, so an interrupted deletion is found.
        with wrapped():
            await self._client.zrem(keys.APPS, client_id)
        await self._scripts.run("remove_app", keys.app_stats(client_id), expected=packed)
        if stone.owner:
            # The app is gone by now, so a repeat would not find it. The owner's list drops the id when it is read next.
            with suppress(StoreUnavailable), wrapped():
                await self._client.zrem(keys.person(stone.owner)["apps"], client_id)

    async def shards_of(self, client_id: str) -> Sequence[str]:
        """The shards with data of the app: mostly few, and a read is much cheaper than a deletion."""
        found: list[str] = []
        for start in range(0, len(keys.SHARDS), SHARDS_AT_ONCE):
            shards = keys.SHARDS[start : start + SHARDS_AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for shard in shards:
                        batch.exists(keys.shard_app_users(shard, client_id))
                    there: Sequence[int] = await batch.execute()
            found += [shard for shard, one in zip(shards, there, strict=True) if one]
        return found

    async def _end_grants(self, client_id: str, stone: Tombstone, shards: Sequence[str], progress: OnProgress) -> None:
        for done, shard in enumerate(shards):
            progress(done, len(shards))
            cursor = "0"
            while True:
                reply = await self._scripts.run(
                    "retire_app",
                    {**keys.outbox_keys(shard), "app_users": keys.shard_app_users(shard, client_id)},
                    client=client_id,
                    people=keys.member_prefix(shard),
                    cursor=cursor,
                    steps=RETIRE_STEP,
                    fresh_epoch=fresh_epoch(),
                    grace=GRACE,
                    lasts=LASTS,
                    event=ENDED[stone.by],
                )
                self._wakeup.add(shard)
                cursor = reply.text("cursor")
                if cursor == "0":
                    break

    async def _tell(self, client_id: str, stone: Tombstone) -> None:
        """Notifies the app of its own deletion. A repeat makes the same event, which is kept once."""
        if stone.app is None or not stone.app.webhook_url or not is_chosen(stone.app.webhook_events, APP_DELETED):
            return
        digest = hashlib.sha256(f"{APP_DELETED} {client_id} {stone.deleted_at}".encode()).digest()[:16]
        data = {"reason": stone.by}
        await self._deliveries.enqueue(
            WebhookEvent(event_id_of(digest), APP_DELETED, client_id, "", stone.deleted_at, data)
        )

    async def _bury(self, client_id: str) -> None:
        for _ in range(10):
            packed = await self._packed(client_id)
            stone = Tombstone.unpack(packed)
            if stone is None or stone.until:
                return  # somebody else finished meanwhile
            with wrapped():
                seconds, _ = await self._client.time()
            until = int(seconds) * 1000 + LASTS
            reply = await self._scripts.run(
                "bury_app",
                keys.app_stats(client_id),
                expected=packed,
                tombstone=replace(stone, until=until).pack(),
                ends=until,
            )
            if reply.word == "ok":
                return
        raise StoreUnavailable("the tombstone keeps changing")

    async def _stone(self, client_id: str) -> Tombstone | None:
        return Tombstone.unpack(await self._packed(client_id))

    async def _packed(self, client_id: str) -> bytes:
        with wrapped():
            packed = await self._client.get(keys.app(client_id))
        return packed if isinstance(packed, bytes) else b""
