"""Checks of one key: is it ours, is its type right, does it end in time, does its owner exist, is its row complete?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from store import keys, parsed_keys
from store.errors import StoreError
from store.fsck import (
    apps,
    credits,
    daily,
    directory,
    external_ids,
    identities,
    lists,
    operators,
    pairs,
    payments,
    people,
    signing,
    webhooks,
)
from store.fsck.context import FsckContext
from store.fsck.forms import matches, wrong_fields
from store.fsck.invariants import Finding, found
from store.fsck.kinds import KINDS, PAIR, SLACK, KeyKind, is_known, lifetime
from store.fsck.reading import Look, Read, Reader, is_wrong_type, row_of
from store.parsed_keys import ParsedKey

Reads = Callable[[ParsedKey], list[Read]]
Judge = Callable[[FsckContext, ParsedKey, str, Look, list[object]], Awaitable[list[Finding]]]
IN_MEMORY = {"trail-active": "set"}
"""Types of keys in the store in memory that differ: it keeps a HyperLogLog as a set."""


class Beyond(NamedTuple):
    """The further check of a kind of key: the reads in the same look, and the judge."""

    reads: Reads
    judge: Judge


BEYOND: dict[str, Beyond] = {
    "user": Beyond(people.reads_of_user, people.judge_user),
    "leaving": Beyond(people.no_reads, people.judge_deletion),
    "undos": Beyond(people.reads_of_undos, people.judge_undos),
    "picture": Beyond(people.reads_of_picture, people.judge_picture),
    "factors": Beyond(people.no_reads, people.judge_factors),
    "passkeys": Beyond(people.no_reads, people.judge_passkeys),
    "recovery": Beyond(people.reads_of_recovery, people.judge_recovery),
    "session": Beyond(people.reads_of_session, people.judge_session),
    "sessions": Beyond(lists.reads_of_zset, lists.judge_sessions),
    "access": Beyond(people.reads_of_access, people.judge_access),
    "users": Beyond(people.no_reads, lists.judge_users),
    "app-users": Beyond(people.no_reads, lists.judge_app_users),
    "all-leaving": Beyond(lists.reads_of_zset, lists.judge_deletion),
    "apps": Beyond(lists.reads_of_zset, lists.judge_owned),
    "teams": Beyond(lists.reads_of_zset, lists.judge_owned),
    "all-apps": Beyond(lists.reads_of_zset, lists.judge_apps),
    "unused-apps": Beyond(lists.reads_of_zset, lists.judge_themselves),
    "used-apps": Beyond(lists.reads_of_zset, lists.judge_themselves),
    "api-apps": Beyond(lists.reads_of_zset, lists.judge_apps_at_api),
    "all-apis": Beyond(lists.reads_of_zset, lists.judge_apis),
    "due": Beyond(lists.reads_of_zset, webhooks.judge_due),
    "delivery": Beyond(webhooks.reads_of_delivery, webhooks.judge_delivery),
    "deliveries": Beyond(lists.reads_of_zset, webhooks.judge_deliveries),
    "deliveries-due": Beyond(lists.reads_of_zset, webhooks.judge_deliveries),
    "deliveries-newest": Beyond(lists.reads_of_zset, webhooks.judge_deliveries),
    "identity": Beyond(people.no_reads, identities.judge_identity),
    "identities": Beyond(people.no_reads, identities.judge_identities),
    "external-id": Beyond(people.no_reads, external_ids.judge_external_id),
    "email": Beyond(people.no_reads, apps.judge_email),
    "directory-section": Beyond(people.no_reads, directory.judge_section),
    "directory-bucket": Beyond(people.no_reads, directory.judge_bucket),
    "registration": Beyond(apps.reads_of_registration, apps.judge_registration),
    "api": Beyond(apps.reads_of_registration, apps.judge_api),
    "days": Beyond(apps.reads_of_app_stats, apps.judge_app_stats),
    "people": Beyond(apps.reads_of_app_stats, apps.judge_app_stats),
    "refusals": Beyond(apps.reads_of_app_stats, apps.judge_app_stats),
    "logo": Beyond(apps.reads_of_logo, apps.judge_logo),
    "keyring": Beyond(people.no_reads, apps.judge_keyring),
    "signing": Beyond(people.no_reads, signing.judge_signing),
    "operator-key": Beyond(operators.reads_of_operator_key, operators.judge_operator_key),
    "role-holders": Beyond(people.no_reads, operators.judge_role_holders),
    "balance": Beyond(people.no_reads, credits.judge_balance),
    "ledger": Beyond(credits.reads_of_ledger, credits.judge_ledger),
    "lease": Beyond(people.no_reads, daily.judge_lease),
    "payments": Beyond(payments.reads_of_payments, payments.judge_payments),
    "holds": Beyond(credits.reads_of_holds, credits.judge_holds),
    "idem": Beyond(credits.reads_of_idem, credits.judge_idem),
    "reply": Beyond(credits.reads_of_reply, credits.judge_reply),
    "replies": Beyond(credits.reads_of_replies, credits.judge_replies),
}
_UNREADABLE = (ValueError, TypeError, OverflowError, LookupError, AttributeError)
"""The errors of reading a number, a name or a row from arbitrary data."""
LISTS = frozenset({"sessions", "holds", "replies", "recovery"})
"""Kinds that are useless without their person, so a repair may remove them."""


async def check(context: FsckContext, raw: bytes) -> list[Finding]:
    """Checks a key and what it represents, whatever its content. Raises StoreUnavailable."""
    key = raw.decode("utf-8", "backslashreplace")
    at = parsed_keys.read(key)
    if at is None or not is_known(at) or key.encode() != raw:
        return [found("key", key, "Latchkey creates no key with this name")]
    try:
        return await _check(context, at, key)
    except _UNREADABLE:
        return [found("row", key, "it or a related key is unreadable")]
    except StoreError as error:
        if not is_wrong_type(error):
            raise
        return [found("row", key, "a related key has another type")]


async def _check(context: FsckContext, at: ParsedKey, key: str) -> list[Finding]:
    kind = KINDS[at.kind]
    reads: list[Read] = [("EXISTS", _of(at, "user"))] if at.user else []
    owner = len(reads)
    if at.kind in PAIR:
        before = PAIR[: PAIR.index(at.kind)]
        reads += [("EXISTS", name) for name in pairs.names(at, before)]
    elif kind.type == "hash":
        reads.append(("HGETALL", key))
    elif kind.value is not None:
        reads.append(("GET", key))
    own, beyond = len(reads), BEYOND.get(at.kind)
    if beyond:
        reads += beyond.reads(at)
    look, leaves = await context.reader.look(key, *reads), False
    if at.user and not look.seen[0] and at.kind != "user":
        # Seldom, so that only then a read asks whether the person is being deleted: again, all at one moment.
        look = await context.reader.look(key, *reads, ("EXISTS", _of(at, "leaving")))
        leaves = bool(look.seen.pop())
    if look.kind == "none":
        return []  # it has ended meanwhile
    if look.kind not in (kind.type, IN_MEMORY.get(at.kind)):
        return [found("type", key, f"it is a {look.kind} but must be a {kind.type}")]
    wrong = _expiry(context.reader, at, key, look)
    if at.user and not look.seen[0] and not leaves:
        wrong += _owner(context.reader, at, key, kind)
    if at.kind in PAIR:
        return wrong + ([] if any(look.seen[owner:own]) else await pairs.check(context, at, key))
    if kind.type == "hash":
        names = wrong_fields(kind, row_of(look.seen[own - 1]))
        wrong += [found("row", key, f"wrong or missing: {' '.join(sorted(names)[:9])}")] if names else []
    elif kind.value is not None and not matches(kind.value, look.seen[own - 1] or b""):
        wrong.append(found("row", key, "the value is malformed"))
    if beyond and (not at.user or look.seen[0] or at.kind == "leaving"):
        wrong += await beyond.judge(context, at, key, look, look.seen[owner:])
    return wrong


def _expiry(reader: Reader, at: ParsedKey, key: str, look: Look) -> list[Finding]:
    lasts = lifetime(at)
    if lasts is None:
        if look.left == -1:
            return []
        mend = reader.mend(key, [(KINDS[at.kind].type, "TYPE", key)], ("PERSIST", key))
        return [found("lasting", key, "it has an expiry and must be permanent", mend)]
    if lasts == 0 or 0 <= look.left <= lasts + SLACK:
        return []
    what = "it never expires" if look.left < 0 else "it expires too late"
    return [found("lifetime", key, what, reader.shorten(key, look, lasts))]


def _of(at: ParsedKey, noun: str) -> str:
    """A fixed key of the person, without the dictionary of all of them."""
    return keys.prefix(at.user) + noun


def _owner(reader: Reader, at: ParsedKey, key: str, kind: KeyKind) -> list[Finding]:
    """The finding for a key without a person."""
    if kind.outlives or at.kind == "user":
        return []
    person = keys.person(at.user)
    mend = None
    if at.kind in LISTS:
        gone = [("0", "EXISTS", person["user"]), ("0", "EXISTS", person["leaving"])]
        mend = reader.mend(key, gone, ("UNLINK", key))
    return [found("owner", key, "there is no such person", mend)]
