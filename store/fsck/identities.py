"""Checks of people's identities at other servers: the index, and each person's list."""

from __future__ import annotations

import re
from typing import Any

from store import keys
from store.accounts.identities import UpstreamIdentity, check_identity, identity_of
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, Mend, found
from store.fsck.kinds import SLACK
from store.fsck.people import is_new
from store.fsck.reading import Look, in_words, row_of
from store.lifetimes import EMAIL_RESERVATION
from store.parsed_keys import ParsedKey


async def judge_identity(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that an entry ends in a minute, or is in its person's list."""
    user = in_words(seen[0])
    if 0 <= look.left <= EMAIL_RESERVATION + SLACK:
        return []
    if look.left >= 0:
        return [found("lifetime", key, "it expires too late", context.reader.shorten(key, look, EMAIL_RESERVATION))]
    if not re.fullmatch(r"[0-9a-f]{32}", user):
        return []
    person = keys.person(user)
    listed = ("HEXISTS", person["identities"], at.name)
    theirs = await context.reader.look(person["identities"], listed, ("EXISTS", person["leaving"]))
    # The last step of a deletion releases the entry.
    if any(theirs.seen) or not context.is_sure(key):
        return []

    async def free() -> None:
        await context.identities.free_stale(at.name)

    return [found("identity-left", key, f"the list of {user} does not have it", free)]


async def judge_identities(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that each identity is readable, has its own name, and leads to the person."""
    wrong = []
    for name, value in row_of(seen[0]).items():
        try:
            identity = check_identity(*identity_of(value))
        except ValueError:
            identity = None
        if identity is None or identity.name != name:
            wrong.append(found("row", key, f"{name} is malformed"))
            continue
        entry = await context.reader.look(keys.identity(name), ("GET", keys.identity(name)))
        if in_words(entry.seen[0]) == at.user and entry.left == -1:
            continue
        if context.is_sure(key):
            begun = await is_new(context, at.user, keys.person(at.user)["user"])
            kind = "identity-begun" if begun else "identity"
            wrong.append(found(kind, key, f"{name} leads elsewhere", _enter(context, identity, at.user)))
    return wrong


def _enter(context: FsckContext, identity: UpstreamIdentity, user: str) -> Mend:
    async def enter() -> None:
        if await context.identities.reserve(identity, user):
            await context.identities.keep(identity, user)

    return enter
