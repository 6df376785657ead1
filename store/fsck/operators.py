"""Checks of operator keys and of the roles of people."""

from __future__ import annotations

import re
from typing import Any

from store import keys
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, Read, in_words, row_of
from store.parsed_keys import ParsedKey

_ROW = re.compile(r"(?:admin|support|auditor) [0-9]{1,19} .+")


def reads_of_operator_key(at: ParsedKey) -> list[Read]:
    """Reads whether the key is listed."""
    return [("ZSCORE", keys.operator_key(at.name)["all"], at.name)]


async def judge_operator_key(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]
) -> list[Finding]:
    """Checks that a key is on the list: nobody could revoke another one."""
    if seen[1] is not None:
        return []
    made_at = in_words(row_of(seen[0]).get("made_at")) or "0"
    mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZADD", keys.operator_key("")["all"], made_at, at.name))
    return [found("operator-key", key, "the list lacks it", mend)]


async def judge_role_holders(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]
) -> list[Finding]:
    """Checks that people with a role exist."""
    wrong = []
    for user, row in row_of(seen[0]).items():
        if not _ROW.fullmatch(in_words(row)):
            wrong.append(found("row", key, f"the role of {user} is malformed"))
        there: Any = await context.reader.command("HEXISTS", keys.person(user)["user"], "status")
        if not there and context.is_sure(key):
            mend = context.reader.mend(key, [("1", "HEXISTS", key, user)], ("HDEL", key, user))
            wrong.append(found("role-left", key, f"there is no person {user}", mend))
    return wrong
