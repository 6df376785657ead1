"""Checks of a person's credits: balance, ledger, holds, spending by app, idempotency keys and kept replies."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from store import keys, moments
from store.errors import StoreError
from store.fsck.budgets import BUDGET_FIELDS, CountedCharge, budgets_found, row_of_budgets
from store.fsck.context import FsckContext
from store.fsck.daily import day_found
from store.fsck.delegated import delegated_found
from store.fsck.invariants import Finding, found
from store.fsck.kinds import HOLD_MOST, SLACK
from store.fsck.reading import Expected, Look, Read, in_steps, in_words, number, row_of
from store.lifetimes import AI_REPLY
from store.parsed_keys import ParsedKey

ENTRIES_AT_ONCE = 250
AT_ONCE = 100
KINDS_OF_ENTRY = ("grant", "charge", "purchase", "reversal")
TRIES = 5
_HOLD = re.compile(rb"(s?)([0-9]+) ([0-9]+) (\S*)(?: [A-Za-z0-9_-]{2,22})*")


@dataclass(slots=True)
class Books:
    """A ledger and its balance, read at one moment. `charged`: by app, in the month of `now`; `since`: the same charges
    with their times; `counted`: all charges, with what they count for."""

    now: int
    balance: dict[str, bytes]
    length: int
    apps: list[str]
    total: int = 0
    wrong: str = ""
    charged: Counter[str] = field(default_factory=Counter)
    since: list[tuple[str, int, int]] = field(default_factory=list)
    counted: list[CountedCharge] = field(default_factory=list)

    def same(self, user: str) -> list[Expected]:
        """What says that the books have not changed."""
        known, paid = keys.credits(user), in_words(self.balance.get("paid"))
        return [(str(self.length), "XLEN", known["ledger"]), (paid, "HGET", known["balance"], "paid")]


async def judge_balance(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks the balance entry by entry, and the spending of apps."""
    for _ in range(TRIES):
        books = await _read(context, at.user)
        if books is not None:
            break
    else:
        context.busy += 1
        return []
    if books.wrong:
        return [found("balance", key, books.wrong)]
    paid = number(books.balance, "paid")
    if paid is not None and paid != books.total:
        return [found("balance", key, f"it is {paid}, but opening balance and ledger make {books.total}")]
    return await _spending(context, at.user, books)


async def _read(context: FsckContext, user: str) -> Books | None:
    """Reads the books in pieces; None if they changed meanwhile."""
    known, books, stamp = keys.credits(user), None, None
    after = "-"
    while True:
        look = await context.reader.look(
            known["balance"],
            ("HGETALL", known["balance"]),
            ("XLEN", known["ledger"]),
            ("XRANGE", known["ledger"], "-", "+", "COUNT", "1"),
            ("XREVRANGE", known["ledger"], "+", "-", "COUNT", "1"),
            ("XRANGE", known["ledger"], after, "+", "COUNT", str(ENTRIES_AT_ONCE)),
            ("HKEYS", keys.person(user)["user"]),
        )
        row, length, oldest, newest, entries, fields = look.seen
        this = (length, oldest, newest)
        if books is None:
            apps = [in_words(name)[4:] for name in fields or [] if name.startswith(b"app:")]
            books, stamp = Books(look.now, row_of(row), length or 0, apps), this
            books.total = number(books.balance, "opening") or 0
        if this != stamp:
            return None
        for entry in entries or []:
            _add(books, entry[0], row_of(entry[1]))
        if len(entries or []) < ENTRIES_AT_ONCE:
            return books
        after = "(" + in_words(entries[-1][0])


def _add(books: Books, entry_id: bytes, entry: dict[str, bytes]) -> None:
    amount, paid = number(entry, "amount"), number(entry, "paid")
    kind = in_words(entry.get("kind"))
    if amount is None or paid is None or kind not in KINDS_OF_ENTRY:
        books.wrong = books.wrong or f"the entry {in_words(entry_id)} is malformed"
        return
    books.total += amount
    if paid != books.total:
        books.wrong = books.wrong or f"after the entry {in_words(entry_id)} it says {paid}, but is {books.total}"
    at = int(entry_id.partition(b"-")[0])
    client = in_words(entry.get("client"))
    if kind == "charge":
        counters = tuple(in_words(entry.get("counts")).split())
        books.counted.append(CountedCharge(client, at, -amount, counters, f"m{month_of(at)}"))
    if kind == "charge" and month_of(at) == month_of(books.now):
        books.charged[client] -= amount
        books.since.append((client, at, -amount))


async def _spending(context: FsckContext, user: str, books: Books) -> list[Finding]:
    """Compares the grants' spending of this month with the month's charges in the ledger."""
    wrong, known = [], keys.credits(user)
    month = month_of(books.now)
    whole = month_of(number(books.balance, "opening_at") or 0) != month
    for client in sorted({*books.charged, *books.apps}):
        if not client:
            continue
        grant = keys.grant(user, client)
        look = await context.reader.look(
            grant, ("HMGET", grant, "spend_month", "spent", "connected_at", *BUDGET_FIELDS),
            ("XLEN", known["ledger"]), ("HGET", known["balance"], "paid"),
        )  # fmt: skip
        if look.kind != "hash" or look.seen[1] != books.length or look.seen[2] != books.balance.get("paid"):
            continue  # charged meanwhile, or without a grant
        same = books.same(user)
        booked, spent, connected = (in_words(one) for one in look.seen[0][:3])
        folded, budgets = number(books.balance, "opening_at") or 0, row_of_budgets(look.seen[0][3:])
        since = int(connected or 0)
        wrong += budgets_found(context, user, client, budgets, books.counted, since, folded, f"m{month}", same)
        if booked.isdigit() and int(booked) > month:
            continue  # the clock stepped back over the end of a month
        recorded = int(spent) if spent.isdigit() and booked == str(month) else 0
        # Charges before the connection may belong to an older grant, or to none.
        least = sum(amount for one, at, amount in books.since if one == client and at >= since)
        if least <= recorded and (recorded <= books.charged[client] or not whole):
            continue
        still = [(spent, "HGET", grant, "spent"), *same]
        sum_up = ("HSET", grant, "spend_month", str(month), "spent", str(books.charged[client]))
        what = f"the app {client} has spent {recorded} this month, but was charged {books.charged[client]}"
        wrong.append(found("spending", grant, what, context.reader.mend(grant, still, sum_up)))
    folded = number(books.balance, "opening_at") or 0
    wrong += await delegated_found(context, user, books.apps, books.counted, folded, books.now, books.same(user))
    charges = [(at, amount) for _, at, amount in books.since]
    return wrong + day_found(context, user, books.balance, books.length, books.now, charges)


def month_of(ms: int) -> int:
    """The number of a month (UTC), as in lua/include/spending.lua: years begin in March."""
    day = moments.at(ms)
    return (day.year - (day.month < 3)) * 12 + (day.month - 3) % 12


def reads_of_ledger(at: ParsedKey) -> list[Read]:
    """Reads whether there is a balance."""
    return [("EXISTS", keys.credits(at.user)["balance"])]


async def judge_ledger(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a ledger has a balance; the balance's check does the rest."""
    return [] if seen[0] else [found("balance", key, "there is a ledger but no balance")]


def reads_of_holds(at: ParsedKey) -> list[Read]:
    """Reads the balance that covers the holds."""
    return [("HMGET", keys.credits(at.user)["balance"], "paid", "reversed")]


async def judge_holds(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that each hold is well formed and ends, and that the balance covered the open ones before payments were
    reversed."""
    wrong: list[Finding] = []
    held, last = 0, 0
    for name, raw in row_of(seen[0]).items():
        match, value = _HOLD.fullmatch(raw), in_words(raw)
        if match is None or int(match[3]) > look.now + HOLD_MOST + SLACK:
            still = [(value, "HGET", key, name)]
            mend = context.reader.mend(key, still, ("HDEL", key, name)) if value else None
            what = "is malformed" if match is None else "does not end within a day"
            wrong.append(found("holds", key, f"the hold {name} {what}", mend))
            continue
        last = max(last, int(match[3]))
        held += int(match[2]) if not match[1] and int(match[3]) > look.now else 0
    if wrong:
        return wrong
    # An engine reports the time left only to the millisecond.
    if look.left < 0 or look.now + look.left < last - SLACK // 60:
        write = ("PEXPIREAT", key, str(max(last, look.now + SLACK)))
        what = "the holds never expire" if look.left < 0 else "they expire before the last hold ends"
        wrong.append(found("holds", key, what, context.reader.mend(key, [("1", "EXISTS", key)], write)))
    paid, reversed_ = (in_words(one) for one in seen[1])
    if held > int(paid or 0) + int(reversed_ or 0):
        wrong.append(found("holds", key, f"{held} is held, but the balance is {paid or 'none'}"))
    return wrong


def reads_of_idem(at: ParsedKey) -> list[Read]:
    """No reads: only the row names the hold."""
    return []


async def judge_idem(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a call in progress has its hold, and a finished one its charge."""
    row = {name: in_words(value) for name, value in row_of(seen[0]).items()}
    if not at.client:
        return []  # the key of a grant, which is complete with its ledger entry
    state, hold, holds = row.get("state"), row.get("hold", ""), keys.credits(at.user)["holds"]
    if state == "done":
        whole = row.get("charged", "").isdigit() and re.fullmatch(r"-?[0-9]+", row.get("left", ""))
        return [] if whole else [found("idempotency", key, "a finished call has no charge")]
    again = await context.reader.look(key, ("HMGET", key, "state", "hold"), ("HEXISTS", holds, hold))
    now_state, now_hold = (in_words(one) for one in again.seen[0] or (None, None))
    # The hold and the record end at the same moment.
    if now_hold != hold or (now_state == "running" and again.seen[1]) or again.left < SLACK // 60:
        return []
    if now_state == "done":
        return []
    mend = context.reader.mend(key, [(hold, "HGET", key, "hold"), ("0", "HEXISTS", holds, hold)], ("UNLINK", key))
    return [found("idempotency", key, "a call in progress has no hold", mend)]


def reads_of_reply(at: ParsedKey) -> list[Read]:
    """Reads the length of the reply."""
    return [("STRLEN", keys.idempotency(at.user, at.client, at.name)["reply"])]


async def judge_reply(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a kept reply is counted and, in a deep check, opens."""
    wrong, replies, name = [], keys.credits(at.user)["replies"], f"{at.client}:{at.name}"
    counted = await context.reader.look(key, ("STRLEN", key), ("ZSCORE", replies, f"{seen[0]} {name}"))
    if counted.kind != "none" and counted.seen[0] == seen[0] and counted.seen[1] is None:
        still = [(str(seen[0]), "STRLEN", key), ("", "ZSCORE", replies, f"{seen[0]} {name}")]
        wrong.append(found("replies", key, "it is not on the list", context.reader.mend(key, still, ("UNLINK", key))))
    if context.deep:
        sealed = await context.reader.command("GET", key)
        try:
            if sealed is not None:
                context.cipher.open(at.user, at.client, f"_reply/{at.name}", sealed)
        except StoreError:
            wrong.append(found("content", key, "it cannot be opened: damaged, moved, or its key is gone"))
    return wrong


def reads_of_replies(at: ParsedKey) -> list[Read]:
    """Reads how many replies there are, and their noted bytes."""
    known = keys.credits(at.user)
    return [("ZCARD", known["replies"]), ("HGET", known["balance"], "reply_bytes")]


async def judge_replies(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the counted replies exist, and that their bytes are noted."""
    known, total, start = keys.credits(at.user), 0, 0
    wrong: list[Finding] = []
    stamp = seen[:2]
    while True:
        again = await context.reader.look(
            key, *reads_of_replies(at), ("ZRANGE", key, str(start), str(start + AT_ONCE - 1), "WITHSCORES")
        )
        if again.seen[:2] != stamp:
            return wrong  # kept or dropped meanwhile
        flat = again.seen[2] or []
        members = [(in_words(one), int(float(score))) for one, score in zip(flat[::2], flat[1::2], strict=True)]
        total += sum(int(member.partition(" ")[0] or 0) for member, _ in members)
        # Expired replies are dropped when another one is kept.
        alive = [member for member, kept in members if kept + AI_REPLY > again.now + SLACK // 60]
        for some in in_steps(alive, AT_ONCE):
            names = [keys.reply_prefix(at.user) + member.partition(" ")[2] for member in some]
            reads: list[Read] = [("EXISTS", name) for name in names] + [("ZSCORE", key, member) for member in some]
            there = (await context.reader.look(key, *reads)).seen
            for place, (member, name) in enumerate(zip(some, names, strict=True)):
                if not there[place] and there[len(some) + place] is not None:
                    size = int(member.partition(" ")[0])
                    mend = context.reader.mend(
                        key,
                        [("0", "EXISTS", name), ("1", "EXISTS", known["balance"])],
                        ("ZREM", key, member),
                        ("HINCRBY", known["balance"], "reply_bytes", str(-size)),
                    )
                    wrong.append(
                        found("replies", key, f"{member.partition(' ')[2]} is on the list but does not exist", mend)
                    )
        if len(members) < AT_ONCE:
            break
        start += AT_ONCE
    noted = in_words(stamp[1])
    if not wrong and noted != str(total):
        still: list[Expected] = [(noted, "HGET", known["balance"], "reply_bytes"), (str(stamp[0]), "ZCARD", key)]
        still.append(("1", "EXISTS", known["balance"]))
        mend = context.reader.mend(key, still, ("HSET", known["balance"], "reply_bytes", str(total)))
        wrong.append(found("replies", key, f"they take {total} bytes, but {noted or 'none'} are recorded", mend))
    return wrong
