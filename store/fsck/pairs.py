"""Checks of a (person, app) pair: the grant, the lists that name it, and the expiry of grant and hosted data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from store import keys
from store.engine.scripts import Reply
from store.fsck import documents, webhooks
from store.fsck.context import FsckContext
from store.fsck.forms import wrong_fields
from store.fsck.invariants import Finding, found
from store.fsck.kinds import KINDS, MOST_REMEMBERED, REMEMBERED, SLACK
from store.fsck.pair import Pair, rows_of
from store.fsck.reading import Expected, number, row_of
from store.lifetimes import DAY, GRACE
from store.parsed_keys import ParsedKey

TRIES = 5


def names(at: ParsedKey, nouns: Sequence[str]) -> list[str]:
    """The keys of a pair, for these nouns."""
    named = {**keys.hosted(at.user, at.client), "grant": keys.grant(at.user, at.client)}
    return [named[noun] for noun in nouns]


async def check(context: FsckContext, at: ParsedKey, key: str) -> list[Finding]:
    """Checks everything about a pair. Raises StoreUnavailable."""
    pair = await read(context, at.user, at.client)
    if pair is None:
        return []
    if not pair.person[0]:
        return []  # being deleted; without a person at all, each key has its own finding
    wrong: list[Finding] = []
    if pair.grant:
        names_wrong = wrong_fields(KINDS["grant"], pair.grant)
        if names_wrong:
            wrong.append(found("row", key, f"wrong or missing: {' '.join(sorted(names_wrong)[:9])}"))
        wrong += _remembered(pair, key)
        wrong += _members(context, pair, key) + _grace(context, pair, key)
        wrong += await webhooks.missing(context, at.user, at.client, key) if "revoked_at" in pair.grant else []
        if not context.last and "revoked_at" not in pair.grant:
            context.connected[at.client] += 1
        if not await context.is_registered(at.client) and context.is_sure(key):
            what = f"the app {at.client} is not registered: app delete {at.client} --purge removes its leftovers"
            wrong.append(found("app", key, what))
    elif max(pair.lefts.values()) >= webhooks.TOGETHER or -1 in pair.lefts.values():
        wrong.append(found("granted", key, "there is no grant"))
    context.documents += 0 if context.last else len(pair.rows)
    return wrong + await documents.judge(context, pair)


async def read(context: FsckContext, user: str, client: str) -> Pair | None:
    """The pair at one moment; None if a key has the wrong type, which has its own finding, and if the pair kept
    changing."""
    for _ in range(TRIES):
        first = await context.reader.look_at_pair(user, client, b"")
        if first.word == "wrong_type":
            return None
        pair = _pair(user, client, first)
        if await _rest(context, pair, first):
            return pair
    context.busy += 1
    return None


async def _rest(context: FsckContext, pair: Pair, reply: Reply) -> bool:
    """Reads the remaining pages; returns whether nothing has changed meanwhile."""
    while reply.number("more") == 1:
        reply = await context.reader.look_at_pair(pair.user, pair.client, reply.rows("rows")[-1][0])
        if reply.word == "wrong_type" or _pair(pair.user, pair.client, reply).stamp != pair.stamp:
            return False
        pair.rows |= rows_of(reply)
    return await documents.add_unnamed(context, pair)


def _pair(user: str, client: str, reply: Reply) -> Pair:
    lefts = dict(zip(("grant", "docs", "meta", "index", "usage"), reply.rows("lefts"), strict=True))
    return Pair(
        user,
        client,
        reply.number("now"),
        lefts,
        row_of(reply.rows("given")),
        tuple(bool(one) for one in reply.rows("person")),
        tuple(reply.rows("counts")),
        row_of(reply.rows("fields")),
        rows_of(reply),
    )


def _members(context: FsckContext, pair: Pair, key: str) -> list[Finding]:
    """Checks that the person's row and the list of the shard name the app."""
    _, _, named, listed = pair.person
    user, grant = keys.person(pair.user)["user"], pair.named["grant"]
    still: list[Expected] = [("1", "EXISTS", grant), ("1", "EXISTS", user)]
    wrong = []
    if not named:
        mend = context.reader.mend(key, still, ("HSET", user, f"app:{pair.client}", "1"))
        wrong.append(found("connected", key, "the person's row lacks the app", mend))
    if not listed:
        write = ("SADD", keys.shard_app_users(pair.user[:3], pair.client), keys.member(pair.user))
        wrong.append(
            found("connected", key, "the list of the shard lacks the person", context.reader.mend(key, still, write))
        )
    return wrong


def _remembered(pair: Pair, key: str) -> list[Finding]:
    """Checks that consent is remembered for a few redirect URIs, each with scopes."""
    values = [value for name, value in pair.grant.items() if name.startswith("to:")]
    if len(values) <= MOST_REMEMBERED and all(re.fullmatch(REMEMBERED, value) for value in values):
        return []
    return [found("row", key, "the remembered redirect URIs are malformed or too many")]


def _grace(context: FsckContext, pair: Pair, key: str) -> list[Finding]:
    """Checks that a live grant and its data have no expiry, and that a revoked grant and its data end together."""
    wrong, named, grant = [], pair.named, pair.named["grant"]
    if "revoked_at" not in pair.grant:
        live = ("0", "HEXISTS", grant, "revoked_at")
        for noun, left in pair.lefts.items():
            if left >= 0:
                mend = context.reader.mend(grant, [live, ("1", "EXISTS", grant)], ("PERSIST", named[noun]))
                wrong.append(found("grace", key, f"{noun} has an expiry, but the grant is live", mend))
        return wrong
    revoked_at = number(pair.grant, "revoked_at")
    if revoked_at is None:
        return []  # reported as a malformed row
    left, until = pair.lefts["grant"], max(revoked_at + GRACE, pair.now + DAY)
    still: list[Expected] = [(str(revoked_at), "HGET", grant, "revoked_at")]
    if left < 0 or left > GRACE + SLACK:
        writes = [("PEXPIREAT", name, str(until)) for name in named.values()]
        wrong.append(
            found(
                "grace",
                key,
                "the grant is revoked but does not expire in time",
                context.reader.mend(grant, still, *writes),
            )
        )
        return wrong
    until = pair.now + left
    for noun, its in pair.lefts.items():
        if its != -2 and abs(its - left) > webhooks.TOGETHER:
            mend = context.reader.mend(grant, still, ("PEXPIREAT", named[noun], str(until)))
            wrong.append(found("grace", key, f"{noun} does not expire with the revoked grant", mend))
    return wrong
