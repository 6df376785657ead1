"""What `manage.py` does with credits: gives and takes them, and shows the balance with the ledger."""

from __future__ import annotations

import argparse
import re
import secrets
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any

from commands import Context, Outcome
from store.archive import timestamp
from store.credits import CURRENCY, ENTRIES_AT_ONCE, SCALE, Account, Balance, Entry
from store.errors import StoreUnavailable
from store.opened import Store
from store.operations import person_named

AMOUNTS = ("amount", "paid", "held", "spendable", "opening")
COLUMNS = ("at", "kind", "amount", "paid", "client_id", "model", "inputTokens", "outputTokens", "reason", "endsAt")


def whole(text: str) -> int:
    """A whole number. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number of micro-dollars, such as 5000000 for 5 dollars")
    return int(text)


def limit(text: str) -> int:
    """A number of entries. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


async def grant_credits(context: Context, args: Namespace) -> Outcome:
    """Adds to a person's credits, or takes from them. Raises Refused, ValueError, StoreUnavailable."""
    who, key = person_named(args.email), secrets.token_hex(16) if args.key is None else args.key
    try:
        person, granted = await context.store.operator.credit(who, args.amount, reason=args.reason, key=key)
    except StoreUnavailable as error:
        raise StoreUnavailable(f"{error}. Given again with --key {key}, the command does it once") from None
    record = {
        "sub": person.user,
        "email": person.email,
        "amount": args.amount,
        **balance_record(granted.balance),
        "replayed": granted.replayed,
    }
    note = "This key did the same before; nothing was done now." if granted.replayed else ""
    return Outcome(record, note=note, words=_in_dollars(record))


async def show_credits(context: Context, args: Namespace) -> Outcome:
    """Balance, holds and the newest entries. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    read = [page async for page in pages(context.store, person.user, args.limit)]
    # What was folded while the pages were read is in the opening balance of the last one.
    account, last = read[0], read[-1]
    record = {
        "sub": person.user,
        "email": person.email,
        **balance_record(account),
        **opening_record(last),
        "holds": holds_record(account),
        "entries": [entry_record(entry) for page in read for entry in page.entries],
    }
    return Outcome(record, COLUMNS, words=_in_dollars(record))


async def pages(store: Store, user: str, most: int | None = None) -> AsyncIterator[Account]:
    """A person's credits page by page, the newest entries first, `most` of them in all. Balance, opening and holds are
    those of the moment a page was read. Raises Refused("not_found")."""
    before, more = "", True
    while more:
        asked = ENTRIES_AT_ONCE if most is None else min(ENTRIES_AT_ONCE, most)
        account = await store.credits.show(user, before=before, most=asked)
        yield account
        most = None if most is None else most - asked
        more = len(account.entries) == asked and most != 0
        before = account.entries[-1].entry_id if more else ""


def balance_record(balance: Balance | Account) -> dict[str, Any]:
    """The balance with the field names of the interface."""
    amounts = {"paid": balance.paid, "held": balance.held, "spendable": balance.spendable}
    return {**amounts, "currency": CURRENCY, "scale": SCALE}


def opening_record(account: Account) -> dict[str, Any]:
    """The sum of what was folded, and from when the newest of it is."""
    return {
        "opening": account.opening,
        "openingAt": timestamp(account.opening_at) if account.opening_at else None,
    }


def holds_record(account: Account) -> list[dict[str, Any]]:
    """What calls under way may cost."""
    return [
        {"client_id": hold.client, "amount": hold.amount, "endsAt": timestamp(hold.ends_at)} for hold in account.holds
    ]


def entry_record(entry: Entry) -> dict[str, Any]:
    """A line of the ledger."""
    return {
        "at": timestamp(entry.at),
        "kind": entry.kind,
        "amount": entry.amount,
        "paid": entry.paid,
        "reason": entry.reason,
        "client_id": entry.client,
        "model": entry.model,
        "inputTokens": entry.input_tokens,
        "outputTokens": entry.output_tokens,
        "priceVersion": entry.price_version,
        "hold": entry.hold,
    }


def _in_dollars(record: dict[str, Any]) -> dict[str, Any]:
    """What people are shown of a record: amounts as dollars, and nothing where there is nothing."""
    words: dict[str, Any] = {"currency": "", "scale": ""}
    for name, value in record.items():
        if name in AMOUNTS:
            words[name] = f"{dollars(value)} {CURRENCY}"
        elif isinstance(value, list):
            words[name] = [{**row, **{key: dollars(row[key]) for key in AMOUNTS if key in row}} for row in value]
        elif value is None:
            words[name] = ""
    return words


def dollars(amount: int) -> str:
    """Micro-dollars as dollars, to the last place."""
    whole_part, part = divmod(abs(amount), 10**SCALE)
    return f"{'-' if amount < 0 else ''}{whole_part}.{part:0{SCALE}}"
