"""Re-encrypts documents and secrets under the front key while servers run.

It covers every document, the secrets of authenticator apps and webhooks, the signing keys and the salt of pairwise ids,
with one compare-and-set each. After an interruption, start it again: it skips what is done. A completed run is noted in
the store, because `retire_key.lua` needs proof that nothing sealed before the run is left under another key.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.accounts.signin.totp import TotpSecrets
from store.apps.apps import Apps
from store.apps.webhooks import WebhookSecrets
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.crypto.pairwise import Pairwise
from store.crypto.signing_store import SigningStore
from store.documents.person_documents import PAST_ALL
from store.engine.scripts import Scripts
from store.errors import StoreError, StoreUnavailable, wrapped
from store.keystate import KeyState
from store.refused import Refused

SHARDS_AT_ONCE = 256
PEOPLE_AT_ONCE = 256
PAGE_DOCUMENTS = 200
PAGE_BYTES = 256 * 2**10
NOTED_EVERY = 600.0
"""Seconds. Like a server, a walk notes at intervals which key it seals with."""

MOST_NAMED = 20


@dataclass(slots=True)
class Progress:
    """The progress of a walk: people `done` of all `people`, documents seen and documents renewed. Documents that open
    under no configured key are counted, and the first of them named as `user/client/collection/id`."""

    people: int = 0
    done: int = 0
    documents: int = 0
    renewed: int = 0
    unreadable: int = 0
    named: list[str] = field(default_factory=list)


class Reencryption:
    """The walk over shards, people, apps and documents."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        cipher: Cipher,
        secrets: TotpSecrets,
        ring: Keys,
        state: KeyState,
        apps: Apps,
        signing: WebhookSecrets,
        signing_keys: SigningStore,
        pairwise: Pairwise,
    ) -> None:
        self._client = client
        self._secrets = secrets
        self._scripts = scripts
        self._cipher = cipher
        self._keys = ring
        self._state = state
        self._apps = apps
        self._signing = signing
        self._signing_keys = signing_keys
        self._pairwise = pairwise

    async def run(self, lag: int) -> AsyncGenerator[Progress, None]:
        """Re-encrypts what is not under the front key, and yields its progress after each step.

        `lag`: how long, in ms, a server may seal with a key after its last note of that key; 0 if every server is
        known to use the front key. Raises StoreError, StoreUnavailable; a new run continues.
        """
        front = self._keys.ring.front.id
        begun = await self._state.note_sealing(front)
        noted = time.monotonic()
        progress = Progress(await self._count())
        async for users in self._people():
            for user, client in await self._pairs(users):
                async for _ in self._renew(user, client, front, progress):
                    if time.monotonic() - noted > NOTED_EVERY:
                        await self._state.note_sealing(front)
                        noted = time.monotonic()
                    yield progress
            await self._renew_secrets(users, progress)
            progress.done += len(users)
            yield progress
        await self._renew_signing(progress)
        await self._renew_signing_keys(progress)
        await self._renew_salt(progress)
        yield progress
        if not progress.unreadable:
            await self._state.record_reencryption(front, begun - lag)

    async def _renew(self, user: str, client: str, front: int, progress: Progress) -> AsyncIterator[None]:
        """Renews the documents of one (user, app) pair, a page at a time."""
        hosted = keys.hosted(user, client)
        after, more = "", True
        while more:
            reply = await self._scripts.run(
                "list_stale_documents",
                hosted,
                front=front,
                after=after,
                past=PAST_ALL,
                most=PAGE_DOCUMENTS,
                max_bytes=PAGE_BYTES,
            )
            for name, sealed in reply.rows("rows"):
                await self._reseal(hosted, user, client, name.decode(), sealed, progress)
            progress.documents += reply.number("seen")
            more, after = reply.number("more") == 1, reply.text("last")
            yield

    async def _reseal(
        self, hosted: dict[str, str], user: str, client: str, name: str, sealed: bytes, progress: Progress
    ) -> None:
        try:
            document = self._cipher.open(user, client, name, sealed)
        except StoreError:
            progress.unreadable += 1
            if len(progress.named) < MOST_NAMED:
                progress.named.append(f"{user}/{client}/{name}")
            return
        renewed = self._cipher.seal(user, client, name, document)
        reply = await self._scripts.run("reseal_document", hosted, document=name, expected=sealed, sealed=renewed)
        progress.renewed += reply.word == "ok"

    async def _renew_secrets(self, users: Sequence[str], progress: Progress) -> None:
        """Renews the secrets of these people's authenticator apps."""
        found = await self._batch([("HGET", keys.person(user)["factors"], "secret") for user in users])
        for user, sealed in zip(users, found, strict=True):
            if sealed is None or self._secrets.is_front(sealed):
                continue
            try:
                renewed = self._secrets.seal(user, self._secrets.open(user, sealed))
            except StoreError:
                progress.unreadable += 1
                if len(progress.named) < MOST_NAMED:
                    progress.named.append(f"{user} (authenticator app)")
                continue
            await self._scripts.run("reseal_secret", keys.person(user), expected=sealed, sealed=renewed)

    async def _renew_signing(self, progress: Progress) -> None:
        """Renews the signing secrets of the apps' webhooks."""
        for app in await self._apps.all_remembered():
            if all(map(self._signing.is_front, app.webhook_secrets)):
                continue
            try:
                await self._apps.reseal(app.client_id, self._signing.resealed)
            except Refused:  # gone meanwhile
                continue
            except StoreUnavailable:
                raise
            except StoreError:
                progress.unreadable += 1
                if len(progress.named) < MOST_NAMED:
                    progress.named.append(f"{app.client_id} (webhook)")

    async def _renew_signing_keys(self, progress: Progress) -> None:
        """Renews the private halves of the signing keys."""
        _, unreadable = await self._signing_keys.reseal()
        progress.unreadable += len(unreadable)
        room = max(MOST_NAMED - len(progress.named), 0)
        progress.named += [f"{kid} (signing key)" for kid in unreadable[:room]]

    async def _renew_salt(self, progress: Progress) -> None:
        """Renews the salt of pairwise ids."""
        try:
            await self._pairwise.reseal()
        except StoreUnavailable:
            raise
        except StoreError:
            progress.unreadable += 1
            if len(progress.named) < MOST_NAMED:
                progress.named.append("the salt of pairwise ids")

    async def _people(self) -> AsyncIterator[Sequence[str]]:
        """Yields every user id, in batches."""
        for start in range(0, len(keys.SHARDS), SHARDS_AT_ONCE):
            shards = keys.SHARDS[start : start + SHARDS_AT_ONCE]
            found = await self._batch([("SMEMBERS", keys.shard_users(shard)) for shard in shards])
            users = [keys.user_of(shard, one) for shard, listed in zip(shards, found, strict=True) for one in listed]
            for first in range(0, len(users), PEOPLE_AT_ONCE):
                yield users[first : first + PEOPLE_AT_ONCE]

    async def _pairs(self, users: Sequence[str]) -> list[tuple[str, str]]:
        """The (user, app) pairs that have documents, including apps in their grace window."""
        rows = await self._batch([("HKEYS", keys.person(user)["user"]) for user in users])
        pairs = [(user, client) for user, fields in zip(users, rows, strict=True) for client in _connected(fields)]
        present = await self._batch([("EXISTS", keys.hosted(user, client)["docs"]) for user, client in pairs])
        return [pair for pair, exists in zip(pairs, present, strict=True) if exists]

    async def _count(self) -> int:
        """How many people there are."""
        return sum(await self._batch([("SCARD", keys.shard_users(shard)) for shard in keys.SHARDS]))

    async def _batch(self, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        """Sends reads together; in a cluster each goes to the node that owns its slot."""
        if not commands:
            return []
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for command in commands:
                    batch.execute_command(*command)
                answers: list[Any] = await batch.execute()
        return answers


def _connected(fields: Sequence[bytes]) -> list[str]:
    """The client ids among the fields of a person's row, in the form of lua/include/connected.lua."""
    return [field.removeprefix(b"app:").decode() for field in fields if field.startswith(b"app:")]
