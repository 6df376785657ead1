"""Ends access that a restored copy would bring back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from redis.asyncio import Redis

from store import keys
from store.errors import wrapped

AT_ONCE = 256
"""Keys that are read, and removed, at a time."""

ACCESS = frozenset({"session", "family", "access", "code", "request", "link"})
"""The kinds of key that every session, token, code, pending request and mailed link needs."""


async def every_key(client: Redis) -> AsyncIterator[Sequence[str]]:
    """The names of all keys, some at a time. Raises StoreError, StoreUnavailable."""
    found: list[str] = []
    with wrapped():
        async for key in client.scan_iter(count=AT_ONCE):
            found.append(key.decode("utf-8", "replace"))
            if len(found) == AT_ONCE:
                yield found
                found = []
    yield found


async def end_access(client: Redis) -> int:
    """Ends every session, token, code, pending request and mailed link, and returns how many rows that were; begun
    again it goes on. Grants, documents and credits stay, so an app asks the person to sign in and goes on as before.

    The rows are removed, in place of fresh epochs: a token without a row is unknown, while one of an earlier epoch is a
    replay, and an app that comes back with it would end what the person has begun since. Raises StoreError,
    StoreUnavailable."""
    ended = 0
    async for names in every_key(client):
        dead = [name for name in names if (spelt := keys.read(name)) is not None and spelt.kind in ACCESS]
        with wrapped():
            async with client.pipeline(transaction=False) as batch:
                for name in dead:
                    # `unlink` of a cluster's pipeline is a coroutine of its own.
                    batch.execute_command("UNLINK", name)
                gone: list[int] = await batch.execute()
        ended += sum(gone)
    return ended
