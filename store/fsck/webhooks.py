"""Checks of webhooks: the due list against the grants, and deliveries against their lists."""

from __future__ import annotations

import re

from store import keys
from store.fsck.context import FsckContext
from store.fsck.forms import wrong_fields
from store.fsck.invariants import Finding, found
from store.fsck.kinds import KINDS
from store.fsck.lists import AT_ONCE, members_of
from store.fsck.reading import Expected, Look, Read, in_steps, in_words, row_of
from store.lifetimes import DELIVERY
from store.parsed_keys import ParsedKey

TOGETHER = 1000
"""The tolerance in ms for keys that end together: an engine reports the time left only to the millisecond."""
_ENTRY = re.compile(r"([0-9a-f]{29}):([A-Za-z0-9_-]{1,64})")


async def judge_due(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[object]) -> list[Finding]:
    """Checks that each entry of the due list has documents that end at its time. The next sweep handles past ones."""
    wrong = []
    for some in in_steps(await members_of(context, key), AT_ONCE):
        entries = [_ENTRY.fullmatch(in_words(one)) for one, _ in some]
        if not all(entries):
            gone = [(key, in_words(one)) for (one, _), entry in zip(some, entries, strict=True) if not entry]
            mend = context.reader.mend(key, [], *(("ZREM", *one) for one in gone))
            wrong.append(found("due", key, f"{len(gone)} entries name no person and app", mend))
        pairs = [(entry[0], at.shard + entry[1], entry[2]) for entry in entries if entry]
        reads: list[Read] = []
        for entry, user, client in pairs:
            docs, grant = keys.hosted(user, client)["docs"], keys.grant(user, client)
            reads += [("PTTL", docs), ("HEXISTS", grant, "revoked_at"), ("ZSCORE", key, entry)]
        now = await context.reader.look(key, *reads)
        for place, (entry, user, client) in enumerate(pairs):
            left, revoked, score = now.seen[3 * place : 3 * place + 3]
            # The check of the grant repairs revoked documents that do not end.
            if score is not None and float(score) > now.now and not (left == -1 and revoked):
                due_at = float(score)
                wrong += _due(context, key, entry, keys.hosted(user, client)["docs"], left, due_at, now.now)
    return wrong


def _due(context: FsckContext, key: str, entry: str, docs: str, left: int, due_at: float, now: int) -> list[Finding]:
    if left == -2:
        mend = context.reader.mend(key, [("0", "EXISTS", docs)], ("ZREM", key, entry))
        return [found("due", key, f"{entry}: there is no data that could expire", mend)]
    if left == -1:
        mend = context.reader.mend(key, [("-1", "PTTL", docs)], ("ZREM", key, entry))
        return [found("due", key, f"{entry}: the documents have no expiry", mend)]
    if abs(due_at - now - left) <= TOGETHER:
        return []
    mend = context.reader.mend(key, [("1", "EXISTS", docs)], ("ZADD", key, "XX", str(now + left), entry))
    return [found("due", key, f"{entry}: the documents expire at another time", mend)]


async def missing(context: FsckContext, user: str, client: str, key: str) -> list[Finding]:
    """Checks that a revoked pair with documents is in the due list."""
    named, grant = keys.hosted(user, client), keys.grant(user, client)
    due, entry = keys.outbox_keys(user[:3])["due"], f"{keys.member(user)}:{client}"
    look = await context.reader.look(
        grant, ("HGET", grant, "revoked_at"), ("PTTL", named["docs"]), ("ZSCORE", due, entry)
    )
    revoked_at, left, score = look.seen
    if not revoked_at or left is None or left < 0 or score is not None:
        return []
    still: list[Expected] = [("1", "EXISTS", named["docs"]), (in_words(revoked_at), "HGET", grant, "revoked_at")]
    mend = context.reader.mend(grant, still, ("ZADD", due, "NX", str(look.now + left), entry))
    return [found("due", key, "the end of the documents is not on the due list", mend)]


def reads_of_delivery(at: ParsedKey) -> list[Read]:
    """Reads when the delivery is due."""
    return [("ZSCORE", keys.DELIVERIES_DUE, at.name)]


async def judge_delivery(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[object]
) -> list[Finding]:
    """Checks that a delivery is in its app's list and, if it waits, in the due list."""
    row, score = row_of(seen[0]), seen[-1]  # type: ignore[arg-type]  # the answer to HGETALL
    if wrong_fields(KINDS["delivery"], row):
        return []  # reported as a malformed row
    client, wrong = in_words(row["client"]), []
    listed = keys.deliveries(client)["listed"]
    theirs = await context.reader.look(key, ("ZSCORE", listed, at.name), ("EXISTS", key))
    if theirs.seen == [None, 1]:
        writes = [("ZADD", listed, "NX", str(look.now), at.name), ("PEXPIREAT", listed, str(look.now + DELIVERY))]
        mend = context.reader.mend(key, [(client, "HGET", key, "client")], *writes)
        wrong.append(found("delivery", key, "its app's list lacks it", mend))
    if row.get("state") == b"pending" and score is None:
        mend = context.reader.mend(
            key, [("pending", "HGET", key, "state")], ("ZADD", keys.DELIVERIES_DUE, "NX", str(look.now), at.name)
        )
        wrong.append(found("delivery", key, "it waits but is never due", mend))
    return wrong


ANY_APP = "*"
_EXPECTED = {"deliveries-due": ("state", "pending"), "deliveries-newest": ("client", ANY_APP)}


async def judge_deliveries(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[object]
) -> list[Finding]:
    """Checks that due or listed entries are deliveries: of the list's app, waiting ones in the due list, any among the
    newest."""
    wrong = []
    for some in in_steps(await members_of(context, key), AT_ONCE):
        ids = [in_words(one) for one, _ in some]
        about, expected = _EXPECTED.get(at.kind, ("client", at.client))
        reads: list[Read] = [("HGET", keys.DELIVERY_PREFIX + one, about) for one in ids]
        there = (await context.reader.look(key, *reads, *(("ZSCORE", key, one) for one in ids))).seen
        for place, one in enumerate(ids):
            recorded, listed = in_words(there[place]), there[len(ids) + place]
            if listed is not None and (recorded == "" if expected == ANY_APP else recorded != expected):
                mend = context.reader.mend(key, [(recorded, *reads[place])], ("ZREM", key, one))
                wrong.append(found("delivery-left", key, f"{one} is no delivery of this list", mend))
    return wrong
