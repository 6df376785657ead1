"""Checks of the ids that an outside directory gave people: the index, and each person's row."""

from __future__ import annotations

import re
from typing import Any

from store import keys
from store.accounts.external_ids import check_external_id, key_of, name_of
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.kinds import SLACK
from store.fsck.reading import Look, in_words
from store.lifetimes import EMAIL_RESERVATION
from store.parsed_keys import ParsedKey


async def judge_external_id(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]
) -> list[Finding]:
    """Checks that an entry ends in a minute, or is in its person's row."""
    user = in_words(seen[0])
    if 0 <= look.left <= EMAIL_RESERVATION + SLACK:
        return []
    if look.left >= 0:
        return [found("lifetime", key, "it expires too late", context.reader.shorten(key, look, EMAIL_RESERVATION))]
    if not re.fullmatch(r"[0-9a-f]{32}", user):
        return []
    person = keys.person(user)
    theirs = await context.reader.look(
        person["user"], ("HGET", person["user"], "external_id"), ("EXISTS", person["leaving"])
    )
    # The last step of a deletion releases the entry.
    if name_of(in_words(theirs.seen[0])) == at.name or theirs.seen[1] or not context.is_sure(key):
        return []

    async def free() -> None:
        await context.identities.external.free_stale(at.name)

    return [found("external-id-left", key, f"the row of {user} has another id or does not exist", free)]


async def missing(context: FsckContext, user: str, key: str, external_id: str) -> list[Finding]:
    """Checks that the id in a person's row is valid, and leads to the person."""
    if not external_id:
        return []
    try:
        check_external_id(external_id)
    except ValueError:
        return [found("row", key, "external_id is malformed")]
    entry = key_of(name_of(external_id))
    look = await context.reader.look(entry, ("GET", entry))
    if (in_words(look.seen[0]) == user and look.left == -1) or not context.is_sure(key):
        return []

    async def enter() -> None:
        if await context.identities.external.reserve(external_id, user):
            await context.identities.external.keep(external_id, user)

    return [found("external-id", key, "the id from an outside directory leads elsewhere", enter)]
