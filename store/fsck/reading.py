"""How a check looks at the store: what lies in one slot at one moment, keys by SCAN; and how it mends, likewise."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.engine.scripts import Reply, Scripts
from store.errors import wrapped
from store.fsck.invariants import Mend

KEYS_AT_ONCE = 500
DOCUMENTS_AT_ONCE = 200
PAST_ALL = b"\xff"

Read = tuple[str, ...]
"""A command, a key, and arguments."""
Expected = tuple[str, ...]
"""An answer ("" for none), and the read that gives it."""


class Look(NamedTuple):
    """What was seen at one moment: the store's time and how long the key has left (ms; -1: for ever), its type, and the
    answers. An answer about a key of another type is None, as one about what is not there."""

    now: int
    kind: str
    left: int
    seen: list[Any]


class Reader:
    """Looks and mends. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def look(self, anchor: str, *reads: Read) -> Look:
        """All of these at one moment, with the type and the expiry of `anchor`; all in its slot."""
        tag = keys.tag_of(anchor)
        reply = await self._scripts.run(
            "inspect_keys", {"anchor": anchor}, tag=tag, reads=_json([_behind(tag, read) for read in reads])
        )
        seen = [answer[1] if answer[0] == 1 else None for answer in reply.rows("seen")]
        return Look(reply.number("now"), reply.text("kind"), reply.number("left"), seen)

    async def look_at_pair(self, user: str, client: str, after: bytes) -> Reply:
        """A pair of person and app, with a page of the names after `after`."""
        person = keys.person(user)
        return await self._scripts.run(
            "inspect_documents",
            {
                **keys.hosted(user, client),
                "user": person["user"],
                "leaving": person["leaving"],
                "grant": keys.grant(user, client),
                "app_users": keys.shard_app_users(user[:3], client),
            },
            member=keys.member(user),
            client=client,
            after=after,
            past=PAST_ALL,
            most=DOCUMENTS_AT_ONCE,
        )

    async def command(self, *words: str | int) -> Any:
        """The answer to one command about one key, in whatever slot."""
        with wrapped():
            return await self._client.execute_command(*words)

    async def size(self) -> int:
        """About how many keys there are."""
        with wrapped():
            return int(await self._client.dbsize())

    async def every_key(self) -> AsyncIterator[list[bytes]]:
        """The keys of every node, some at a time; one that comes or goes meanwhile may be left out."""
        gathered: list[bytes] = []
        with wrapped():
            async for key in self._client.scan_iter(count=KEYS_AT_ONCE):
                gathered.append(key)
                if len(gathered) == KEYS_AT_ONCE:
                    yield gathered
                    gathered = []
        yield gathered

    def mend(self, anchor: str, expected: Sequence[Expected], *writes: Read) -> Mend:
        """What writes, in one step, if each of the reads still gives what is expected; else it does nothing."""
        tag = keys.tag_of(anchor)

        async def put_right() -> None:
            await self._scripts.run(
                "mend_keys",
                {"anchor": anchor},
                tag=tag,
                expected=_json([[answer, *_behind(tag, tuple(read))] for answer, *read in expected]),
                writes=_json([_behind(tag, write) for write in writes]),
            )

        return put_right


def _behind(tag: str, read: Read) -> list[str]:
    command, key, *arguments = read
    assert key.startswith(tag), f"{command} is about another slot"
    return [command, key.removeprefix(tag), *arguments]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_words(raw: bytes | None) -> str:
    """What was read, as text that a condition can name; "" for nothing, and for what is no text."""
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        return ""


def row_of(flat: Sequence[bytes] | None) -> dict[str, bytes]:
    """The answer to HGETALL."""
    if not flat:
        return {}
    return {name.decode("utf-8", "replace"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def number(row: Mapping[str, bytes], name: str) -> int | None:
    """A field that is a whole number; None where it is not there or is none."""
    raw = row.get(name, b"")
    return int(raw) if raw.removeprefix(b"-").isdigit() else None


def in_steps(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """A sequence in pieces."""
    return [items[start : start + most] for start in range(0, len(items), most)]
