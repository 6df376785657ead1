"""A connection that loses the answer to a given script, and a store on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from redis.asyncio import Redis

from store.crypto.keyring import Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.engine.replicas import Wait
from store.engine.script_source import own_scripts
from store.wiring import Store
from tests.support.processes.engines import DroppingProxy, Engine
from tests.support.store.world import World

SCRIPTS = own_scripts()

OpenNew = Callable[[str], AbstractAsyncContextManager[Store]]
"""Opens a store on a URL inside a test, as another process would."""


def store_on(client: Redis, keys: Keys, wait: Wait | None = None) -> Store:
    """A store on an open client, with the cheapest hasher; it may wait for replicas."""
    hasher = PasswordHasher(64, 1, workers=1, queue=50)
    store = Store(client, keys, hasher, session_idle=3600, session_lifetime=7200, wait=wait)
    store.apps.settle = 0
    return store


class Armed:
    """A client that arms the proxy to drop an answer when one script is sent."""

    def __init__(self, client: Redis, proxy: DroppingProxy) -> None:
        self._client = client
        self._proxy = proxy
        self.sha = ""
        self.times = 0
        self.lose_request = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def arm(self, script: str, times: int = 1) -> None:
        """Drops the next `times` answers to the script."""
        self.sha, self.times = SCRIPTS[script].sha, times

    async def evalsha(self, sha: str, *words: Any) -> Any:
        if sha == self.sha and self.times:
            self.times -= 1
            (self._proxy.drop_request if self.lose_request else self._proxy.drop_reply)("EVALSHA")
        return await self._client.evalsha(sha, *words)

    async def answers(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        given = list(commands)
        if self.times and any(self.sha in words for words in given):
            self.times -= 1
            (self._proxy.drop_request if self.lose_request else self._proxy.drop_reply)("EVALSHA")
        found: list[Any] = await cast(Any, self._client).answers(given)
        return found


@asynccontextmanager
async def losing(engine: Engine, keys: Keys) -> AsyncIterator[tuple[World, Armed]]:
    """A world whose connection can lose answers; the scripts are loaded, so each call is one EVALSHA."""
    with engine.client() as direct:
        direct.flushall()
        for script in SCRIPTS.values():
            direct.script_load(script.source)
    with DroppingProxy(engine) as proxy:
        armed: Any = Armed(await connect(proxy.url), proxy)
        store = store_on(armed, keys)
        try:
            yield await World.make(store), armed
        finally:
            await store.close()
