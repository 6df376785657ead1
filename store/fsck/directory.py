"""Checks of the index of people: that everybody is in it, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from store import keys
from store.directory.entries import ID_BYTES, IndexEntry, Section, entries_of, key_of, user_of
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, in_words
from store.parsed_keys import ParsedKey


async def missing(context: FsckContext, user: str, key: str, row: Mapping[str, bytes]) -> list[Finding]:
    """Finds entries of a person that the index lacks, unless the relay has yet to write them."""
    lacking = 0
    for entry in await _said(context, user, row):
        buckets = await context.directory.sections.read(entry.section, entry.key, 1)
        lacking += not any(entry.rest in bucket for bucket in buckets.entries)
    if not lacking or not context.is_sure(key) or await _is_noted(context, user):
        return []

    async def enter() -> None:
        await context.directory.repeat([user])

    return [found("directory", key, f"{lacking} of the person's entries in the index of people are missing", enter)]


async def judge_section(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a section is on the list of its family."""
    family = keys.directory_family(at.name)
    listed = await context.reader.command("ZSCORE", family, at.rest)
    if listed is not None or not context.is_sure(key):
        return []

    async def enter() -> None:
        await context.reader.command("ZADD", family, 0, at.rest)

    return [found("directory-bucket", key, "the section is not on the list of its family", enter)]


async def judge_bucket(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a bucket is in its section, and its entries: each once, in this bucket, and as a row says."""
    begin, _, start = at.rest.partition("}:")
    section, start_of = Section(at.name, bytes.fromhex(begin)), bytes.fromhex(start)
    near = await context.directory.sections.read(section, start_of, 1)
    rests: list[bytes] = await context.reader.command("LRANGE", key, 0, -1)
    if near.starts != [start_of]:
        return [_lost(context, key, rests)] if context.is_sure(key) else []
    # One by one: keys are checked many at once, and each read takes a connection.
    said = [await _entries(context, rest) for rest in rests]
    count = Counter(rests)
    wrong = []
    for rest, implied in zip(rests, said, strict=True):
        place = key_of(rest)
        astray = place < start_of or (near.after and place >= near.after)
        if count[rest] > 1 or astray:
            what = "is in the wrong bucket" if astray else "is there more than once"
        elif IndexEntry(section, rest) not in implied:
            what = "is not what a row says"
        else:
            continue
        if context.is_sure(key) and (astray or count[rest] > 1 or not await _is_noted(context, user_of(rest))):
            wrong.append(_left(context, key, rest, what))
    return wrong


async def _entries(context: FsckContext, rest: bytes) -> set[IndexEntry]:
    if len(rest) < ID_BYTES:
        return set()
    user = user_of(rest)
    names = ("status", "email", "name")
    row = await context.reader.command("HMGET", keys.person(user)["user"], *names)
    return await _said(context, user, {name: value for name, value in zip(names, row, strict=True) if value})


async def _said(context: FsckContext, user: str, row: Mapping[str, bytes]) -> set[IndexEntry]:
    if "status" not in row:
        return set()
    return entries_of(user, in_words(row.get("email")), in_words(row.get("name")))


async def _is_noted(context: FsckContext, user: str) -> bool:
    """Whether the relay has yet to write about a person."""
    changed = keys.changed(user)["changed"]
    if await context.reader.command("HEXISTS", changed, keys.member(user)):
        return True
    return bool(await context.reader.command("EXISTS", keys.DIRECTORY_REBUILD))


def _left(context: FsckContext, key: str, rest: bytes, what: str) -> Finding:
    """A wrong entry; the key of its person, if it has one, names it."""
    user = user_of(rest) if len(rest) >= ID_BYTES else ""

    async def remove() -> None:
        # The command takes all of several, so the person is compared once more.
        client_key: Any = rest
        await context.reader.command("LREM", key, 0, client_key)
        if user:
            await context.directory.repeat([user])

    return found("directory-left", key, f"an entry of {user or 'nobody'} {what}", remove)


def _lost(context: FsckContext, key: str, rests: list[bytes]) -> Finding:
    users = {user_of(rest) for rest in rests if len(rest) >= ID_BYTES}

    async def remove() -> None:
        await context.reader.command("UNLINK", key)
        await context.directory.repeat(users)

    return found("directory-bucket", key, f"no section has this bucket, with {len(rests)} entries", remove)
