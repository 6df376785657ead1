"""A client that says which scripts a call runs, with which keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from redis.asyncio import Redis

from store.engine.script_source import own_scripts


class Recording:
    """A client that records each script's keys."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self.ran: list[tuple[str, tuple[str, ...], tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def evalsha(self, sha: str, numkeys: int, *words: Any) -> Any:
        self._note(sha, numkeys, words)
        return await self._client.evalsha(sha, numkeys, *words)

    def _note(self, sha: str, count: int, words: Sequence[Any]) -> None:
        name = next(script.name for script in own_scripts().values() if script.sha == sha)
        self.ran.append((name, tuple(words[:count]), tuple(words[count:])))

    async def answers(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        sent = [*commands]
        for _, sha, count, *words in (one for one in sent if one[0] == "EVALSHA"):
            self._note(sha, count, words)
        found: list[Any] = await cast(Any, self._client).answers(sent)
        return found
