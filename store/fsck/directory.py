"""Checks of the index of people: that everybody is in it, and nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from store import keys
from store.directory.entries import (
    ID_BYTES,
    IndexEntry,
    Section,
    add_entries,
    entries_of,
    is_entry_of,
    key_of,
    user_of,
)
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, in_steps, in_words
from store.parsed_keys import ParsedKey

PEOPLE_AT_ONCE = 5000
"""People whose entries are looked up together, by section."""
ENTRIES_AT_ONCE, CALLS_AT_ONCE = 32, 8
"""Entries in a call and calls together: they take the store about a millisecond."""


async def missing(context: FsckContext, user: str, key: str, row: Mapping[str, bytes]) -> list[Finding]:
    """Finds entries of a person that the index lacks, unless the relay has yet to write them. The first look at a
    person only notes what the index must have."""
    if not context.last:
        if "status" in row and (email := in_words(row.get("email"))):
            add_entries(context.expected, user, email, in_words(row.get("name")))
            context.expecting += 1
        return []
    entries = _said(user, row)
    there = await context.directory.sections.has([(entry.section, [entry.rest]) for entry in entries])
    lacking = sum(not one for [one] in there)
    if not lacking or await _is_noted(context, user):
        return []

    async def enter() -> None:
        await context.directory.repeat([user])

    return [found("directory", key, f"{lacking} of the person's entries in the index of people are missing", enter)]


async def look_up(context: FsckContext) -> None:
    """Looks up the noted entries, all of a section together. People without one are checked again at the end."""
    expected, context.expected, context.expecting = context.expected, defaultdict(list), 0
    calls = [(Section(*begin), some) for begin, rests in expected.items() for some in in_steps(rests, ENTRIES_AT_ONCE)]
    for few in in_steps(calls, CALLS_AT_ONCE):
        for (_, rests), there in zip(few, await context.directory.sections.has(few), strict=True):
            for rest, has in zip(rests, there, strict=True):
                if not has:
                    context.unsure[keys.person(user_of(rest))["user"]] = None


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
    if near.starts != [start_of]:
        rests: list[bytes] = await context.reader.command("LRANGE", key, 0, -1)
        return [_lost(context, key, rests)] if context.is_sure(key) else []
    [rests] = near.entries
    rows = await _rows(context, rests)
    count = Counter(rests)
    wrong = []
    for rest, row in zip(rests, rows, strict=True):
        place = key_of(rest)
        astray = place < start_of or (near.after and place >= near.after)
        if count[rest] > 1 or astray:
            what = "is in the wrong bucket" if astray else "is there more than once"
        elif not _is_said(IndexEntry(section, rest), row):
            what = "is not what a row says"
        else:
            continue
        if context.is_sure(key) and (astray or count[rest] > 1 or not await _is_noted(context, user_of(rest))):
            wrong.append(_left(context, key, rest, what))
    return wrong


async def _rows(context: FsckContext, rests: Sequence[bytes]) -> list[tuple[bytes | None, ...]]:
    """Status, address and name of the people of these entries."""
    reads = [("HMGET", keys.token(user_of(rest), "", "", 0)["user"], "status", "email", "name") for rest in rests]
    return [tuple(row or (None, None, None)) for row in await context.reader.commands(reads)]


def _is_said(entry: IndexEntry, row: tuple[bytes | None, ...]) -> bool:
    """Whether a row implies an entry."""
    status, email, name = row
    if not status or len(entry.rest) < ID_BYTES:
        return False
    return is_entry_of(entry, user_of(entry.rest), in_words(email), in_words(name))


def _said(user: str, row: Mapping[str, bytes]) -> set[IndexEntry]:
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
        await context.reader.command("LREM", key, 0, rest)
        if user:
            await context.directory.repeat([user])

    return found("directory-left", key, f"an entry of {user or 'nobody'} {what}", remove)


def _lost(context: FsckContext, key: str, rests: list[bytes]) -> Finding:
    users = {user_of(rest) for rest in rests if len(rest) >= ID_BYTES}

    async def remove() -> None:
        await context.reader.command("UNLINK", key)
        await context.directory.repeat(users)

    return found("directory-bucket", key, f"no section has this bucket, with {len(rests)} entries", remove)
