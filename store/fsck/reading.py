"""Reads and repairs of a check: each reads or writes one slot at one moment; keys come from SCAN."""

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
    """The result of reads at one moment: the store's time, the key's type, its time left and its end (ms; -1: without
    end), and the answers. The answer for a key of another type is None, as for a missing key."""

    now: int
    kind: str
    left: int
    expires: int
    seen: list[Any]


class Reader:
    """Reads and repairs a store. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def look(self, anchor: str, *reads: Read) -> Look:
        """Runs these reads at one moment, with the type and the expiry of `anchor`; all keys are in its slot."""
        tag = tag_of(anchor)
        reply = await self._scripts.run(
            "inspect_keys", {"anchor": anchor}, tag=tag, reads=_json([_behind(tag, read) for read in reads])
        )
        seen = [answer[1] if answer[0] == 1 else None for answer in reply.rows("seen")]
        return Look(reply.number("now"), reply.text("kind"), reply.number("left"), reply.number("expires"), seen)

    async def look_at_pair(self, user: str, client: str, after: bytes) -> Reply:
        """Reads a (person, app) pair, with a page of the names after `after`."""
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
        """The answer to one command about one key, in any slot."""
        with wrapped():
            return await self._client.execute_command(*words)

    async def size(self) -> int:
        """About how many keys there are."""
        with wrapped():
            return int(await self._client.dbsize())

    async def every_key(self) -> AsyncIterator[list[bytes]]:
        """Yields the keys of every node, in batches; a key that appears or disappears meanwhile may be missing."""
        gathered: list[bytes] = []
        with wrapped():
            async for key in self._client.scan_iter(count=KEYS_AT_ONCE):
                gathered.append(key)
                if len(gathered) == KEYS_AT_ONCE:
                    yield gathered
                    gathered = []
        yield gathered

    def mend(self, anchor: str, expected: Sequence[Expected], *writes: Read) -> Mend:
        """A repair that writes in one step if each read still gives the expected answer; otherwise does nothing."""
        tag = tag_of(anchor)

        async def put_right() -> None:
            await self._scripts.run(
                "mend_keys",
                {"anchor": anchor},
                tag=tag,
                expected=_json([[answer, *_behind(tag, tuple(read))] for answer, *read in expected]),
                writes=_json([_behind(tag, write) for write in writes]),
            )

        return put_right

    def shorten(self, key: str, look: Look, lasts: int) -> Mend:
        """A repair that makes a key end `lasts` (ms) after the look, unless its end has changed since: a reservation
        that became permanent must stay so."""
        return self.mend(
            key, [(str(look.expires), "PEXPIRETIME", key)], ("PEXPIREAT", key, str(look.now + lasts), "LT")
        )


def _behind(tag: str, read: Read) -> list[str]:
    command, key, *arguments = read
    assert key.startswith(tag), f"{command} is about another slot"
    return [command, key.removeprefix(tag), *arguments]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_words(raw: bytes | None) -> str:
    """An answer as text, for a condition; "" for a missing answer, and for bytes that are not text."""
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        return ""


def row_of(flat: Sequence[bytes] | None) -> dict[str, bytes]:
    """Parses an answer to HGETALL."""
    if not flat:
        return {}
    return {name.decode("utf-8", "replace"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def number(row: Mapping[str, bytes], name: str) -> int | None:
    """A field as a whole number; None if the field is missing or something else."""
    raw = row.get(name, b"")
    return int(raw) if raw.removeprefix(b"-").isdigit() else None


def in_steps(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """A sequence in pieces of at most `most`."""
    return [items[start : start + most] for start in range(0, len(items), most)]


def tag_of(key: str) -> str:
    """The hash tag that all keys of this key's slot begin with."""
    return key[: key.index("}") + 1]
