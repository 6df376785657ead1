"""Checks of a person's payments: their form, and that the ledger books what they say."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from store import keys
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, Read, in_words, number, row_of
from store.parsed_keys import ParsedKey

_FORM = re.compile(
    rb"([0-9]+) ([0-9]+) ([0-9]+) [0-9]+((?: [A-Za-z0-9_]{1,100}:[0-9]+:(?:withdrawn|returned):[0-9]+)*)"
)
_WITHDRAWN = re.compile(rb":([0-9]+):withdrawn:")
MOST_ENTRIES = 1000
"""The ledgers that are compared payment by payment. A longer one is checked entry by entry, with its balance."""


def reads_of_payments(at: ParsedKey) -> list[Read]:
    """Reads the balance, and the ledger if it is short."""
    known = keys.credits(at.user)
    return [
        ("HMGET", known["balance"], "reversed", "opening_at"),
        ("XLEN", known["ledger"]),
        ("XRANGE", known["ledger"], "-", "+", "COUNT", str(MOST_ENTRIES)),
    ]


async def judge_payments(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that each payment took back what refunds and disputes demand, that the balance knows the sum, and, while
    the ledger is short and nothing is folded, that the ledger has booked each payment."""
    wrong: list[Finding] = []
    taken_in_all, booked = 0, Counter[str]()
    for name, raw in row_of(seen[0]).items():
        match = _FORM.fullmatch(raw)
        if match is None:
            wrong.append(found("payments", key, f"the payment {name} is malformed"))
            continue
        paid, taken, refunded = int(match[1]), int(match[2]), int(match[3])
        due = min(paid, refunded + sum(map(int, _WITHDRAWN.findall(match[4]))))
        if taken != due:
            wrong.append(found("payments", key, f"of the payment {name} {taken} is taken back, but {due} is due"))
        taken_in_all += taken
        booked[name] = paid - taken
    if wrong:
        return wrong
    reversed_, opening_at = (in_words(one) for one in seen[1])
    if int(reversed_ or 0) != taken_in_all:
        what = f"payments took back {taken_in_all}, but the balance says {reversed_ or 'nothing'}"
        wrong.append(found("payments", key, what))
    if not opening_at and seen[2] <= MOST_ENTRIES:
        for _, flat in seen[3]:
            entry = row_of(flat)
            booked[in_words(entry.get("payment"))] -= number(entry, "amount") or 0 if "payment" in entry else 0
        for name, rest in booked.items():
            if rest:
                wrong.append(found("payments", key, f"the ledger and the payment {name} differ by {rest}"))
    return wrong
