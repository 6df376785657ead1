"""Sends many commands together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from redis.asyncio import Redis


@runtime_checkable
class SharedWrites(Protocol):
    """A client that sends many commands in one write."""

    async def answers(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """The replies, or the exceptions in their places."""
        ...

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any: ...

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any: ...


async def answers_of(client: Redis, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """The replies to commands that are sent together; in a cluster each goes to the node that owns its slot. Raises
    redis-py's errors."""
    if not isinstance(client, SharedWrites):
        async with client.pipeline(transaction=False) as batch:
            for command in commands:
                batch.execute_command(*command)
            return list(await batch.execute())
    found = await client.answers(commands)
    for answer in found:
        if isinstance(answer, Exception):
            raise answer
    return found
