"""Ends access that a restored copy would bring back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from redis.asyncio import Redis

from store import parsed_keys
from store.errors import wrapped

AT_ONCE = 256
"""How many keys are read and removed at a time."""

ACCESS = frozenset({"session", "family", "access", "code", "request", "pushed", "all-pushed", "device-request", "link"})
"""The kinds of key without which no session, token, code, pending, pushed or device request or mailed link works."""


async def every_key(client: Redis) -> AsyncIterator[Sequence[str]]:
    """Yields the names of all keys, in batches. Raises StoreError, StoreUnavailable."""
    found: list[str] = []
    with wrapped():
        async for key in client.scan_iter(count=AT_ONCE):
            found.append(key.decode("utf-8", "replace"))
            if len(found) == AT_ONCE:
                yield found
                found = []
    yield found


async def end_access(client: Redis) -> int:
    """Ends every session, token, code, pending request and mailed link; returns the number of removed rows. A new run
    continues an interrupted one. Grants, documents and credits stay, so apps work again after the person signs in.

    The rows are removed instead of writing fresh epochs. A token without a row is unknown, but a token of an earlier
    epoch is a replay: an app that presented it would end what the person has begun since. Raises StoreError,
    StoreUnavailable."""
    ended = 0
    async for names in every_key(client):
        dead = [name for name in names if (parsed := parsed_keys.read(name)) is not None and parsed.kind in ACCESS]
        with wrapped():
            async with client.pipeline(transaction=False) as batch:
                for name in dead:
                    # `unlink` of a cluster's pipeline is a coroutine.
                    batch.execute_command("UNLINK", name)
                gone: list[int] = await batch.execute()
        ended += sum(gone)
    return ended
