"""A person's credits as JSON for the operator's commands, the operations port and downloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from store.credits.credits import CURRENCY, ENTRIES_AT_ONCE, SCALE, Account, Balance, Credits, LedgerEntry
from store.credits.used import Total, UsageRow
from store.moments import timestamp

SHOWN_KINDS = {
    "input": "input",
    "output": "output",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
    "cache_write_1h": "cacheWrite1h",
}
"""The kinds of tokens, and their names in the interface."""


async def pages(credits: Credits, user: str, most: int | None = None) -> AsyncIterator[Account]:
    """Yields a person's credits page by page, newest entries first, `most` entries in all. Balance, opening and holds
    are from the time of the page's read. Raises Refused("not_found")."""
    before, more = "", True
    while more:
        size = ENTRIES_AT_ONCE if most is None else min(ENTRIES_AT_ONCE, most)
        account = await credits.show(user, before=before, most=size)
        yield account
        most = None if most is None else most - size
        more = len(account.entries) == size and most != 0
        before = account.entries[-1].entry_id if more else ""


def balance_record(balance: Balance | Account) -> dict[str, Any]:
    """The balance with the field names of the interface."""
    amounts = {"paid": balance.paid, "held": balance.held, "spendable": balance.spendable}
    return {**amounts, "currency": CURRENCY, "scale": SCALE}


def total_record(total: Total) -> dict[str, Any]:
    """What calls used together."""
    tokens = {shown: getattr(total.tokens, kind) for kind, shown in SHOWN_KINDS.items()}
    return {
        "calls": total.calls,
        "charged": total.charged,
        "tokens": tokens,
        "webSearches": total.tokens.web_search,
    }


def usage_record(row: UsageRow) -> dict[str, Any]:
    """What an app's calls of a model used on a day. App and model are null where a day has too many of them."""
    named = {"day": row.day.isoformat(), "client_id": row.client or None, "model": row.model or None}
    return {**named, **total_record(Total() + row)}


def opening_record(account: Account) -> dict[str, Any]:
    """The sum of the folded entries, and the time of the newest of these."""
    return {
        "opening": account.opening,
        "openingAt": timestamp(account.opening_at) if account.opening_at else None,
    }


def holds_record(account: Account) -> list[dict[str, Any]]:
    """The holds of calls in progress."""
    return [
        {"client_id": hold.client, "amount": hold.amount, "endsAt": timestamp(hold.ends_at)} for hold in account.holds
    ]


def entry_record(entry: LedgerEntry) -> dict[str, Any]:
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
        "cacheReadTokens": entry.cache_read_tokens,
        "cacheWriteTokens": entry.cache_write_tokens,
        "cacheWrite1hTokens": entry.cache_write_1h_tokens,
        "webSearches": entry.web_searches,
        "priceVersion": entry.price_version,
        "hold": entry.hold,
        "payment": entry.payment,
        "cause": entry.cause,
    }
