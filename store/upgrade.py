"""Upgrades data of earlier releases to the present layout, before anything else uses the store.

The number of the layout is stored with the check values of the secret keys. A store without a number has layout 1, or
was written just before layouts had numbers: each step checks what it finds and skips what is already right. So an
interrupted upgrade starts again, and several processes may upgrade at once. One script upgrades a person, one a token;
nobody is served until all are done.

Layout 2: the person's row has the connected apps, and its fields have new names; keys of tokens have no client id; the
lists of a shard are sets of short ids; the audit trail is one text.

Layout 3: the due list of the shard has the expiry of data that disconnected apps keep.

Layout 4: there is an index of people. Servers fill it in the background after the upgrade.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable
from typing import Any

from redis.asyncio import Redis

from store import keys, parsed_keys
from store.directory.rebuild import DirectoryRebuild
from store.engine.restored import every_key
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.keystate import LAYOUT, KeyState

log = logging.getLogger("latchkey.store")

ROLLING = 3
"""The oldest layout whose servers may go on during the upgrade, until each is replaced: they leave rows as this release
reads them. What they change is missing in the index of people until `latchkey user reindex`."""
LOG_SECONDS = 10.0
"""Seconds."""
# Keys of earlier layouts; store/keys.py spells the present ones. Layout 1 had the client id in the keys of tokens, and
# the connected apps in a list of their own.
_TOKEN = re.compile(r"(\{[0-9a-f]{3}\}:[0-9a-f]{32}:)(?:(code|family):[^:]+:([^:]+)|(access):[^:]+:([^:]+:\d+))")


class Upgrade:
    """Upgrades a store from every earlier layout."""

    def __init__(self, client: Redis, scripts: Scripts, state: KeyState, rebuild: DirectoryRebuild) -> None:
        self._rebuild = rebuild
        self._client = client
        self._scripts = scripts
        self._state = state

    async def run(self, layout: int) -> None:
        """Upgrades a store of `layout` to that of this release, and notes it; a new run continues an interrupted one.
        Servers of an earlier layout than ROLLING must have stopped. Raises StoreError, StoreUnavailable."""
        log.info("bringing the store from layout %d to layout %d", layout, LAYOUT)
        seen, logged_at = 0, time.monotonic()
        if layout < 3:
            # Families are on no list, so the upgrade reads every key, this one time.
            async for found in every_key(self._client):
                steps = (step for key in found for step in self._steps(key, layout))
                for outcome in await asyncio.gather(*steps, return_exceptions=True):
                    if isinstance(outcome, BaseException):
                        raise outcome
                seen += len(found)
                if time.monotonic() - logged_at > LOG_SECONDS:
                    logged_at = time.monotonic()
                    log.info("%d keys of the store checked", seen)
        await self._rebuild.begin()
        await self._state.note_layout()
        log.info("the store is now in layout %d; %d keys were checked", LAYOUT, seen)
        if layout >= ROLLING:
            log.info("when every server of an earlier release has stopped, run `latchkey user reindex`")

    def _steps(self, key: str, layout: int) -> list[Awaitable[Any]]:
        """The steps that a key in a store of this layout needs."""
        match parsed_keys.read(key):
            case parsed_keys.ParsedKey("grant", user=user, client=client):
                return [self._grant(user, client)]
        return self._to_layout_2(key) if layout < 2 else []

    def _to_layout_2(self, key: str) -> list[Awaitable[Any]]:
        if moved := token_of_layout_1(key):
            after, noun = moved
            return [self._scripts.run("upgrade_token", {"before": key, "after": after}, noun=noun)]
        match parsed_keys.read(key):
            case parsed_keys.ParsedKey("user", user=user):
                return [self._person(user)]
            case parsed_keys.ParsedKey("users", shard=shard):
                return [self._people(shard)]
            case parsed_keys.ParsedKey("app-users"):
                return [self._scripts.run("upgrade_connected", {"app_users": key})]
        return []

    async def _grant(self, user: str, client: str) -> None:
        known = {**keys.hosted(user, client), **keys.outbox_keys(user[:3]), "grant": keys.grant(user, client)}
        await self._scripts.run("upgrade_grant", known, client=client, member=keys.member(user))

    async def _person(self, user: str) -> None:
        await self._scripts.run("upgrade_person", person_of_layout_1(user))

    async def _people(self, shard: str) -> None:
        reply = await self._scripts.run(
            "upgrade_people", {"users": keys.shard_users(shard)}, people=keys.member_prefix(shard)
        )
        for member in reply.rows("deleting"):
            # Layout 1 had no list of interrupted deletions: with this list, the next start continues them.
            user = keys.user_of(shard, member)
            await self._person(user)
            with wrapped():
                seconds, _ = await self._client.time()
                await self._client.zadd(keys.DELETIONS, {user: seconds}, nx=True)


def token_of_layout_1(key: str) -> tuple[str, str] | None:
    """The present key for a token's key of layout 1, and its noun: code, family or access. None for any other key."""
    found = _TOKEN.fullmatch(key)
    if not found:
        return None
    prefix, noun, one_id, access, rest = found.groups()
    return f"{prefix}{noun or access}:{one_id or rest}", noun or access


def person_of_layout_1(user: str) -> dict[str, str]:
    """The fixed keys of a person, and the list of connected apps."""
    return {**keys.person(user), "grants": f"{keys.prefix(user)}grants"}
