"""Reads and writes sections of the index: each is one script in one slot.

A section is a list of the beginnings of its buckets, and the buckets, all under one hash tag. The sections of a family
are on a list in a slot of its own; a section goes onto it before its first entry, and stays.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis

from store import keys
from store.directory.entries import FAMILIES, IndexEntry, Section, key_of
from store.engine.scripts import Reply, Scripts, Value
from store.errors import wrapped

MOST = 120
"""Entries in a bucket. Below the bound of small lists in every engine, so that they are one block of memory."""
ENTRIES_AT_ONCE = 256
"""Entries in one call, so that it takes the store a few milliseconds."""
CALLS_AT_ONCE = 32
WITHOUT_PAUSE = 5000
"""Entries that are sorted into sections while the loop waits: some milliseconds."""

T = TypeVar("T")
BySection = Mapping[tuple[str, bytes], Sequence[bytes]]


class Buckets(NamedTuple):
    """Neighbouring buckets: the beginning of each, its entries, and the beginning of the next one; empty at the end."""

    starts: list[bytes]
    entries: list[list[bytes]]
    after: bytes


class Sections:
    """The sections of the index. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts
        self.most = MOST

    async def change(self, removed: Iterable[IndexEntry], added: Iterable[IndexEntry]) -> None:
        """Removes and adds entries. A repetition changes nothing."""
        await self.write(await _by_section(removed), await _by_section(added))

    async def write(self, removed: BySection, added: BySection, at_once: int = CALLS_AT_ONCE) -> None:
        """As `change`, with the rests of the entries in lists by section; an entry may be in its list twice. At most
        `at_once` calls run at a time."""
        calls = (
            self._change(Section(*section), out, into)
            for section in {**removed, **added}
            for out, into in _steps(removed.get(section, ()), sorted(added.get(section, ()), key=key_of))
        )
        await in_parallel(calls, at_once)

    async def _change(self, section: Section, removed: Sequence[bytes], added: Sequence[bytes]) -> None:
        named = keys.directory_section(section.family, section.begin.hex())
        out, into = _packed(removed), _packed(added)

        async def run(begin: str) -> Reply:
            return await self._scripts.run(
                "change_section",
                named,
                bucket=named["bucket"],
                removed=out,
                added=into,
                most=self.most,
                begin=begin,
            )

        if (await run("0")).word == "unknown":
            with wrapped():
                await self._client.zadd(keys.directory_family(section.family), {section.begin.hex(): 0})
            await run("1")

    async def read(self, section: Section, key: bytes, most: int) -> Buckets:
        """Reads at most `most` buckets, from the one that has this key."""
        named = keys.directory_section(section.family, section.begin.hex())
        reply = await self._scripts.run("read_section", named, bucket=named["bucket"], key=key, most=most)
        return Buckets(reply.rows("starts"), reply.rows("entries"), reply.raw("after"))

    async def has(self, wanted: Sequence[tuple[Section, Sequence[bytes]]]) -> list[list[bool]]:
        """Whether sections have these entries, given by their rests, in the buckets where a search looks for them. Each
        section is one call; all are sent together."""
        calls: list[tuple[Mapping[str, str], Mapping[str, Value]]] = []
        for section, rests in wanted:
            named = keys.directory_section(section.family, section.begin.hex())
            calls.append((named, {"bucket": named["bucket"], "entries": _packed(rests)}))
        replies = await self._scripts.run_many("find_entries", calls)
        return [[one == 1 for one in reply.rows("found")] for reply in replies]

    async def listed(self, family: str, begin: bytes, after: bytes | None, most: int) -> list[Section]:
        """At most `most` sections of a family whose texts begin like this, in order, behind the section `after`."""
        low = f"[{begin.hex()}" if after is None else f"({after.hex()}"
        high = f"[{begin.hex()}g" if begin else "+"  # g comes after all digits
        with wrapped():
            found: Any = await self._client.zrangebylex(keys.directory_family(family), low, high, 0, most)
        return [Section(family, bytes.fromhex(one.decode())) for one in found]

    async def every(self) -> list[Section]:
        """All sections: at most 65,536 of a family, some hundreds in most languages."""
        found = []
        for family in FAMILIES:
            found += await self.listed(family, b"", None, -1)
        return found


async def in_parallel(calls: Iterable[Awaitable[T]], most: int = CALLS_AT_ONCE) -> list[T]:
    """The answers of the calls, of which at most `most` run at a time. Raises the first error when all have ended."""
    answers: list[T] = []
    waiting: list[Awaitable[T]] = []

    async def run() -> None:
        for answer in await asyncio.gather(*waiting, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            answers.append(answer)
        waiting.clear()

    iterator = iter(calls)
    try:
        for one in iterator:
            waiting.append(one)
            if len(waiting) == most:
                await run()
        await run()
    finally:
        for one in waiting:
            if asyncio.iscoroutine(one):
                one.close()
    return answers


def in_steps(items: Sequence[T], most: int) -> Iterable[Sequence[T]]:
    """A sequence in pieces of at most `most`."""
    return (items[start : start + most] for start in range(0, len(items), most))


async def _by_section(entries: Iterable[IndexEntry]) -> dict[tuple[str, bytes], list[bytes]]:
    found: dict[tuple[str, bytes], list[bytes]] = defaultdict(list)
    for number, (section, rest) in enumerate(entries, 1):
        found[section].append(rest)
        if number % WITHOUT_PAUSE == 0:
            await asyncio.sleep(0)
    return found


def _steps(removed: Sequence[bytes], added: Sequence[bytes]) -> Iterable[tuple[Sequence[bytes], Sequence[bytes]]]:
    for start in range(0, max(len(removed), len(added)), ENTRIES_AT_ONCE):
        end = start + ENTRIES_AT_ONCE
        yield removed[start:end], added[start:end]


def _packed(entries: Sequence[bytes]) -> bytes:
    return b"".join(bytes((len(one),)) + one for one in entries)
