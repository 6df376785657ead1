"""The cache of registrations of apps and APIs, the announcements that keep it current, and safe changes."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from redis.asyncio import Redis

from store import keys
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable
from store.names import check_client_id
from store.phrases import Phrase
from store.refused import Refused

log = logging.getLogger("latchkey.apps")

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000
INVITATION_OVER = Phrase("This invitation has expired, was used, or was withdrawn. Ask for a new one.")
ATTEMPTS = 10
"""Attempts at a change of a registration that others change at the same time."""

T = TypeVar("T")


class Spent(NamedTuple):
    """An open invitation to the team of an app: the key of all of them, its id, and its row as it was read."""

    key: str
    id: str
    row: bytes


class Logo(NamedTuple):
    """The key of an app's logo, and the encoded image; empty for none."""

    key: str
    image: bytes


class RegistrationCache(Generic[T]):
    """Registrations by client id, at most 5 s old; `read` fetches one. Unknown ids are remembered too."""

    def __init__(self, read: Callable[[str], Awaitable[T]], clock: Callable[[], float] = monotonic) -> None:
        self._read = read
        self._clock = clock
        self.kept: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self.loading: dict[str, asyncio.Task[T]] = {}

    def fresh(self, client_id: str) -> T | None:
        """The registration if the cache has it; None if it has to be asked for with `get`."""
        entry = self.kept.get(client_id)
        return entry[1] if entry and self._clock() - entry[0] < CACHE_SECONDS else None

    async def get(self, client_id: str) -> T | None:
        """The registration, from the cache or from `read`; None for a text that is no client id. Raises the errors of
        `read`."""
        entry = self.kept.get(client_id)
        if entry and self._clock() - entry[0] < CACHE_SECONDS:
            return entry[1]
        try:
            check_client_id(client_id)
        except ValueError:
            return None
        # Requests that miss together share one read.
        task = self.loading.get(client_id)
        if task is None:
            task = asyncio.ensure_future(self._load(client_id))
            self.loading[client_id] = task
            task.add_done_callback(lambda done: self._loaded(client_id, done))
        return await asyncio.shield(task)

    async def _load(self, client_id: str) -> T:
        started = self._clock()
        known = await self._read(client_id)
        # An invalidation during this read has dropped the task, because its answer may be old.
        if self.loading.get(client_id) is asyncio.current_task():
            self.kept[client_id] = (started, known)
            self.kept.move_to_end(client_id)
            while len(self.kept) > CACHE_SIZE:
                self.kept.popitem(last=False)
        return known

    def _loaded(self, client_id: str, task: asyncio.Task[T]) -> None:
        if self.loading.get(client_id) is task:
            del self.loading[client_id]
        if not task.cancelled():
            task.exception()  # marks it as retrieved; the callers handle it

    def forget(self, client_id: str | None = None) -> None:
        """Drops one cached registration, or all."""
        if client_id is None:
            self.kept.clear()
            self.loading.clear()
        else:
            self.kept.pop(client_id, None)
            self.loading.pop(client_id, None)

    async def save(
        self,
        scripts: Scripts,
        app: str,
        client_id: str,
        expected: bytes,
        packed: bytes,
        logo: Logo | None = None,
        spent: Spent | None = None,
    ) -> bool:
        """Writes a registration under the key `app`, if the stored one is still `expected`, and drops the cached one.
        Empty bytes stand for none. With `logo`, also writes that; with `spent`, also uses up an invitation. Returns
        whether it was written. Raises StoreUnavailable, Refused("invalid_request") for an invitation that is over."""
        reply = await scripts.run(
            "save_logo" if logo else "accept_invitation" if spent else "save_app",
            {"app": app, **({"logo": logo.key} if logo else {"invitations": spent.key} if spent else {})},
            expected=expected,
            registration=packed,
            channel=keys.APPS_CHANNEL,
            client=client_id,
            **({"image": logo.image} if logo else {"id": spent.id, "row": spent.row} if spent else {}),
        )
        self.forget(client_id)
        if reply.word == "over":
            raise Refused("invalid_request", INVITATION_OVER)
        return reply.word == "ok"


async def retried(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """The result of the first `attempt` that nobody else was quicker than; one that lost returns None. Raises
    StoreUnavailable, and the errors of `attempt`."""
    for _ in range(ATTEMPTS):
        changed = await attempt()
        if changed is not None:
            return changed
    raise StoreUnavailable("the registration keeps changing")


class Announcements:
    """Drops cached registrations when other processes announce a change."""

    def __init__(self, client: Redis, *forget: Callable[[str | None], None]) -> None:
        self._client = client
        self._caches = forget

    def _forget(self, client_id: str | None = None) -> None:
        for forget in self._caches:
            forget(client_id)

    async def follow(self) -> None:
        """Listens until cancelled. Without the subscription, changes only show later: an entry lives 5 s."""
        while True:
            try:
                async with self._client.pubsub() as channel:
                    await channel.subscribe(keys.APPS_CHANNEL)
                    self._forget()
                    while True:
                        message = await channel.get_message(ignore_subscribe_messages=True, timeout=60)
                        if message:
                            self._forget(message["data"].decode("utf-8", "replace"))
            except asyncio.CancelledError:
                raise
            except Exception as error:  # the store is unavailable, for whatever reason: retry until it is back
                log.debug("subscription to registrations lost: %s", type(error).__name__)
            self._forget()
            await asyncio.sleep(1)

    def following(self) -> AbstractAsyncContextManager[None]:
        """Runs `follow` in the background of the block."""
        return background(self.follow())
