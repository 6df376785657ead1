"""App registrations: read through a short-lived cache, written by the operator and the developer portal."""

from __future__ import annotations

import asyncio
import logging
import secrets
import string
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from time import monotonic
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.beside import beside
from store.deliveries import Deliveries
from store.errors import StoreUnavailable, wrapped
from store.names import check_client_id
from store.refused import Refused
from store.registration import (
    LIVE_SECRETS,
    Registration,
    new_secret,
    owner_left,
    secret_digest,
    secret_mark,
    tombstone,
)
from store.results import unheard
from store.scripts import Scripts

log = logging.getLogger("latchkey.apps")

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000
PURGE_STEP = 100
SHARDS_AT_ONCE = 256


class Apps:
    """The registrations. A change shows within 5 s on every process, at once on the one that made it."""

    def __init__(self, client: Redis, scripts: Scripts, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._scripts = scripts
        self._deliveries = Deliveries(scripts)
        self._clock = clock
        self.settle = CACHE_SECONDS
        self._cached: OrderedDict[str, tuple[float, Registration | None]] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Registration | None]] = {}

    async def find(self, client_id: str) -> Registration | None:
        """The registration, at most 5 s old, or None. Unknown ids are remembered too. Raises StoreUnavailable."""
        entry = self._cached.get(client_id)
        if entry and self._clock() - entry[0] < CACHE_SECONDS:
            return entry[1]
        try:
            check_client_id(client_id)
        except ValueError:
            return None
        # Requests that miss together share one read.
        task = self._loading.get(client_id)
        if task is None:
            task = asyncio.ensure_future(self._load(client_id))
            self._loading[client_id] = task
            task.add_done_callback(lambda done: self._loaded(client_id, done))
        return await asyncio.shield(task)

    async def active(self, client_id: str) -> Registration | None:
        """The registration if the app may act."""
        registration = await self.find(client_id)
        return registration if registration and registration.active else None

    async def _load(self, client_id: str) -> Registration | None:
        started = self._clock()
        registration = (await self._read(client_id))[1]
        # An invalidation that came while this read was under way dropped the task: its answer may be old.
        if self._loading.get(client_id) is asyncio.current_task():
            self._cached[client_id] = (started, registration)
            self._cached.move_to_end(client_id)
            while len(self._cached) > CACHE_SIZE:
                self._cached.popitem(last=False)
        return registration

    def _loaded(self, client_id: str, task: asyncio.Task[Registration | None]) -> None:
        if self._loading.get(client_id) is task:
            del self._loading[client_id]
        if not task.cancelled():
            task.exception()  # the callers have it; here it only must not be reported as never retrieved

    async def _read(self, client_id: str) -> tuple[bytes, Registration | None]:
        with wrapped():
            packed = await self._client.get(keys.app(client_id))
        if not isinstance(packed, bytes):
            return b"", None
        return packed, Registration.unpack(packed) if owner_left(packed) is None else None

    async def fresh(self, client_id: str) -> tuple[Registration | None, str | None]:
        """The registration as it stands in the store; where the app is being deleted, who owned it instead. Raises
        StoreUnavailable."""
        packed, registration = await self._read(client_id)
        return registration, owner_left(packed)

    def forget(self, client_id: str | None = None) -> None:
        """Drops one cached registration, or all."""
        if client_id is None:
            self._cached.clear()
            self._loading.clear()
        else:
            self._cached.pop(client_id, None)
            self._loading.pop(client_id, None)

    async def follow(self) -> None:
        """Drops what other processes changed, as they announce it; runs until cancelled. While the subscription is
        down nothing is lost but speed: an entry lives 5 s."""
        while True:
            try:
                async with self._client.pubsub() as channel:
                    await channel.subscribe(keys.APPS_CHANNEL)
                    self.forget()
                    while True:
                        message = await channel.get_message(ignore_subscribe_messages=True, timeout=60)
                        if message:
                            self.forget(message["data"].decode("utf-8", "replace"))
            except asyncio.CancelledError:
                raise
            except Exception as error:  # the store is away, in whatever way: try again until it is back
                log.debug("subscription to registrations lost: %s", type(error).__name__)
            self.forget()
            await asyncio.sleep(1)

    async def create(self, registration: Registration, secret: str | None = None) -> tuple[Registration, str | None]:
        """Registers an app. Returns it with its secret, which is shown this once and never stored (None for a public
        app). Raises Refused("invalid_request") when the client id is taken."""
        now = await self.now()
        with wrapped():
            # First the list: cut behind this step, a name stands in it for nothing, which the next attempt passes over.
            await self._client.zadd(keys.APPS, {registration.client_id: now // 1000}, nx=True)
        if not registration.public:
            secret = secret or new_secret()
            registration = replace(registration, secrets=(secret_digest(secret),))
        registration = replace(registration, created_at=now)
        if not await self._save(registration.client_id, b"", registration.pack()):
            if owner_left((await self._read(registration.client_id))[0]) is not None:
                # What an app left behind must never fall to another one of the same name.
                raise Refused("invalid_request", "The deletion of this client_id is not finished: delete it once more.")
            raise Refused("invalid_request", "This client_id is registered already.")
        return registration, secret

    async def now(self) -> int:
        """The store's time, in epoch milliseconds."""
        with wrapped():
            seconds, micros = await self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def update(self, client_id: str, by: str | None = None, /, **changes: Any) -> Registration:
        """Changes fields of a registration, where `by` is given only of one that this person owns. Raises
        Refused("not_found"), ValueError for what may not register, and as `changed_by_owner`."""
        change = replace if by is None else changed_by_owner
        return await self.change(client_id, lambda present: change(present, **changes), by)

    async def rotate_secret(
        self, client_id: str, *, drop_old: bool = False, by: str | None = None
    ) -> tuple[Registration, str]:
        """Gives the app a new secret; the one before it stays valid unless `drop_old`. Of two live ones the older goes;
        for an owner (`by`), who may be using it, Refused("invalid_request") instead: one is dropped first."""
        secret = new_secret()
        changed = await self.change(client_id, lambda app: rotated(app, secret, drop_old, by is not None), by)
        return changed, secret

    async def drop_secret(self, client_id: str, mark: str, *, by: str | None = None) -> Registration:
        """Ends one of two live secrets, named by its mark. Raises Refused("not_found", or "invalid_request" for the
        last one)."""
        return await self.change(client_id, lambda app: without_secret(app, mark), by)

    async def change(
        self, client_id: str, change: Callable[[Registration], Registration], by: str | None = None
    ) -> Registration:
        """Puts what `change` makes of a registration in its place, where `by` is given only of one that this person
        owns; `change` runs again when somebody else was quicker. Raises Refused("not_found"), what `change` raises."""
        for _ in range(10):
            packed, present = await self._read(client_id)
            if present is None or by not in (None, present.owner):
                raise Refused("not_found", "No such app.")
            changed = change(present)
            if await self._save(client_id, packed, changed.pack()):
                return changed
        raise StoreUnavailable("the registration keeps changing")

    async def _save(self, client_id: str, expected: bytes, packed: bytes) -> bool:
        reply = await self._scripts.run(
            "save_app",
            {"app": keys.app(client_id)},
            expected=expected,
            registration=packed,
            channel=keys.APPS_CHANNEL,
            client=client_id,
        )
        self.forget(client_id)
        return reply.word == "ok"

    async def delete(self, client_id: str) -> None:
        """Deletes an app, its owner's or not: the registration first, with which every token of it is dead, then what
        it left in each shard, in bounded steps that can be begun again. Raises Refused("not_found")."""
        await self.begin_deletion(client_id)
        await self.finish_deletion(client_id)

    async def begin_deletion(self, client_id: str, *, by: str | None = None) -> None:
        """The first step: a tombstone takes the place of the registration; where `by` is given, only of one that this
        person owns. Raises Refused("not_found")."""
        packed, present = await self._read(client_id)
        owner = present.owner if present else owner_left(packed)
        with wrapped():
            listed = bool(packed) or await self._client.zscore(keys.APPS, client_id) is not None
        if not listed or by not in (None, owner):
            raise Refused("not_found", "No such app.")
        buried = present is None and owner is not None
        if not buried and not await self._save(client_id, packed, tombstone(owner or "")):
            raise StoreUnavailable("the registration changed meanwhile")

    async def finish_deletion(self, client_id: str, told: Callable[[int, int], None] = unheard) -> None:
        """The rest, behind `begin_deletion`; may be begun again. `told` hears how many shards are done, and of how
        many."""
        # A process that has not heard of it may act on its copy a little longer; what comes of that is freed as well.
        await asyncio.sleep(self.settle)
        shards = await self._shards_of(client_id)
        for done, shard in enumerate(shards):
            told(done, len(shards))
            word = "more"
            while word == "more":
                reply = await self._scripts.run(
                    "forget_app",
                    {**keys.telling(shard), "app_users": keys.shard_app_users(shard, client_id)},
                    client=client_id,
                    people=keys.member_prefix(shard),
                    steps=PURGE_STEP,
                )
                word = reply.word
        packed, _ = await self._read(client_id)
        owner = owner_left(packed)
        if owner is None:
            return  # somebody else finished meanwhile
        await self._deliveries.forget(client_id)
        # The tombstone outlives the list, and the owner's list the tombstone: a deletion that was cut short is found.
        with wrapped():
            await self._client.zrem(keys.APPS, client_id)
        await self._scripts.run("remove_app", keys.numbers(client_id), expected=packed)
        if owner:
            with wrapped():
                await self._client.zrem(keys.person(owner)["apps"], client_id)

    async def _shards_of(self, client_id: str) -> Sequence[str]:
        """The shards in which the app left something: few, mostly, and to ask is much cheaper than to clear."""
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

    async def list(self) -> list[Registration]:
        """Every registration, oldest first."""
        with wrapped():
            ids: list[Any] = await self._client.zrange(keys.APPS, 0, -1)
        found = [(await self._read(client_id.decode()))[1] for client_id in ids]
        return [registration for registration in found if registration]

    def following(self) -> AbstractAsyncContextManager[None]:
        """Runs `follow` beside the block."""
        return beside(self.follow())


def changed_by_owner(app: Registration, /, **changes: Any) -> Registration:
    """The registration with changes of its owner's. Raises Refused("access_denied") where that would let an app act
    which the operator has disabled."""
    if "status" in changes and app.status == "disabled":
        raise Refused("access_denied", "The operator of this server has disabled this app.")
    return replace(app, **changes)


def rotated(app: Registration, secret: str, drop_old: bool = False, spare: bool = False) -> Registration:
    """The registration with a new secret in front; of two the older goes, unless it is spared: then Refused."""
    if app.public:
        raise Refused("invalid_request", "A public app has no secret.")
    if spare and len(app.secrets) >= LIVE_SECRETS:
        raise Refused("invalid_request", "This app has two live secrets. End one of them first.")
    kept = () if drop_old else app.secrets[: LIVE_SECRETS - 1]
    return replace(app, secrets=(secret_digest(secret), *kept))


def without_secret(app: Registration, mark: str) -> Registration:
    """The registration without the secret of this mark. Raises Refused as `Apps.drop_secret`."""
    kept = tuple(digest for digest in app.secrets if secret_mark(digest) != mark)
    if len(kept) == len(app.secrets):
        raise Refused("not_found", "This app has no such secret any more.")
    if not kept:
        raise Refused("invalid_request", "This is the only secret of the app. Make a new one first.")
    return replace(app, secrets=kept)


def new_client_id() -> str:
    """A client id of its own."""
    return client_id_of(secrets.token_bytes(32))


def client_id_of(seed: bytes) -> str:
    """A client id of 15 letters and digits, 89 bits, out of 32 random bytes. No hyphens: on a command line, an id that
    begins with one is an option. It stands in keys of everybody who connects the app, so it is short; whether one is
    taken is asked when it is registered."""
    number, digits = int.from_bytes(seed), string.ascii_letters + string.digits
    return "".join(digits[number // len(digits) ** place % len(digits)] for place in range(15))
