"""An open store: one client, the scripts, and a part for each noun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from store.crypto.keyring import Keys
from store.engine.connect import check_store, connect
from store.engine.memory import Room, room_of
from store.engine.replicas import Wait
from store.engine.scripts import ScriptObserver
from store.errors import StartupError, StoreError, wrapped
from store.keystate import LAYOUT
from store.parts.operators import OperatorParts

if TYPE_CHECKING:
    from store.credits.credits import Bookkeeping
    from store.crypto.passwords import PasswordHasher
    from store.documents.documents import Quotas


class Store(OperatorParts):
    """Everything a process does with the store. A part is made when it is first asked for (`store/parts/part.py`)."""

    @classmethod
    async def open(
        cls,
        url: str,
        keys: Keys,
        hasher: PasswordHasher,
        *,
        timeout: float,
        connections: int,
        session_idle: int,
        session_lifetime: int,
        refresh_lifetime: int = 0,
        quotas: Quotas | None = None,
        books: Bookkeeping | None = None,
        wait: Wait | None = None,
    ) -> Store:
        """Connects, checks that the store fits this process, and upgrades an earlier release's data to the present
        layout. `timeout` is in seconds, for one call. Raises StartupError if the store cannot be reached, would evict,
        or was written with other keys or by a later release."""
        client = await connect(url, socket_timeout=timeout, max_connections=connections)
        store = cls(
            client,
            keys,
            hasher,
            session_idle=session_idle,
            session_lifetime=session_lifetime,
            refresh_lifetime=refresh_lifetime,
            quotas=quotas,
            books=books,
            wait=wait,
        )
        try:
            await check_store(client, url, wait)
            layout = await store.key_state.check(keys.ring)
            if layout < LAYOUT:
                await store.upgrade.run(layout)
        except BaseException as error:
            await store.close()
            if isinstance(error, StoreError):
                raise StartupError(f"the store failed at the first call: {error}") from None
            raise
        return store

    async def flush(self) -> None:
        """Writes what this process has gathered. The parts that were never made have gathered nothing."""
        if self._changed.some:
            with suppress(StoreError):
                await self.directory_relay.hinted()
        if self.wired("app_stats"):
            with suppress(StoreError):
                await self.app_stats.flush()
        if self.wired("app_log"):
            with suppress(StoreError):
                await self.app_log.flush()
        with suppress(StoreError):
            await self.security.flush()

    def observed_by(self, observer: ScriptObserver | None) -> None:
        """Reports the duration of each script to `observer` from now on; None stops the reports."""
        self.scripts.observer = observer

    def answers(self) -> Iterator[tuple[str, str, int]]:
        """Yields each script, the words it has answered in this process, and how often."""
        return self.scripts.answers()

    @property
    def queue(self) -> int:
        """Calls that wait for their answer."""
        return sum(
            connection.queue for connection in getattr(self.client, "pipelined_connections", ())
        )  # the store in memory has none

    async def room(self) -> Room | None:
        """How full the store is; None if the store does not say. Raises StoreUnavailable."""
        return await room_of(self.client)

    async def ping(self) -> None:
        """Raises StoreUnavailable when the store does not answer."""
        with wrapped():
            await self.client.ping()

    async def close(self) -> None:
        """Closes connections and threads."""
        self.hasher.close()
        if self.wired("checks"):
            self.checks.close()
        with wrapped():
            await self.client.aclose()
