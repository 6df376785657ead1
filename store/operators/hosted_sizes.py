"""How much apps store for a person, for operators: numbers and sizes, never content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.documents.documents import Usage, usage_of
from store.errors import wrapped


class HostedSizes:
    """Reads what each app has stored for a person."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def of(self, user: str, clients: Sequence[str]) -> dict[str, Usage]:
        """The documents and bytes of each app that has any, the largest first. Raises StoreUnavailable."""
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for client in clients:
                    batch.hgetall(keys.hosted(user, client)["usage"])
                rows: list[Any] = await batch.execute()
        found = {
            client: usage_of([part for pair in row.items() for part in pair])
            for client, row in zip(clients, rows, strict=True)
        }
        kept = [(client, usage) for client, usage in found.items() if usage.documents]
        return dict(sorted(kept, key=lambda one: -one[1].bytes))
