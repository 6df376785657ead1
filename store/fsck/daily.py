"""Checks of daily limits: a person's spending of the day, and the shards' leases of apps' limits."""

from __future__ import annotations

from typing import Any

from store import keys
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, number, row_of
from store.lifetimes import DAY
from store.parsed_keys import ParsedKey


def day_found(
    context: FsckContext, user: str, row: dict[str, bytes], length: int, now: int, charges: list[tuple[int, int]]
) -> list[Finding]:
    """Compares a person's spending of today with the charges of the ledger, by time in ms and amount. It may be less:
    earlier releases did not count it. `row` is the balance, `length` that of the ledger."""
    known, today = keys.credits(user), now // DAY
    if number(row, "spent_day") != today or (number(row, "opening_at") or 0) // DAY >= today:
        return []
    recorded, charged = number(row, "day_spent") or 0, sum(amount for at, amount in charges if at // DAY == today)
    if recorded <= charged:
        return []
    still = [
        (str(recorded), "HGET", known["balance"], "day_spent"),
        (str(today), "HGET", known["balance"], "spent_day"),
        (str(length), "XLEN", known["ledger"]),
    ]
    mend = context.reader.mend(known["balance"], still, ("HSET", known["balance"], "day_spent", str(charged)))
    return [found("day-spending", known["balance"], f"{recorded} is spent today, but {charged} was charged", mend)]


async def judge_lease(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a lease covers what was spent and is held of it."""
    row = row_of(seen[0])
    leased, used = number(row, "leased") or 0, number(row, "spent") or 0
    for name, value in row.items():
        if name not in ("day", "leased", "spent"):
            amount, ends = (int(one) for one in value.split(b" "))
            used += amount if ends > look.now else 0
    if used <= leased:
        return []
    mend = context.reader.mend(key, [(str(leased), "HGET", key, "leased")], ("HSET", key, "leased", str(used)))
    return [found("lease", key, f"{used} is spent or held, but {leased} is leased", mend)]
