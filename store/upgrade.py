"""Brings what an earlier release has written into the layout of this one, before anything else is done with the store.

The number of the layout stands beside the check values of the secret keys. A store without one is of layout 1, or was
written just before there were numbers: each step looks at what it finds and passes over what is as it should be. So an
upgrade that was cut short is begun again, and several processes may be at it at once. A person is brought over by one
script, a token by one; nobody is served until all are.

Layout 2: the connected apps stand in the person's row, of which fields were renamed; keys of tokens are without the
client id; the lists of a shard are sets of short ids; the audit trail is one text.

Layout 3: the end of what disconnected apps keep stands in the due list of the shard.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.engine.restored import every_key
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.keystate import LAYOUT, KeyState

log = logging.getLogger("latchkey.store")

SAID_EVERY = 10.0
"""Seconds."""


class Upgrade:
    """From every layout there was before this."""

    def __init__(self, client: Redis, scripts: Scripts, state: KeyState) -> None:
        self._client = client
        self._scripts = scripts
        self._state = state

    async def run(self, layout: int) -> None:
        """Brings a store of `layout` to that of this release, and notes it; begun again it goes on. No server of an
        earlier release may be at work. Raises StoreError, StoreUnavailable."""
        log.info("bringing the store from layout %d to layout %d", layout, LAYOUT)
        seen, said = 0, time.monotonic()
        # Families are on no list: this one time every key is looked at.
        async for found in every_key(self._client):
            steps = (step for key in found for step in self._steps(key, layout))
            for outcome in await asyncio.gather(*steps, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
            seen += len(found)
            if time.monotonic() - said > SAID_EVERY:
                said = time.monotonic()
                log.info("%d keys of the store looked at", seen)
        await self._state.note_layout()
        log.info("the store is in layout %d, %d keys were looked at", LAYOUT, seen)

    def _steps(self, key: str, layout: int) -> list[Awaitable[Any]]:
        """What is to be done about a key of a store of this layout."""
        match keys.read(key):
            case keys.ParsedKey("grant", user=user, client=client):
                return [self._grant(user, client)]
        return self._to_layout_2(key) if layout < 2 else []

    def _to_layout_2(self, key: str) -> list[Awaitable[Any]]:
        if moved := keys.token_of_layout_1(key):
            after, noun = moved
            return [self._scripts.run("upgrade_token", {"before": key, "after": after}, noun=noun)]
        match keys.read(key):
            case keys.ParsedKey("user", user=user):
                return [self._person(user)]
            case keys.ParsedKey("users", shard=shard):
                return [self._people(shard)]
            case keys.ParsedKey("app-users"):
                return [self._scripts.run("upgrade_connected", {"app_users": key})]
        return []

    async def _grant(self, user: str, client: str) -> None:
        known = {**keys.hosted(user, client), **keys.outbox_keys(user[:3]), "grant": keys.grant(user, client)}
        await self._scripts.run("upgrade_grant", known, client=client, member=keys.member(user))

    async def _person(self, user: str) -> None:
        await self._scripts.run("upgrade_person", keys.person_of_layout_1(user))

    async def _people(self, shard: str) -> None:
        reply = await self._scripts.run(
            "upgrade_people", {"users": keys.shard_users(shard)}, people=keys.member_prefix(shard)
        )
        for member in reply.rows("deleting"):
            # Layout 1 had no list of those whose deletion broke off: the next start goes on with them by this one.
            user = keys.user_of(shard, member)
            await self._person(user)
            with wrapped():
                seconds, _ = await self._client.time()
                await self._client.zadd(keys.DELETIONS, {user: seconds}, nx=True)
