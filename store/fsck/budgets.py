"""Checks of budgets: what is used of them, against the charges of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from store import keys
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Expected, in_words
from store.oauth.budgets import BUDGET_TYPES, TOTAL

BUDGET_FIELDS = tuple(f"{what}:{kind}" for kind in BUDGET_TYPES for what in ("budget", "used"))
"""The fields of a grant, as in lua/include/spending.lua."""
BUDGET = rb"[0-9]{1,16} (?:total|month) [0-9]{1,16} [0-9]{1,16} [!-~]+(?: [!-~]+)*"
"""The form of a budget."""
_USED = re.compile(r"([tm])([0-9]{1,16}) ([0-9]{1,16})")


class CountedCharge(NamedTuple):
    """A charge of the ledger: its app, time (ms), amount, counters, and the counter of the month of its time."""

    client: str
    at: int
    amount: int
    counters: tuple[str, ...]
    month: str


def budgets_found(
    context: FsckContext,
    user: str,
    client: str,
    row: Mapping[str, str],
    charges: Iterable[CountedCharge],
    connected: int,
    folded: int,
    month: str,
    still: list[Expected],
) -> list[Finding]:
    """Compares what is used of an app's budgets with its charges. `row` has BUDGET_FIELDS; `folded` is the time of the
    newest charge that the ledger has no more (ms), `connected` that of the connection: charges before it may belong to
    an older grant. A month that a decision began has the earlier charges of the month too. `month`: the
    counter of this month; `still`: what says that the books are the same."""
    wrong, grant = [], keys.grant(user, client)
    own = [charge for charge in charges if charge.client == client]
    for kind in BUDGET_TYPES:
        text, name = row[f"budget:{kind}"], f"used:{kind}"
        if not re.fullmatch(BUDGET, text.encode()):
            continue  # missing, or the row's check says so
        _, period, since, *_ = text.split(" ")
        match = _USED.fullmatch(row[name])
        if match and (match[1] != period[0] or (match[1] == "t" and match[2] != since)):
            match = None
        counter = f"{match[1]}{match[2]}" if match else f"t{since}" if period == TOTAL else month
        least = sum(one.amount for one in own if counter in one.counters and one.at >= connected)
        most = sum(one.amount for one in own if counter in one.counters or counter == one.month)
        used = int(match[3]) if match else -1
        # Folded charges may count too.
        whole = match is None or (match[1] == "t" and folded < int(match[2])) or (match[1] == "m" and not folded)
        if least <= used and (used <= most or not whole):
            continue
        unchanged: list[Expected] = [*still, (row[name], "HGET", grant, name), (text, "HGET", grant, f"budget:{kind}")]
        # Without a number to go by, whatever may count does: a repair gives nobody a budget back.
        whole_sum = min(max(used, least), most) if match else most
        mend = context.reader.mend(grant, unchanged, ("HSET", grant, name, f"{counter} {whole_sum}"))
        what = f"{max(used, 0)} is used of the budget {kind} of the app {client}, but {least} was charged"
        wrong.append(found("budgets", grant, what, mend))
    return wrong


def row_of_budgets(values: list[bytes | None]) -> dict[str, str]:
    """BUDGET_FIELDS and their values, empty for missing ones."""
    return dict(zip(BUDGET_FIELDS, map(in_words, values), strict=True))
