"""`manage.py credits`: gives and takes credits, and shows the balance with the ledger."""

from __future__ import annotations

import secrets
from argparse import Namespace
from typing import Any

from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.credits.credits import CURRENCY, exact_dollars
from store.credits.records import balance_record, entry_record, holds_record, opening_record, pages
from store.errors import StoreUnavailable
from store.operations import person_named

AMOUNTS = ("amount", "paid", "held", "spendable", "opening")
SMALL = 10_000
"""In micro-dollars. An amount below one cent is more often a mistake for dollars."""
COLUMNS = (
    *("at", "kind", "amount", "paid", "client_id", "model", "inputTokens", "outputTokens"),
    *("reason", "payment", "cause", "endsAt"),
)


async def grant_credits(context: Context, args: Namespace) -> CommandResult:
    """Adds or removes credits of a person. Raises Refused, ValueError, StoreUnavailable."""
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
    if not granted.replayed and abs(args.amount) < SMALL:
        note = f"That was {args.amount} micro-dollars. If you meant dollars, write {args.amount}usd."
    return CommandResult(record, note=note, words=in_dollars(record))


async def show_credits(context: Context, args: Namespace) -> CommandResult:
    """Shows the balance, the holds and the newest entries. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    read = [page async for page in pages(context.store.credits, person.user, args.limit)]
    # Entries folded during the reads are in the opening balance of the last page.
    account, last = read[0], read[-1]
    record = {
        "sub": person.user,
        "email": person.email,
        **balance_record(account),
        **opening_record(last),
        "holds": holds_record(account),
        "entries": [entry_record(entry) for page in read for entry in page.entries],
    }
    return CommandResult(record, COLUMNS, words=in_dollars(record))


def in_dollars(record: dict[str, Any]) -> dict[str, Any]:
    """A record for people: amounts in dollars, and empty values left out."""
    words: dict[str, Any] = {"currency": "", "scale": ""}
    for name, value in record.items():
        if name in AMOUNTS:
            words[name] = f"{exact_dollars(value)} {CURRENCY}"
        elif isinstance(value, list):
            words[name] = [{**row, **{key: exact_dollars(row[key]) for key in AMOUNTS if key in row}} for row in value]
        elif value is None:
            words[name] = ""
    return words
